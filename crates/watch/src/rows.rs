//! The lines of the table: which runs have one, and in which order.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use offshoot_display::is_at_work;
use offshoot_model::{Cost, MicroUsd, Node, RunId, RunStatus, Subtrees, Timestamp, Tree, Usage};

use crate::filter::Filter;
use crate::order::Order;

/// The run that a line stands for, or the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RowId {
    /// One run.
    Run(RunId),
    /// All children of a run that have this status with everything below them.
    Group(RunId, RunStatus),
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: RowId,
    /// Levels below the top.
    pub(crate) level: u16,
    /// True where what is below it is shown; none where there is nothing.
    pub(crate) open: Option<bool>,
    /// The number of runs that it stands for.
    pub(crate) runs: u64,
    /// With what is below it in a tree; its own in a table.
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
}

/// Everything that decides which lines there are.
pub(crate) struct Wanted<'a> {
    pub(crate) tree: &'a Tree,
    /// The run that is shown with all below it; none for all trees.
    pub(crate) top: Option<RunId>,
    pub(crate) order: Order,
    pub(crate) filter: &'a Filter,
    /// Runs that are folded, and groups that are not.
    pub(crate) folds: &'a HashSet<RowId>,
    pub(crate) selected: Option<RowId>,
    pub(crate) now: Timestamp,
    pub(crate) silences: &'a HashMap<RunId, Duration>,
}

/// Statuses in which one run more shows nothing new.
const QUIET: [RunStatus; 2] = [RunStatus::Completed, RunStatus::Queued];

/// So many children of such a status have a line each; more share one.
const EACH: usize = 3;

