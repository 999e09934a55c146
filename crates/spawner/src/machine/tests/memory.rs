//! The memory of the agents of a world: the results and letters that they were told. An agent that goes on after a crash
//! remembers what it had acted upon, and nothing later; one that begins anew remembers nothing.

use std::collections::{BTreeMap, BTreeSet};

use offshoot_model::{Event, EventKind, RequestEnding, RunId};

/// One thing that an agent was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    Result(RunId),
    Letter(u64),
}

/// The memories of all agents.
#[derive(Default)]
pub(super) struct Memory {
    agents: BTreeMap<RunId, Heard>,
    written: BTreeMap<RunId, Vec<u64>>,
}

#[derive(Default)]
struct Heard {
    kept: BTreeSet<Said>,
    /// Told, and not acted upon.
    fresh: BTreeSet<Said>,
}

impl Memory {
    pub(super) fn written(&mut self, to: RunId, letter: u64) {
        self.written.entry(to).or_default().push(letter);
    }

    pub(super) fn letters_to(&self, run: RunId) -> Vec<u64> {
        self.written.get(&run).cloned().unwrap_or_default()
    }

    pub(super) fn told(&mut self, run: RunId, what: Said) {
        self.agents.entry(run).or_default().fresh.insert(what);
    }

    pub(super) fn knows(&self, run: RunId, what: Said) -> bool {
        let heard = self.agents.get(&run);
        heard.is_some_and(|heard| heard.kept.contains(&what) || heard.fresh.contains(&what))
    }

    /// Takes an act of an agent on the record as proof that it had heard what it was told before.
    pub(super) fn acted(&mut self, event: &Event) {
        let run = match &event.kind {
            EventKind::Used { .. }
            | EventKind::Refused { .. }
            | EventKind::RequestSettled { ending: RequestEnding::Answered, .. }
            | EventKind::Kept { .. }
            | EventKind::ObservationOpened { .. }
            | EventKind::ObservationClosed { .. }
            | EventKind::Reported { .. }
            | EventKind::TurnEnded { .. } => event.run,
            EventKind::Admitted(admitted) => match admitted.parent {
                Some(parent) => parent,
                None => return,
            },
            _ => return,
        };
        let Some(heard) = self.agents.get_mut(&run) else { return };
        heard.kept.append(&mut heard.fresh);
    }

    pub(super) fn crash(&mut self, goes_on: impl Fn(RunId) -> bool) {
        for (run, heard) in &mut self.agents {
            heard.fresh.clear();
            if !goes_on(*run) {
                heard.kept.clear();
            }
        }
    }
}
