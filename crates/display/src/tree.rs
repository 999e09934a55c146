//! The tree as text.
//!
//! ```text
//! main 0198…  completed  4.1 s  12,340 tokens  $0.04
//! ├─ scout (depth 1)  completed  1.2 s
//! └─ … 985 more completed
//! ```
//!
//! Only what the record keeps is in the picture: a live tree and a replay of its record look the same.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::time::Duration;

use offshoot_model::{Node, RunId, RunStatus, Subtrees, Timestamp, Tree};

use crate::branch::{Branch, RunLine, why};
use crate::held::Hold;
use crate::list::is_at_work;
use crate::needs::needs;
use crate::style::Style;
use crate::{name, number, status_words, used};

/// A picture of a tree, shown without a newline at its end.
#[derive(Clone, Debug)]
pub struct TreeText<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// The runs at the top.
    pub tops: Vec<&'a Node>,
    /// The style; plain unless asked.
    pub style: Style,
    /// The runs that are shown.
    pub shows: Shows,
    /// Names of the runs; without them the beginnings of their ids.
    pub ids: Option<&'a HashMap<RunId, String>>,
    /// The moment at which the age of what runs is told.
    pub now: Option<Timestamp>,
    /// The time for which each of these runs has been silent.
    pub silences: Option<&'a HashMap<RunId, Duration>>,
    /// So many levels below the top.
    pub depth: Option<u32>,
    /// At most so many lines of runs below the tops: first those with something to tell, and upper levels before lower ones.
    pub limit: Option<usize>,
}

/// The runs that get a line of their own. Those left out are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// All, but of children that are done, or have not begun, only the first ones.
    Usual,
    /// Every run, however many.
    All,
    /// Runs that did not complete, with their lines of parents.
    Failed,
    /// Runs that hold a slot or wait, with their lines of parents: for a screen, while the tree grows.
    Busy,
}

/// A picture, worked out.
struct Layout<'a> {
    subtrees: Subtrees<'a>,
    ids: HashMap<RunId, String>,
    visible: HashSet<RunId>,
    /// True if the usage of any top is known: else its line says that it is not, and no other does.
    tells_usage: bool,
}

/// Children that are done, or not yet begun, and shown before the rest of their kind is counted instead: a screen's
/// worth at most.
const SHOWN: usize = 15;

/// The statuses in which one run more shows nothing new.
const QUIET: [RunStatus; 3] = [RunStatus::Completed, RunStatus::Queued, RunStatus::Lost];

const BUSY: [RunStatus; 3] = [RunStatus::Starting, RunStatus::Running, RunStatus::Waiting];

/// The statuses of runs that are over and did not complete.
pub const FAILURES: [RunStatus; 5] = [
    RunStatus::Failed,
    RunStatus::TimedOut,
    RunStatus::Cancelled,
    RunStatus::Lost,
    RunStatus::ClientGone,
];

impl<'a> TreeText<'a> {
    /// All roots.
    pub fn new(tree: &'a Tree) -> Self {
        Self {
            tree,
            tops: tree.roots().collect(),
            style: Style::Plain,
            shows: Shows::Usual,
            ids: None,
            now: None,
            silences: None,
            depth: None,
            limit: None,
        }
    }

    /// One run and what is below it.
    pub fn of(tree: &'a Tree, top: &'a Node) -> Self {
        Self { tops: vec![top], ..Self::new(tree) }
    }

    /// Returns the runs below the tops that are shown.
    pub(crate) fn visible(&self) -> HashSet<RunId> {
        self.layout().visible
    }

