//! The tree, as a fold of its events: the same for a live run and for a replay of the record.

mod node;
mod subtree;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_session_key::{AgentId, SessionKey};
use serde::Serialize;

use crate::{
    Cleanup, Cost, Event, EventKind, Holds, Need, OpenBreaker, Origin, Reason, RootId, RunId,
    RunStatus, Timestamp, TraceStep, TreeHolds, Usage, Window, Windows,
};

pub use node::{BackOff, Node, Parked};
pub use subtree::{Statuses, Subtree, Subtrees};

/// All runs that were told of, of any number of roots.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    index: HashMap<RunId, usize>,
    roots: Vec<usize>,
    /// The reasons why trees are held back.
    holds: Holds,
    windows: Windows,
    /// The time of the last event of each tree.
    seen: HashMap<RootId, Timestamp>,
}

/// A run with its subtree, as JSON shows it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// The run id.
    pub id: RunId,
    /// The session.
    pub session_key: SessionKey,
    /// The running agent.
    pub agent: AgentId,
    /// A short name for people.
    pub label: Option<Arc<str>>,
    /// The status of the run.
    pub status: RunStatus,
    /// The reason of its end, once it has ended.
    pub reason: Option<Reason>,
    /// The line of its last words that says why it is no success.
    pub cause: Option<Arc<str>>,
    /// The beginning of what the run itself says of its error.
    pub said: Option<Arc<str>>,
    /// The last words in which it reported how it goes.
    pub reported: Option<Arc<str>>,
    /// Levels below the root.
    pub depth: u32,
    /// The usage of the run itself, by the name older readers know.
    pub token_usage: Usage,
    /// The run id again, under the name that other documents use.
    pub run_id: RunId,
    /// The run that asked for this one.
    #[serialize_always]
    pub parent: Option<RunId>,
    /// The reasons why nothing more of the tree starts, at its root.
    #[serde(flatten)]
    pub holds: TreeHolds,
    /// The other attempt that the run waits for.
    pub parked: Option<Parked>,
    /// The time since which a request of the run to a model waits for room in the budget.
    #[serde(serialize_with = "crate::rfc3339")]
    pub at_cap_since: Option<Timestamp>,
    /// The wait of the run before its next call to a service that has refused or broken off the last one.
    pub backs_off: Option<BackOff>,
    /// RFC 3339.
    #[serialize_always]
    #[serde(serialize_with = "crate::rfc3339")]
    pub started_at: Option<Timestamp>,
    /// RFC 3339.
    #[serialize_always]
    #[serde(serialize_with = "crate::rfc3339")]
    pub ended_at: Option<Timestamp>,
    /// From start to end, or to the last event while it runs.
    #[serialize_always]
    pub execution_time_ms: Option<u64>,
    /// The usage of the run itself.
    pub own_usage: Usage,
    /// The cost of the run itself.
    pub own_cost: Cost,
    /// With everything below.
    pub subtree_usage: Usage,
    /// With everything below.
    pub cost: Cost,
    /// The reason why its folder is still there although it was to be removed.
    pub not_removed: Option<Arc<str>>,
    /// The run that has its place now: it is a piece, and ran again.
    pub replaced_by: Option<RunId>,
    /// The runs whose answers it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// In the order in which they were asked for.
    pub children: Vec<TreeNode>,
}

