//! Trees that are held back.

use std::collections::HashMap;

use offshoot_model::{Event, EventKind, Holds, RootId, RunId, TreeHolds};
use serde::Serialize;

use super::page::is_zero;
use crate::held::Hold;
use crate::{name, number};

/// A tree of which nothing more starts, or no run of some agents.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldTree {
    /// The root of the tree.
    pub run_id: RunId,
    /// The name of the root for people.
    pub name: String,
    /// The reasons.
    #[serde(flatten)]
    pub holds: TreeHolds,
    /// The number of runs that wait for another attempt.
    #[serde(skip_serializing_if = "is_zero")]
    pub parked_runs: usize,
}

impl HeldTree {
    fn is_held(&self) -> bool {
        !self.holds.is_empty() || self.parked_runs > 0
    }
}

/// The trees that are not over, and what holds them back.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenTrees {
    names: HashMap<RootId, String>,
    open: Vec<RootId>,
    holds: Holds,
    /// The runs that wait for another attempt, with their trees.
    parked: HashMap<RunId, RootId>,
}

impl OpenTrees {
    /// Takes in one event, of any run.
    pub(super) fn apply(&mut self, event: &Event) {
        self.holds.apply(event);
        match &event.kind {
            EventKind::Resumed { after: Some(_), .. } => {
                self.parked.insert(event.run, event.root);
            }
            EventKind::Starting | EventKind::Ended(_) => drop(self.parked.remove(&event.run)),
            _ => {}
        }
        if event.run != event.root.run() {
            return;
        }
        match &event.kind {
            EventKind::Admitted(admitted) => {
                let name = name(&admitted.agent, admitted.label.as_deref());
                self.names.insert(event.root, name);
                self.open.push(event.root);
            }
            EventKind::RootReopened(_) => self.open.push(event.root),
            EventKind::Ended(_) => self.close(event.root),
            _ => {}
        }
    }

    /// Takes in that a tree is over, or that no supervisor holds it.
    pub(super) fn close(&mut self, root: RootId) {
        self.open.retain(|open| *open != root);
    }

    /// Returns those that are held back, the oldest first.
    pub(super) fn held(self) -> Vec<HeldTree> {
        let held = |root: &RootId| HeldTree {
            run_id: root.run(),
            name: self.names.get(root).cloned().unwrap_or_default(),
            holds: self.holds.of(*root).clone(),
            parked_runs: self.parked.values().filter(|of| *of == root).count(),
        };
        let all = self.open.iter().map(held);
        all.filter(HeldTree::is_held).collect()
    }
}

impl HeldTree {
    /// Returns a line for each reason.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let parked = match self.parked_runs {
            0 => None,
            1 => Some("1 run is parked until its next attempt".to_owned()),
            many => Some(format!(
                "{} runs are parked until their next attempts",
                number::count(many as u64)
            )),
        };
        let holds = Hold::of_tree(&self.holds);
        holds.map(Hold::text).chain(parked).map(|text| format!("{}: {text}", self.name))
    }
}