    fn layout(&self) -> Layout<'a> {
        let subtrees = self.tree.subtrees();
        let ids = match self.ids {
            Some(_) => HashMap::new(),
            None => name::beginnings(self.tops.iter().map(|top| top.run)),
        };
        let mut candidates: Vec<&Node> = Vec::new();
        let mut queue: VecDeque<(&Node, u32)> = self.tops.iter().map(|top| (*top, 0)).collect();
        while let Some((node, level)) = queue.pop_front() {
            if level > 0 {
                candidates.push(node);
            }
            if self.depth.is_none_or(|depth| level < depth) {
                queue.extend(
                    self.shown(node, &subtrees).into_iter().map(|child| (child, level + 1)),
                );
            }
        }
        if let Some(limit) = self.limit.filter(|limit| *limit < candidates.len()) {
            // The parents of a run that has something to tell have it too, and come before it.
            candidates.sort_by_key(|node| Reverse(quiet(node, &subtrees).is_none()));
            candidates.truncate(limit);
        }
        let is_told = |top: &&Node| {
            let subtree = subtrees.of(top);
            used(&subtree.usage, &subtree.cost).is_some_and(|used| used != number::NOT_REPORTED)
        };
        let tells_usage = self.tops.iter().any(is_told);
        let visible = candidates.iter().map(|node| node.run).collect();
        Layout { visible, subtrees, ids, tells_usage }
    }

    /// The children of a run that are shown where it is.
    fn shown(&self, node: &'a Node, subtrees: &Subtrees<'_>) -> Vec<&'a Node> {
        // In place of a run that ran again, its newest run is shown.
        let children = self
            .tree
            .children(node)
            .filter(|child| self.shows == Shows::All || child.replaced_by.is_none());
        let has_any = |child: &Node, of: &[RunStatus]| subtrees.of(child).statuses.has_any(of);
        match self.shows {
            Shows::All => children.collect(),
            Shows::Failed => children.filter(|child| has_any(child, &FAILURES)).collect(),
            Shows::Busy => children.filter(|child| has_any(child, &BUSY)).collect(),
            Shows::Usual => {
                let mut totals = [0; QUIET.len()];
                let children: Vec<(&Node, Option<usize>)> = children
                    .filter(|child| !self.tree.is_deleted(child))
                    .map(|child| (child, quiet(child, subtrees)))
                    .collect();
                children
                    .iter()
                    .filter_map(|(_, quiet)| *quiet)
                    .for_each(|quiet| totals[quiet] += 1);
                let mut shown = [0; QUIET.len()];
                let is_shown = |(_, quiet): &(&Node, Option<usize>)| {
                    let Some(quiet) = *quiet else { return true };
                    shown[quiet] += 1;
                    // One run left out saves no line.
                    totals[quiet] <= SHOWN + 1 || shown[quiet] <= SHOWN
                };
                children.into_iter().filter(is_shown).map(|(child, _)| child).collect()
            }
        }
    }

    fn top(&self, node: &'a Node, layout: &Layout<'_>) -> Branch {
        let mut name = match layout.ids.get(&node.run) {
            Some(id) => format!("{} {}", name::of(node), self.style.faint(format_args!("{id}…"))),
            None => self.name(node),
        };
        if node.depth > 0 {
            name.push_str(&format!(" (depth {})", node.depth));
        }
        let subtree = layout.subtrees.of(node);
        // What runs nothing itself uses nothing: the sum stands alone.
        let has_own = layout.tells_usage && used(&node.usage, &node.cost).is_some();
        let used = match node.runs_nothing() || !has_own {
            true => used(&subtree.usage, &subtree.cost),
            false => used_by(node, layout),
        };
        self.branch(node, &name, used, layout)
    }

    fn name(&self, node: &Node) -> String {
        match self.ids.and_then(|ids| ids.get(&node.run)) {
            Some(id) => format!("{} {}", name::of(node), self.style.faint(id)),
            None => name::of(node),
        }
    }

    fn branch(
        &self,
        node: &'a Node,
        name: &str,
        used: Option<String>,
        layout: &Layout<'_>,
    ) -> Branch {
        let silence = self.silences.and_then(|silences| silences.get(&node.run));
        let line = RunLine {
            status: Some(node.status),
            time: self.now.map_or_else(|| node.execution_time(), |now| node.age(now)),
            is_at_least: node.left_at().is_some(),
            silence: silence.copied().filter(|_| is_at_work(node)),
            used,
            reported: node.reported.as_deref(),
            reason: why(node),
            not_removed: node.not_removed.as_deref(),
            style: self.style,
        };
        let (shown, left): (Vec<_>, Vec<_>) =
            self.tree.children(node).partition(|child| layout.visible.contains(&child.run));
        let mut below: Vec<Branch> = Vec::with_capacity(shown.len() + 1);
        below.extend(shown.into_iter().map(|child| {
            let name = format!("{} (depth {})", self.name(child), child.depth);
            self.branch(child, &name, used_by(child, layout), layout)
        }));
        if !left.is_empty() {
            let text = self.style.faint(self.more(&left)).to_string();
            below.push(Branch { text, below: Vec::new(), style: self.style });
        }
        let mut text = format!("{name}  {line}");
        let held = self.holds(node).into_iter().map(Hold::text);
        for held in needs(self.tree, node).into_iter().chain(held) {
            text.push_str("  ");
            text.push_str(&held);
        }
        Branch { text, below, style: self.style }
    }

    /// Returns what holds a run back. That the tree is paused stands beside the tops alone.
    pub(crate) fn holds(&self, node: &'a Node) -> Vec<Hold<'a>> {
        let is_top = self.tops.iter().any(|top| top.run == node.run);
        let paused = self
            .tree
            .holds(node.root)
            .paused_since
            .filter(|_| is_top && !node.status.is_terminal());
        let beside = Hold::beside_root(self.tree, node);
        paused.map(Hold::Paused).into_iter().chain(beside).collect()
    }

    /// Counts children that have no line of their own.
    pub(crate) fn more(&self, left: &[&Node]) -> String {
        let mut counts: BTreeMap<RunStatus, u64> = BTreeMap::new();
        let (mut deleted, mut replaced) = (0, 0);
        for child in left {
            match self.shows == Shows::Usual && self.tree.is_deleted(child) {
                true => deleted += 1,
                false if child.replaced_by.is_some() => replaced += 1,
                false => *counts.entry(child.status).or_default() += 1,
            }
        }
        let more = if self.shows == Shows::Busy { "" } else { "more " };
        let mut counts: Vec<String> = counts
            .iter()
            .map(|(status, count)| {
                format!("{} {more}{}", number::count(*count), status_words(*status))
            })
            .collect();
        if replaced > 0 {
            let before = number::count(replaced);
            counts.push(format!("{before} whose place another run has taken"));
        }
        if deleted > 0 {
            counts.push(format!("{} deleted", number::count(deleted)));
        }
        format!("… {}", counts.join(", "))
    }
}