/// A part of the tree that is yet to be put into lines.
enum Part<'a> {
    Run(&'a Node),
    Group(RunId, RunStatus, Vec<&'a Node>),
}

impl<'a> Wanted<'a> {
    /// The lines.
    pub(crate) fn rows(&self) -> Vec<Row> {
        match self.order {
            Order::Tree => self.of_tree(),
            order => self.of_table(order),
        }
    }

    fn of_tree(&self) -> Vec<Row> {
        let subtrees = self.tree.subtrees();
        let matches = (!self.filter.is_empty()).then(|| self.matches());
        let is_shown =
            |node: &&Node| matches.as_ref().is_none_or(|found| found.contains(&node.run));
        let mut rows = Vec::new();
        let tops = tops(self.tree, self.top).into_iter().filter(is_shown);
        let mut parts: Vec<(Part<'_>, u16)> = tops.map(|top| (Part::Run(top), 0)).collect();
        parts.reverse();
        while let Some((part, level)) = parts.pop() {
            let first = parts.len();
            match part {
                Part::Run(node) => {
                    let id = RowId::Run(node.run);
                    let below = self.below(node, &subtrees, matches.as_ref());
                    let open = (!below.is_empty()).then(|| !self.folds.contains(&id));
                    let sum = subtrees.of(node);
                    rows.push(Row { id, level, open, runs: 1, usage: sum.usage, cost: sum.cost });
                    if open == Some(true) {
                        parts.extend(below.into_iter().map(|part| (part, level + 1)));
                    }
                }
                Part::Group(parent, status, nodes) => {
                    let id = RowId::Group(parent, status);
                    let open = self.folds.contains(&id);
                    let (mut usage, mut cost) = (Usage::default(), Cost::NONE);
                    for node in &nodes {
                        let sum = subtrees.of(node);
                        (usage, cost) = (usage + sum.usage, cost + sum.cost);
                    }
                    let runs = nodes.len() as u64;
                    rows.push(Row { id, level, open: Some(open), runs, usage, cost });
                    if open {
                        parts.extend(nodes.into_iter().map(|node| (Part::Run(node), level + 1)));
                    }
                }
            }
            parts[first..].reverse();
        }
        rows
    }

    /// The children of a run: first those that are shown each, then the groups.
    fn below(
        &self,
        node: &'a Node,
        subtrees: &Subtrees<'_>,
        matches: Option<&HashSet<RunId>>,
    ) -> Vec<Part<'a>> {
        // In place of a run that ran again, its newest run is shown.
        let children = self.tree.children(node).filter(|child| {
            child.replaced_by.is_none()
                && !self.tree.is_deleted(child)
                && matches.is_none_or(|found| found.contains(&child.run))
        });
        let quiet = |child: &Node| {
            let is_selected = self.selected == Some(RowId::Run(child.run));
            let statuses = subtrees.of(child).statuses;
            let found = QUIET.iter().position(|status| statuses.are_all(*status));
            // The selected run does not vanish when it ends. In an open group it would not.
            let stays = |status: RunStatus| {
                is_selected && !self.folds.contains(&RowId::Group(node.run, status))
            };
            found.filter(|it| matches.is_none() && !stays(QUIET[*it]))
        };
        let children: Vec<(&Node, Option<usize>)> =
            children.map(|child| (child, quiet(child))).collect();
        let mut groups: [Vec<&Node>; QUIET.len()] = Default::default();
        for (child, quiet) in &children {
            quiet.iter().for_each(|group| groups[*group].push(child));
        }
        let is_grouped = |quiet: Option<usize>| quiet.is_some_and(|it| groups[it].len() > EACH);
        let each = children.iter().filter(|(_, quiet)| !is_grouped(*quiet));
        let mut parts: Vec<Part<'_>> = each.map(|(child, _)| Part::Run(child)).collect();
        for (status, group) in QUIET.into_iter().zip(groups) {
            if group.len() > EACH {
                parts.push(Part::Group(node.run, status, group));
            }
        }
        parts
    }

    /// Every run that the filter takes, with its line of parents.
    fn matches(&self) -> HashSet<RunId> {
        let mut found = HashSet::new();
        for node in self.tree.nodes().filter(|node| self.filter.takes(node)) {
            let mut at = Some(node);
            while let Some(here) = at.filter(|here| found.insert(here.run)) {
                at = here.parent.and_then(|parent| self.tree.get(parent));
            }
        }
        found
    }

    fn of_table(&self, order: Order) -> Vec<Row> {
        let inside = self.top.map(|top| self.inside(top));
        let mut nodes: Vec<&Node> = self
            .tree
            .nodes()
            .filter(|node| !node.runs_nothing() && node.replaced_by.is_none())
            .filter(|node| inside.as_ref().is_none_or(|inside| inside.contains(&node.run)))
            .filter(|node| self.filter.takes(node))
            .collect();
        match order {
            Order::Tree => {}
            // Of those that say nothing any more, the last first.
            Order::Silence => nodes.sort_by_cached_key(|node| {
                let silence = self.silences.get(&node.run).filter(|_| is_at_work(node));
                (Reverse(silence), node.status.is_terminal(), Reverse(node.ended_at))
            }),
            Order::Age => nodes.sort_by_cached_key(|node| Reverse(node.age(self.now))),
            Order::Cost => nodes.sort_by_cached_key(|node| {
                let known: MicroUsd = node.cost.dollars();
                Reverse((known, node.usage.total().charged()))
            }),
        }
        let row = |node: &Node| Row {
            id: RowId::Run(node.run),
            level: 0,
            open: None,
            runs: 1,
            usage: node.usage,
            cost: node.cost,
        };
        nodes.into_iter().map(row).collect()
    }

    /// A run and everything below it.
    pub(crate) fn inside(&self, top: RunId) -> HashSet<RunId> {
        let mut inside = HashSet::from([top]);
        // A run is admitted after its parent.
        for node in self.tree.nodes() {
            if node.parent.is_some_and(|parent| inside.contains(&parent)) {
                inside.insert(node.run);
            }
        }
        inside
    }
}

/// The runs at the top of the screen.
pub(crate) fn tops(tree: &Tree, top: Option<RunId>) -> Vec<&Node> {
    match top {
        Some(top) => tree.get(top).into_iter().collect(),
        None => tree.roots().collect(),
    }
}
