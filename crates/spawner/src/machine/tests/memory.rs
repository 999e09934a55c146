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
    /// Told, and not acted upon: each with the last request to a model that had left by then.
    fresh: BTreeMap<Said, u64>,
    /// The last request to a model that has left.
    last_request: u64,
}

impl Memory {
    pub(super) fn written(&mut self, to: RunId, letter: u64) {
        self.written.entry(to).or_default().push(letter);
    }

    pub(super) fn letters_to(&self, run: RunId) -> Vec<u64> {
        self.written.get(&run).cloned().unwrap_or_default()
    }

    pub(super) fn told(&mut self, run: RunId, what: Said) {
        let heard = self.agents.entry(run).or_default();
        heard.fresh.insert(what, heard.last_request);
    }

    pub(super) fn knows(&self, run: RunId, what: Said) -> bool {
        let heard = self.agents.get(&run);
        heard.is_some_and(|heard| heard.kept.contains(&what) || heard.fresh.contains_key(&what))
    }

    /// Takes an act of an agent on the record as proof that it had heard what it was told before.
    pub(super) fn acted(&mut self, event: &Event) {
        let run = match &event.kind {
            EventKind::Used { .. }
            | EventKind::Refused { .. }
            | EventKind::Kept { .. }
            | EventKind::ObservationOpened { .. }
            | EventKind::ObservationClosed { .. }
            | EventKind::Reported { .. }
            | EventKind::TurnEnded { .. } => event.run,
            &EventKind::RequestReserved { request, .. } => {
                self.agents.entry(event.run).or_default().last_request = request;
                return;
            }
            // A model that was asked before it was told something may answer without having heard of it.
            &EventKind::RequestSettled { ending: RequestEnding::Answered, request, .. } => {
                let Some(heard) = self.agents.get_mut(&event.run) else { return };
                let (known, fresh) =
                    std::mem::take(&mut heard.fresh).into_iter().partition(|(_, at)| *at < request);
                let known: BTreeMap<Said, u64> = known;
                heard.kept.extend(known.into_keys());
                heard.fresh = fresh;
                return;
            }
            EventKind::Admitted(admitted) => match admitted.parent {
                Some(parent) => parent,
                None => return,
            },
            _ => return,
        };
        let Some(heard) = self.agents.get_mut(&run) else { return };
        heard.kept.extend(std::mem::take(&mut heard.fresh).into_keys());
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
