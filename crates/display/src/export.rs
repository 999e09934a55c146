//! A tree to hand on: a page for a browser, or a graph in the language of another program.
//!
//! ```text
//!                   ┌──▶ html     tree, times, costs, failures, ends of logs, the answer
//!  tree, stats ─────┼──▶ mermaid  the tree alone
//!  excerpts         └──▶ dot      the same
//! ```
//!
//! All of it is bounded: what is left out is counted where it would stand.

mod graph;
mod html;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use offshoot_model::{Node, RunId, Stream, Timestamp, Tree};

use crate::held::Hold;
use crate::stats::StatsPage;
use crate::tree::{Shows, TreeText};

/// A run and everything below it, with what is to be told of it beside the tree.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// The run at the top.
    pub top: &'a Node,
    /// The numbers over these runs.
    pub stats: &'a StatsPage,
    /// The task of the run at the top.
    pub task: Option<Excerpt>,
    /// The answer of the run at the top.
    pub answer: Option<Excerpt>,
    /// The last lines of what some of the runs said.
    pub said: Vec<SaidEnd>,
    /// The time for which each of these runs has been silent.
    pub silences: &'a HashMap<RunId, Duration>,
    /// The moment at which the age of what runs is told.
    pub now: Timestamp,
    /// So many runs below the top have a row or a node: first those with something to tell, and upper levels before lower ones.
    pub limit: usize,
}

/// The beginning of a text.
#[derive(Clone, Debug, Default)]
pub struct Excerpt {
    /// The text, as an agent wrote it.
    pub text: String,
    /// The bytes that follow.
    pub left_out: u64,
}

/// The end of what a run said.
#[derive(Clone, Debug)]
pub struct SaidEnd {
    /// The run.
    pub run: RunId,
    /// The last lines, as the agent wrote them. Without a stream, the reason why something is missing here.
    pub lines: Vec<(Option<Stream>, String)>,
    /// The lines before these.
    pub left_out: u64,
}

/// A row of the picture.
enum Row<'a> {
    Run {
        node: &'a Node,
        /// The reasons that hold it back.
        held: Vec<String>,
        /// The time since its last sign of life, where it runs.
        silence: Option<Duration>,
        /// The row of its parent.
        parent: Option<usize>,
        /// Levels below the top.
        level: usize,
    },
    /// Children that have no row, counted.
    More { text: String, parent: usize, level: usize },
}

impl<'a> Row<'a> {
    /// The run of the row, where it is that of one.
    fn node(&self) -> Option<&'a Node> {
        match self {
            Self::Run { node, .. } => Some(*node),
            Self::More { .. } => None,
        }
    }
}

impl<'a> Export<'a> {
    /// Returns the runs whose last lines are worth a place, at most so many: an example of each cause, the other failures, what
    /// runs, the top, the rest.
    pub fn speakers(tree: &Tree, top: &Node, stats: &StatsPage, most: usize) -> Vec<RunId> {
        let mut below = Vec::new();
        gather(tree, top, &mut below);
        below.retain(|node| node.started_at.is_some() && !node.runs_nothing());
        let rank = |node: &&Node| match node.status {
            status if status.is_success() => 2,
            status if status.is_terminal() => 0,
            _ => 1,
        };
        below.sort_by_key(rank);
        let failures = below.iter().take_while(|node| rank(node) < 2).count();
        let (failures, rest) = below.split_at(failures);
        let examples = stats.causes.iter().map(|cause| cause.run_id);
        let ids = |nodes: &[&Node]| nodes.iter().map(|node| node.run).collect::<Vec<_>>();
        let top = (!top.runs_nothing()).then_some(top.run);
        let ranked = examples.chain(ids(failures)).chain(top).chain(ids(rest));
        let mut seen = HashSet::new();
        ranked.filter(|run| seen.insert(*run)).take(most).collect()
    }

    /// Returns a page that needs nothing beside it.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// Returns a flowchart for Mermaid.
    pub fn mermaid(&self) -> String {
        graph::mermaid(&self.rows())
    }

    /// Returns a graph for Graphviz.
    pub fn dot(&self) -> String {
        graph::dot(&self.rows())
    }

    fn rows(&self) -> Vec<Row<'a>> {
        let text = TreeText {
            shows: Shows::All,
            limit: Some(self.limit),
            ..TreeText::of(self.tree, self.top)
        };
        let visible = text.visible();
        let mut rows = Vec::new();
        add(&text, &visible, self.top, (None, 0), &mut rows);
        for row in &mut rows {
            if let Row::Run { node, silence, .. } = row {
                *silence = self.silences.get(&node.run).copied();
            }
        }
        rows
    }
}

fn add<'a>(
    text: &TreeText<'a>,
    visible: &HashSet<RunId>,
    node: &'a Node,
    (parent, level): (Option<usize>, usize),
    rows: &mut Vec<Row<'a>>,
) {
    let at = rows.len();
    let held = text.holds(node).into_iter().map(Hold::text).collect();
    rows.push(Row::Run { node, held, silence: None, parent, level });
    let children = text.tree.children(node);
    let (shown, left): (Vec<_>, Vec<_>) = children.partition(|child| visible.contains(&child.run));
    for child in shown {
        add(text, visible, child, (Some(at), level + 1), rows);
    }
    if !left.is_empty() {
        rows.push(Row::More { text: text.more(&left), parent: at, level: level + 1 });
    }
}

fn gather<'a>(tree: &'a Tree, node: &'a Node, out: &mut Vec<&'a Node>) {
    out.push(node);
    tree.children(node).for_each(|child| gather(tree, child, out));
}