impl Tree {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A tree of these events.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut tree = Self::new();
        events.into_iter().for_each(|event| tree.apply(event));
        tree
    }

    /// Takes in one event. An event about a run that was never admitted changes nothing: a reader may have
    /// joined late.
    pub fn apply(&mut self, event: &Event) {
        let seen = self.seen.insert(event.root, event.at);
        if let EventKind::Admitted(_) = event.kind {
            return self.admit(event);
        }
        self.holds.apply(event);
        self.windows.apply(event);
        if let (EventKind::Reopened, Some(seen)) = (&event.kind, seen) {
            self.pass_over(event.root, event.at.since(seen));
        }
        let Some(&at) = self.index.get(&event.run) else { return };
        // Only at an end: a reader of a hundred thousand runs waits for each look.
        let is_followed = matches!(event.kind, EventKind::Ended(_)) && self.is_followed(at);
        let node = &mut self.nodes[at];
        match &event.kind {
            EventKind::Starting => {
                node.status = RunStatus::Starting;
                (node.parked, node.at_cap) = (None, None);
                node.started_at.get_or_insert(event.at);
            }
            EventKind::Started { .. } | EventKind::Returned => node.status = RunStatus::Running,
            EventKind::Waiting => node.status = RunStatus::Waiting,
            EventKind::Resumed { attempt, continues: _, after, wait_ms, changes: _ } => {
                let is_at_cap = matches!(after.as_deref(), Some(Reason::Budget { .. }));
                (node.status, node.at_cap) = (RunStatus::Queued, is_at_cap.then_some(event.at));
                let wait = Duration::from_millis(wait_ms.unwrap_or(0));
                let (attempt, since, until) = (*attempt, event.at, event.at.plus(wait));
                let parked = |after: &Reason| {
                    let reset = match after {
                        // One that goes over to another runtime waits for no reset.
                        Reason::Quota { until, .. } if wait_ms.is_none() => *until,
                        _ => None,
                    };
                    let until = reset.map_or(until, |reset| reset.max(until));
                    Parked { since, until, attempt, after: after.clone() }
                };
                node.parked = after.as_deref().filter(|_| !is_at_cap).map(parked);
                node.backs_off = None;
            }
            EventKind::Progress { text } => node.progress = Some(Arc::clone(text)),
            EventKind::Reported { text } => {
                node.progress = Some(Arc::clone(text));
                node.reported = Some(Arc::clone(text));
            }
            EventKind::ToolUsed(used) => node.progress = Some(used.line().into()),
            EventKind::Repeats { .. } | EventKind::ModelChanged { .. } => {
                node.progress = Some(event.kind.text().into());
            }
            EventKind::BacksOff { why, until } => {
                let since = node.backs_off.take().map_or(event.at, |before| before.since);
                node.backs_off = Some(BackOff { since, until: *until, why: Arc::clone(why) });
            }
            EventKind::Answered => node.backs_off = None,
            EventKind::Used { usage, cost } => (node.usage, node.cost) = (*usage, *cost),
            EventKind::RequestHeld { .. } => node.at_cap = Some(event.at),
            EventKind::RequestReserved { .. } => {
                node.at_cap = None;
                node.open_requests += 1;
            }
            EventKind::RequestRefused { .. } => node.at_cap = None,
            EventKind::RequestSettled { usage, cost, .. } => {
                node.open_requests = node.open_requests.saturating_sub(1);
                (node.usage, node.cost) = (node.usage + *usage, node.cost.with_request(*cost));
            }
            EventKind::Ended(ending) => {
                node.status = ending.status();
                node.reason = Some(ending.reason.clone());
                node.cause = ending.cause().map(Arc::from);
                let said = ending.said.as_ref().filter(|_| !node.status.is_success());
                node.said = said.and_then(|said| said.in_a_line()).map(Arc::from);
                node.ended_at = Some(event.at);
                (node.parked, node.at_cap, node.backs_off) = (None, None, None);
                node.handed_over |= is_followed || node.origin == Origin::Piece;
                (node.usage, node.cost) = (ending.usage, ending.cost);
            }
            EventKind::RootReopened(_) => {
                node.status = RunStatus::Running;
                node.dead += node.ended_at.map_or(Duration::ZERO, |at| event.at.since(at));
                (node.reason, node.cause, node.said, node.ended_at) = (None, None, None, None);
            }
            EventKind::Delivered { .. } | EventKind::Undelivered { .. } => node.handed_over = true,
            EventKind::Removal { error } => node.not_removed = error.clone(),
            // Not in the picture of a tree.
            _ => {}
        }
    }

    /// Takes a time out of those of the runs that had begun: their tree had no supervisor.
    fn pass_over(&mut self, root: RootId, time: Duration) {
        let begun = |node: &&mut Node| {
            node.root == root && node.started_at.is_some() && !node.status.is_terminal()
        };
        self.nodes.iter_mut().filter(begun).for_each(|node| node.dead += time);
    }

    /// True if the parent runs nothing itself, and so hears of the run as it ends.
    fn is_followed(&self, at: usize) -> bool {
        let parent = self.nodes[at].parent.and_then(|parent| self.get(parent));
        parent.is_some_and(|parent| parent.holds)
    }

    /// The supervisor of this tree is gone, whatever the record says: what had begun and not ended is lost. To be called when all events
    /// were taken in.
    pub fn lose(&mut self, root: RootId) {
        let left = |node: &&mut Node| node.root == root && !node.status.is_terminal();
        for node in self.nodes.iter_mut().filter(left) {
            node.left_at = self.seen.get(&root).copied();
            // What stood in line has lost nothing.
            if node.status != RunStatus::Queued || node.parent.is_none() {
                node.status = RunStatus::Lost;
                node.reason = Some(Reason::Interrupted);
                (node.usage, node.cost) = match node.open_requests {
                    0 => node.usage.told_before_the_end(node.cost),
                    _ => (node.usage.cut_off(), node.cost.cut_off()),
                };
            }
        }
    }

    /// The runs without a parent, oldest first.
    pub fn roots(&self) -> impl Iterator<Item = &Node> {
        self.roots.iter().map(|&at| &self.nodes[at])
    }

    /// The roots of the trees that are not over.
    pub fn open(&self) -> impl Iterator<Item = &Node> {
        self.roots().filter(|root| !root.status.is_terminal())
    }

    /// All runs, in the order in which they were admitted.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// One run.
    pub fn get(&self, run: RunId) -> Option<&Node> {
        self.index.get(&run).map(|&at| &self.nodes[at])
    }

    /// The runs from the root down to this one.
    pub fn trace(&self, node: &Node) -> Vec<TraceStep> {
        let upwards = std::iter::successors(Some(node), |node| self.get(node.parent?));
        let step = |node: &Node| TraceStep { agent: node.agent.clone(), run_id: node.run };
        let mut trace: Vec<TraceStep> = upwards.map(step).collect();
        trace.reverse();
        trace
    }

    /// The children of a run, in the order in which they were asked for.
    pub fn children<'a>(&'a self, node: &'a Node) -> impl ExactSizeIterator<Item = &'a Node> {
        node.children.iter().map(|&at| &self.nodes[at])
    }

    /// True if a run and everything below it was to be deleted and is: it is shown only on request.
    pub fn is_deleted(&self, node: &Node) -> bool {
        let was_to_go = node.cleanup == Cleanup::Delete && node.handed_over;
        let is_gone = was_to_go && node.not_removed.is_none();
        is_gone && self.children(node).all(|child| self.is_deleted(child))
    }

    /// Returns the status of the whole: idle while there is nothing, running while anything lives, completed where all roots are,
    /// otherwise the first root's status that is not.
    pub fn status(&self) -> RunStatus {
        let mut statuses = self.roots().map(|root| root.status);
        if self.roots.is_empty() {
            RunStatus::Idle
        } else if self.nodes.iter().any(|node| !node.status.is_terminal()) {
            RunStatus::Running
        } else {
            statuses.find(|status| !status.is_success()).unwrap_or(RunStatus::Completed)
        }
    }

    /// Returns what holds a tree back; nothing where it is over.
    pub fn holds(&self, root: RootId) -> &TreeHolds {
        static NONE: TreeHolds = TreeHolds::NONE;
        let holds = self.holds.of(root);
        // Most trees have none, and are not looked up.
        if holds.is_empty() || self.is_over(root) { &NONE } else { holds }
    }

    /// Returns the windows of quotas of which the services of a tree have told, as far as they have not begun anew at this moment.
    pub fn windows(&self, root: RootId, now: Timestamp) -> impl Iterator<Item = &Window> {
        self.windows.of(root, now)
    }

    /// Returns the open breaker of the agent of a run that stands in line.
    pub fn held_back_by(&self, node: &Node) -> Option<&OpenBreaker> {
        let is_queued = node.status == RunStatus::Queued;
        let mut open = self.holds(node.root).open_breakers.iter();
        open.find(|open| is_queued && open.agent == node.agent)
    }

    /// True if the root of a tree is over, or is not known.
    fn is_over(&self, root: RootId) -> bool {
        self.get(root.run()).is_none_or(|root| root.status.is_terminal())
    }

    /// The children of a run as they count: of a piece that ran again only the last run, in the place of the first.
    pub fn last_children<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Node> {
        let later = |node: &&'a Node| self.get(node.replaced_by?);
        let first = self.children(node).filter(|child| child.instead.is_none());
        first.filter_map(move |child| std::iter::successors(Some(child), later).last())
    }

    /// Usage and cost of a run with everything below it.
    pub fn subtree(&self, node: &Node) -> (Usage, Cost) {
        self.children(node).fold((node.usage, node.cost), |(usage, cost), child| {
            let (child_usage, child_cost) = self.subtree(child);
            (usage + child_usage, cost + child_cost)
        })
    }

    /// The sums over each run and everything below it, in the order of [`nodes`](Self::nodes). For many runs, this is much cheaper
    /// than asking for each.
    pub fn subtrees(&self) -> Subtrees<'_> {
        let of_itself = |node: &Node| Subtree {
            usage: node.usage,
            cost: node.cost,
            runs: 1,
            statuses: Statuses::default().with(node.status),
        };
        let mut sums: Vec<Subtree> = self.nodes.iter().map(of_itself).collect();
        // A run is admitted after its parent.
        for at in (0..sums.len()).rev() {
            for &child in &self.nodes[at].children {
                let below = sums[child];
                let sum = &mut sums[at];
                (sum.usage, sum.cost) = (sum.usage + below.usage, sum.cost + below.cost);
                sum.runs += below.runs;
                sum.statuses = sum.statuses.and(below.statuses);
            }
        }
        Subtrees { index: &self.index, sums }
    }

    /// Usage and cost of everything.
    pub fn total(&self) -> (Usage, Cost) {
        self.nodes.iter().fold((Usage::default(), Cost::NONE), |(usage, cost), node| {
            (usage + node.usage, cost + node.cost)
        })
    }

    /// The form that JSON shows, for one run and everything below it.
    pub fn view(&self, node: &Node) -> TreeNode {
        let children: Vec<TreeNode> = self.children(node).map(|child| self.view(child)).collect();
        let (subtree_usage, cost) =
            children.iter().fold((node.usage, node.cost), |(usage, cost), child| {
                (usage + child.subtree_usage, cost + child.cost)
            });
        let is_root = node.parent.is_none();
        TreeNode {
            holds: if is_root { self.holds(node.root).clone() } else { TreeHolds::NONE },
            parked: node.parked.clone().filter(|_| !node.status.is_terminal()),
            at_cap_since: node.at_cap.filter(|_| !node.status.is_terminal()),
            backs_off: node.backs_off.clone().filter(|_| !node.status.is_terminal()),
            id: node.run,
            session_key: node.key.clone(),
            agent: node.agent.clone(),
            label: node.label.clone(),
            status: node.status,
            reason: node.reason.clone(),
            cause: node.cause.clone(),
            said: node.said.clone(),
            reported: node.reported.clone(),
            depth: node.depth,
            token_usage: node.usage,
            run_id: node.run,
            parent: node.parent,
            started_at: node.started_at,
            ended_at: node.ended_at,
            execution_time_ms: node.execution_time().map(|time| time.as_millis() as u64),
            own_usage: node.usage,
            own_cost: node.cost,
            subtree_usage,
            cost,
            not_removed: node.not_removed.clone(),
            replaced_by: node.replaced_by,
            needs: node.needs.clone(),
            children,
        }
    }

    fn admit(&mut self, event: &Event) {
        let EventKind::Admitted(admitted) = &event.kind else { return };
        if self.index.contains_key(&event.run) {
            return;
        }
        let at = self.nodes.len();
        let parent = admitted.parent.and_then(|parent| self.index.get(&parent).copied());
        match parent {
            Some(parent) => self.nodes[parent].children.push(at),
            None => self.roots.push(at),
        }
        let instead = admitted.instead.and_then(|instead| self.index.get(&instead).copied());
        if let Some(before) = instead.and_then(|at| self.nodes.get_mut(at)) {
            before.replaced_by = Some(event.run);
        }
        self.index.insert(event.run, at);
        self.nodes.push(Node {
            run: event.run,
            root: event.root,
            key: admitted.key.clone(),
            parent: admitted.parent,
            agent: admitted.agent.clone(),
            depth: admitted.depth,
            origin: admitted.origin,
            label: admitted.label.clone(),
            // A run that only holds pieces needs no slot: it runs from the start.
            status: if admitted.runtime.is_some() { RunStatus::Queued } else { RunStatus::Running },
            reason: None,
            cause: None,
            said: None,
            admitted_at: event.at,
            started_at: admitted.runtime.is_none().then_some(event.at),
            ended_at: None,
            progress: None,
            reported: None,
            usage: Usage::default(),
            cost: Cost::NONE,
            cleanup: admitted.cleanup,
            not_removed: None,
            parked: None,
            at_cap: None,
            backs_off: None,
            open_requests: 0,
            instead: admitted.instead,
            replaced_by: None,
            needs: admitted.needs.clone(),
            dead: Duration::ZERO,
            left_at: None,
            handed_over: false,
            holds: admitted.runtime.is_none(),
            children: Vec::new(),
        });
    }
}
