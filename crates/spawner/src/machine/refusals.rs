//! Refusals: each on record, until one run has had so many that it must be in a loop.

use offshoot_model::{EventKind, Refusal};

use super::Machine;
use super::run::RunIndex;

/// The number of refusals of one run that are recorded as they come. Further ones are counted, so that an agent that asks
/// in a loop does not fill the disk.
const ONE_BY_ONE: u32 = 100;

/// The refusals that one run got.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    pub(super) recorded: u32,
    /// The last refusal of each code that is not on record yet, and how many there were.
    counted: Vec<(Box<Refusal>, u64)>,
}

impl Machine {
    /// A run was refused a child. One that is over is answered, and nothing is recorded of it.
    pub(super) fn refused(&mut self, caller: RunIndex, refusal: &Refusal) {
        let Some(live) = self.runs.live(caller) else { return };
        let recorded = live.refusals.as_ref().map_or(0, |refusals| refusals.recorded);
        let refusal = Box::new(refusal.clone());
        if recorded < ONE_BY_ONE {
            self.append(caller, EventKind::Refused { refusal, times: None });
            return;
        }
        let live =
            self.runs.live_mut(caller).expect("the run ended within the step that looked at it");
        let refusals = live.refusals.get_or_insert_default();
        match refusals.counted.iter_mut().find(|(known, _)| known.code == refusal.code) {
            Some((known, times)) => (*known, *times) = (refusal, *times + 1),
            None => refusals.counted.push((refusal, 1)),
        }
    }

    /// A refusal of a run is on record by itself.
    pub(super) fn refusal_recorded(&mut self, caller: RunIndex) {
        if let Some(live) = self.runs.live_mut(caller) {
            live.refusals.get_or_insert_default().recorded += 1;
        }
    }

    /// Records what was counted of a run, before its next event.
    pub(super) fn record_refusals(&mut self, run: RunIndex) {
        let refusals = self.runs.live_mut(run).and_then(|live| live.refusals.as_mut());
        let Some(refusals) = refusals.filter(|refusals| !refusals.counted.is_empty()) else {
            return;
        };
        for (refusal, times) in std::mem::take(&mut refusals.counted) {
            let times = Some(times);
            self.append(run, EventKind::Refused { refusal, times });
        }
    }
}
