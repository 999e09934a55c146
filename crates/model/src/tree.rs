//! The tree, as a fold of its events: the same for a live run and for a replay of the record.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_session_key::{AgentId, SessionKey};
use serde::Serialize;

use crate::{
    Cleanup, Cost, Event, EventKind, Origin, Reason, RootId, RunId, RunStatus, Timestamp, Usage,
};

/// All runs that were told of, of any number of roots.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    index: HashMap<RunId, usize>,
    roots: Vec<usize>,
}

/// One run in a tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// The run.
    pub run: RunId,
    /// The tree of the run.
    pub root: RootId,
    /// The session key.
    pub key: SessionKey,
    /// The run that asked for this one.
    pub parent: Option<RunId>,
    /// The running agent.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The origin of the run.
    pub origin: Origin,
    /// A short name for people.
    pub label: Option<Arc<str>>,
    /// The status of the run.
    pub status: RunStatus,
    /// The reason of its end, once it has ended.
    pub reason: Option<Reason>,
    /// The time of the admission.
    pub admitted_at: Timestamp,
    /// The time at which it got its first slot.
    pub started_at: Option<Timestamp>,
    /// The time of its end.
    pub ended_at: Option<Timestamp>,
    /// The last sign of life, for people.
    pub progress: Option<Arc<str>>,
    /// The usage of the run itself.
    pub usage: Usage,
    /// The cost of the run itself.
    pub cost: Cost,
    /// The treatment of the session once its result was handed over.
    pub cleanup: Cleanup,
    /// The reason why its folder is still there although it was to be removed.
    pub not_removed: Option<Arc<str>>,
    /// True if its result reached its receiver, or will never be asked for.
    handed_over: bool,
    /// True if the run runs nothing itself: its owner follows what is below it.
    holds: bool,
    children: Vec<usize>,
}

/// A run with its subtree, as JSON shows it.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// The status of the run.
    pub status: RunStatus,
    /// The reason of its end, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Levels below the root.
    pub depth: u32,
    /// The usage of the run itself, by the name older readers know.
    pub token_usage: Usage,
    /// The run id again, under the name that other documents use.
    pub run_id: RunId,
    /// The run that asked for this one.
    pub parent: Option<RunId>,
    /// RFC 3339.
    #[serde(serialize_with = "crate::rfc3339")]
    pub started_at: Option<Timestamp>,
    /// RFC 3339.
    #[serde(serialize_with = "crate::rfc3339")]
    pub ended_at: Option<Timestamp>,
    /// From start to end, or to the last event while it runs.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_removed: Option<Arc<str>>,
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
        if let EventKind::Admitted(_) = event.kind {
            return self.admit(event);
        }
        let Some(&at) = self.index.get(&event.run) else { return };
        // Only at an end: a reader of a hundred thousand runs waits for each look.
        let is_followed = matches!(event.kind, EventKind::Ended(_)) && self.is_followed(at);
        let node = &mut self.nodes[at];
        match &event.kind {
            EventKind::Starting => {
                node.status = RunStatus::Starting;
                node.started_at.get_or_insert(event.at);
            }
            EventKind::Started { .. } | EventKind::Returned => node.status = RunStatus::Running,
            EventKind::Waiting => node.status = RunStatus::Waiting,
            EventKind::Resumed { .. } => node.status = RunStatus::Queued,
            EventKind::Progress { text } | EventKind::Reported { text } => {
                node.progress = Some(Arc::clone(text));
            }
            EventKind::ToolUsed(used) => node.progress = Some(used.line().into()),
            EventKind::Used { usage, cost } => (node.usage, node.cost) = (*usage, *cost),
            EventKind::Ended(ending) => {
                node.status = ending.status();
                node.reason = Some(ending.reason.clone());
                node.ended_at = Some(event.at);
                node.handed_over |= is_followed || node.origin == Origin::Piece;
                (node.usage, node.cost) = (ending.usage, ending.cost);
            }
            EventKind::Delivered { .. } | EventKind::Undelivered { .. } => node.handed_over = true,
            EventKind::Removal { error } => node.not_removed = error.clone(),
            // Not in the picture of a tree.
            _ => {}
        }
    }

    /// True if the parent runs nothing itself, and so hears of the run as it ends.
    fn is_followed(&self, at: usize) -> bool {
        let parent = self.nodes[at].parent.and_then(|parent| self.get(parent));
        parent.is_some_and(|parent| parent.holds)
    }

    /// The supervisor of this tree is gone, whatever the record says: what had not ended is lost. To be called when all
    /// events were taken in.
    pub fn lose(&mut self, root: RootId) {
        let left = |node: &&mut Node| node.root == root && !node.status.is_terminal();
        for node in self.nodes.iter_mut().filter(left) {
            node.status = RunStatus::Lost;
            node.reason = Some(Reason::Interrupted);
        }
    }

    /// The runs without a parent, oldest first.
    pub fn roots(&self) -> impl Iterator<Item = &Node> {
        self.roots.iter().map(|&at| &self.nodes[at])
    }

    /// All runs, in the order in which they were admitted.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// One run.
    pub fn get(&self, run: RunId) -> Option<&Node> {
        self.index.get(&run).map(|&at| &self.nodes[at])
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

    /// Returns the number of runs that hold a slot.
    pub fn active(&self) -> usize {
        let holds = |node: &&Node| matches!(node.status, RunStatus::Starting | RunStatus::Running);
        self.nodes.iter().filter(holds).count()
    }

    /// Usage and cost of a run with everything below it.
    pub fn subtree(&self, node: &Node) -> (Usage, Cost) {
        self.children(node).fold((node.usage, node.cost), |(usage, cost), child| {
            let (child_usage, child_cost) = self.subtree(child);
            (usage + child_usage, cost + child_cost)
        })
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
        TreeNode {
            id: node.run,
            session_key: node.key.clone(),
            agent: node.agent.clone(),
            label: node.label.clone(),
            status: node.status,
            reason: node.reason.clone(),
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
            admitted_at: event.at,
            started_at: admitted.runtime.is_none().then_some(event.at),
            ended_at: None,
            progress: None,
            usage: Usage::default(),
            cost: Cost::NONE,
            cleanup: admitted.cleanup,
            not_removed: None,
            handed_over: false,
            holds: admitted.runtime.is_none(),
            children: Vec::new(),
        });
    }
}

impl Node {
    /// From its first slot to its end; none while it runs or where it never started.
    pub fn execution_time(&self) -> Option<Duration> {
        Some(self.ended_at?.since(self.started_at?))
    }
}