impl fmt::Display for TreeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tops.is_empty() {
            return write!(f, "{}", self.style.status(RunStatus::Idle));
        }
        let layout = self.layout();
        for (position, top) in self.tops.iter().copied().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.top(top, &layout))?;
        }
        Ok(())
    }
}

/// Returns the status of [`QUIET`] that a run and everything below it have, as its index.
fn quiet(node: &Node, subtrees: &Subtrees<'_>) -> Option<usize> {
    let quiet = QUIET.iter().position(|status| subtrees.of(node).statuses.are_all(*status));
    // A run that was lost while it stood in line has nothing to tell; one that was at work has.
    quiet.filter(|_| node.status != RunStatus::Lost || node.started_at.is_none())
}

/// Returns the usage of the run itself, and apart from it that of what is below.
fn used_by(node: &Node, layout: &Layout<'_>) -> Option<String> {
    if !layout.tells_usage {
        return None;
    }
    let own = used(&node.usage, &node.cost);
    let subtree = layout.subtrees.of(node);
    if subtree.runs == 1 {
        return own;
    }
    let whole = used(&subtree.usage, &subtree.cost).filter(|whole| Some(whole) != own.as_ref());
    match (own, whole) {
        (Some(own), Some(whole)) => Some(format!("{own}  with what is below {whole}")),
        (own, whole) => own.or(whole.map(|whole| format!("below {whole}"))),
    }
}
