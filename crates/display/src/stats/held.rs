//! Trees that are held back.

use std::collections::HashMap;

use offshoot_model::{
    Event, EventKind, FullAccount, Holds, OpenBreaker, Pace, Priming, RootId, RunId, Timestamp,
    Wall, rfc3339,
};
use serde::Serialize;

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
    /// The time since which it is paused.
    #[serde(serialize_with = "rfc3339", skip_serializing_if = "Option::is_none")]
    pub paused_since: Option<Timestamp>,
    /// The time since which runs wait for memory.
    #[serde(serialize_with = "rfc3339", skip_serializing_if = "Option::is_none")]
    pub memory_short_since: Option<Timestamp>,
    /// The time since which runs wait for a slot of the host.
    #[serde(serialize_with = "rfc3339", skip_serializing_if = "Option::is_none")]
    pub host_full_since: Option<Timestamp>,
    /// The agents of which no run starts for a while.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_breakers: Vec<OpenBreaker>,
    /// The accounts of which no run starts before the reset of a quota.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub walls: Vec<Wall>,
    /// The accounts of which a bounded number of runs works at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paces: Vec<Pace>,
    /// The runs for whose first answer others wait that send the same prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub primings: Vec<Priming>,
    /// The accounts of which runs wait for a slot, which the trees of the user share.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full_accounts: Vec<FullAccount>,
    /// The number of runs that wait for another attempt.
    #[serde(skip_serializing_if = "is_zero")]
    pub parked_runs: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl HeldTree {
    fn is_held(&self) -> bool {
        let since = [self.paused_since, self.memory_short_since, self.host_full_since];
        since.iter().any(Option::is_some)
            || !self.open_breakers.is_empty()
            || !self.walls.is_empty()
            || !self.paces.is_empty()
            || !self.primings.is_empty()
            || !self.full_accounts.is_empty()
            || self.parked_runs > 0
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
            paused_since: self.holds.paused(*root),
            memory_short_since: self.holds.memory_short(*root),
            host_full_since: self.holds.host_full(*root),
            open_breakers: self.holds.open_breakers(*root).cloned().collect(),
            walls: self.holds.walls(*root).cloned().collect(),
            paces: self.holds.paces(*root).cloned().collect(),
            primings: self.holds.primings(*root).cloned().collect(),
            full_accounts: self.holds.full_accounts(*root).cloned().collect(),
            parked_runs: self.parked.values().filter(|of| *of == root).count(),
        };
        let all = self.open.iter().map(held);
        all.filter(HeldTree::is_held).collect()
    }
}

impl HeldTree {
    /// Returns a line for each reason.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let paused = self.paused_since.map(Hold::Paused);
        let holds = paused.into_iter().chain(self.walls.iter().map(Hold::Wall));
        let holds = holds.chain(self.paces.iter().map(Hold::Pace));
        let holds = holds.chain(self.primings.iter().map(Hold::Priming));
        let holds = holds.chain(self.memory_short_since.map(Hold::Memory));
        let holds = holds.chain(self.host_full_since.map(Hold::Host));
        let holds = holds.chain(self.full_accounts.iter().map(Hold::Account));
        let holds = holds.chain(self.open_breakers.iter().map(Hold::Breaker));
        let parked = match self.parked_runs {
            0 => None,
            1 => Some("1 run is parked until its next attempt".to_owned()),
            many => Some(format!(
                "{} runs are parked until their next attempts",
                number::count(many as u64)
            )),
        };
        holds.map(Hold::text).chain(parked).map(|text| format!("{}: {text}", self.name))
    }
}
