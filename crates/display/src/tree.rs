//! The tree as text.
//!
//! ```text
//! main 0198…  completed  4.1 s  12,340 tokens  $0.04
//! ├─ scout (depth 1)  completed  1.2 s
//! └─ … 985 more completed
//! ```
//!
//! Only what the record keeps is in the picture: a live tree and a replay of its record look the same.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use offshoot_model::{Node, Origin, RunId, RunStatus, Tree};

use crate::branch::{Branch, RunLine, beside_status};
use crate::style::Style;
use crate::{name, number, used};

/// A picture of a tree, shown without a newline at its end.
#[derive(Clone, Debug)]
pub struct TreeText<'a> {
    tree: &'a Tree,
    tops: Vec<&'a Node>,
    style: Style,
    all: bool,
    growing: bool,
}

/// Pieces that are done, or not yet begun, and shown before the rest of their kind is counted instead: a screen's
/// worth at most.
const SHOWN: usize = 15;

/// The statuses in which one run more shows nothing new.
const QUIET: [RunStatus; 2] = [RunStatus::Completed, RunStatus::Queued];

impl<'a> TreeText<'a> {
    /// All roots.
    pub fn new(tree: &'a Tree) -> Self {
        Self { tree, tops: tree.roots().collect(), style: Style::Plain, all: false, growing: false }
    }

    /// One run and what is below it.
    pub fn of(tree: &'a Tree, top: &'a Node) -> Self {
        Self { tree, tops: vec![top], style: Style::Plain, all: false, growing: false }
    }

    /// In this style; plain unless asked.
    #[must_use]
    pub fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Only what runs right now, with its line of parents; the rest is counted. For a screen, while the tree grows.
    #[must_use]
    pub fn growing(mut self) -> Self {
        self.growing = true;
        self
    }

    /// Every run in a line of its own, however many.
    #[must_use]
    pub fn all(mut self, all: bool) -> Self {
        self.all = all;
        self
    }

    fn top(&self, node: &'a Node, ids: &HashMap<RunId, String>) -> Branch {
        let id = ids.get(&node.run).map_or("", String::as_str);
        let mut name = format!("{} {}", name::of(node), self.style.faint(format_args!("{id}…")));
        if node.depth > 0 {
            name.push_str(&format!(" (depth {})", node.depth));
        }
        let (usage, cost) = self.tree.subtree(node);
        self.branch(node, &name, used(&usage, &cost))
    }

    fn branch(&self, node: &'a Node, name: &str, used: Option<String>) -> Branch {
        let line = RunLine {
            status: Some(node.status),
            time: node.execution_time(),
            used,
            reason: node.reason.as_ref().map(beside_status),
            not_removed: node.not_removed.as_deref(),
            style: self.style,
        };
        let below = self.rows(node).into_iter().map(|row| match row {
            Row::More(more) => {
                let text = self.style.faint(more).to_string();
                Branch { text, below: Vec::new(), style: self.style }
            }
            Row::Run(child) => {
                let name = format!("{} (depth {})", name::of(child), child.depth);
                self.branch(child, &name, used_by(child))
            }
        });
        Branch { text: format!("{name}  {line}"), below: below.collect(), style: self.style }
    }

    fn rows(&self, node: &'a Node) -> Vec<Row<'a>> {
        if self.growing {
            return self.growing_rows(node);
        }
        let is_shown = |child: &&Node| self.all || !self.tree.is_deleted(child);
        let shown = self.tree.children(node).filter(is_shown);
        let children: Vec<(&Node, Option<usize>)> =
            shown.map(|child| (child, self.quiet(child))).collect();
        let deleted = self.tree.children(node).len() - children.len();
        let mut totals = [0; QUIET.len()];
        children.iter().filter_map(|(_, quiet)| *quiet).for_each(|quiet| totals[quiet] += 1);
        // One run left out saves no line.
        let is_cut = |quiet: usize| !self.all && totals[quiet] > SHOWN + 1;
        let mut shown = [0; QUIET.len()];
        let mut rows = Vec::new();
        for (child, quiet) in children {
            if let Some(quiet) = quiet.filter(|quiet| is_cut(*quiet)) {
                shown[quiet] += 1;
                if shown[quiet] > SHOWN {
                    continue;
                }
            }
            rows.push(Row::Run(child));
        }
        let more = |quiet: usize| {
            let more = (totals[quiet] - SHOWN) as u64;
            format!("{} more {}", number::count(more), QUIET[quiet])
        };
        let mut more: Vec<String> =
            (0..QUIET.len()).filter(|quiet| is_cut(*quiet)).map(more).collect();
        if deleted > 0 {
            more.push(format!("{} deleted", number::count(deleted as u64)));
        }
        if !more.is_empty() {
            rows.push(Row::More(format!("… {}", more.join(", "))));
        }
        rows
    }

    fn growing_rows(&self, node: &'a Node) -> Vec<Row<'a>> {
        let mut counts: BTreeMap<RunStatus, u64> = BTreeMap::new();
        let mut rows = Vec::new();
        for child in self.tree.children(node) {
            match self.is_busy(child) {
                true => rows.push(Row::Run(child)),
                false => *counts.entry(child.status).or_default() += 1,
            }
        }
        if !counts.is_empty() {
            let counts = counts.iter().map(|(status, count)| {
                let status = status.as_ref().replace('_', " ");
                format!("{} {status}", number::count(*count))
            });
            rows.push(Row::More(format!("… {}", counts.collect::<Vec<_>>().join(", "))));
        }
        rows
    }

    /// True if the run, or any run below it, has a slot or waits for its children.
    fn is_busy(&self, node: &Node) -> bool {
        let rests = node.status.is_terminal() || QUIET.contains(&node.status);
        !rests || self.tree.children(node).any(|child| self.is_busy(child))
    }

    /// Returns the status of [`QUIET`] that a piece and everything below it has, as its index.
    fn quiet(&self, node: &Node) -> Option<usize> {
        let quiet = QUIET.iter().position(|status| *status == node.status)?;
        (node.origin == Origin::Piece && self.is_uniform(node)).then_some(quiet)
    }

    /// True if everything below the run has the status of the run.
    fn is_uniform(&self, node: &Node) -> bool {
        self.tree.children(node).all(|child| child.status == node.status && self.is_uniform(child))
    }
}

impl fmt::Display for TreeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tops.is_empty() {
            return write!(f, "{}", self.style.status(RunStatus::Idle));
        }
        let ids = name::beginnings(self.tops.iter().map(|top| top.run));
        for (position, top) in self.tops.iter().copied().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.top(top, &ids))?;
        }
        Ok(())
    }
}

/// Returns the usage of the run itself.
fn used_by(node: &Node) -> Option<String> {
    used(&node.usage, &node.cost)
}

enum Row<'a> {
    Run(&'a Node),
    More(String),
}
