//! Accounts, counted again: which of their runs may start while a quota is used up, or while a bounded number of them works.

use std::collections::{BTreeMap, BTreeSet};

use offshoot_model::{Account, EventKind, Reason, RunId, Timestamp};

/// The accounts of a tree of which a quota is used up, or a bounded number of runs works at once. They are found by the name of their
/// runtime: in one life of a tree a runtime has one account.
#[derive(Default)]
pub(crate) struct Walls {
    walls: BTreeMap<Account, Wall>,
    /// The number of runs without children that may work at once.
    paces: BTreeMap<Account, u32>,
    /// The runs with an attempt under way.
    under_way: BTreeSet<RunId>,
}

struct Wall {
    /// The time from which one run may start.
    until: Timestamp,
    /// The run that has started since.
    probe: Option<RunId>,
}

impl Walls {
    /// Takes in what may start of an account.
    pub(crate) fn told(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Parked { account, until, .. } => {
                self.walls.insert(account.clone(), Wall { until: *until, probe: None });
            }
            EventKind::Unparked { account } => drop(self.walls.remove(account)),
            EventKind::Paced { account, most: Some(most) } => {
                self.paces.insert(account.clone(), *most);
            }
            EventKind::Paced { account, most: None } => drop(self.paces.remove(account)),
            _ => {}
        }
    }

    /// A new supervisor: nothing runs, so another run may be the first.
    pub(crate) fn clear_probes(&mut self) {
        self.under_way.clear();
        self.walls.values_mut().for_each(|wall| wall.probe = None);
    }

    /// A run of this runtime starts; `works` says which runs of the runtime hold a slot and have no children. In words what is wrong with
    /// that.
    pub(crate) fn start(
        &mut self,
        runtime: &str,
        (run, at): (RunId, Timestamp),
        works: impl Fn(RunId) -> bool,
    ) -> Option<String> {
        self.under_way.insert(run);
        let pace = self.paces.iter().find(|(account, _)| *account.runtime == *runtime);
        if let Some((_, most)) = pace {
            let working = self.under_way.iter().filter(|run| works(**run)).count();
            if working > *most as usize {
                return Some(format!(
                    "at most {most} runs of `{runtime}` were to work at once, and {working} did"
                ));
            }
        }
        let mut of_runtime =
            self.walls.iter_mut().filter(|(account, _)| *account.runtime == *runtime);
        let (_, wall) = of_runtime.next()?;
        if at < wall.until {
            let until = wall.until;
            return Some(format!(
                "a quota of `{runtime}` was used up, and none was to start before {until}"
            ));
        }
        match wall.probe {
            Some(probe) if probe != run => Some(format!(
                "a quota of `{runtime}` had been used up, and {probe}, which was started to see about it, had not told"
            )),
            _ => {
                wall.probe = Some(run);
                None
            }
        }
    }

    /// A run has ended or stands in line again.
    pub(crate) fn over(&mut self, run: RunId) {
        self.under_way.remove(&run);
        for wall in self.walls.values_mut().filter(|wall| wall.probe == Some(run)) {
            wall.probe = None;
        }
    }

    /// Returns true if a quota of this runtime is used up.
    pub(crate) fn is_parked(&self, runtime: &str) -> bool {
        self.walls.keys().any(|account| *account.runtime == *runtime)
    }

    /// Returns the latest time before which no run of an account may start.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.walls.values().map(|wall| wall.until).max()
    }
}

/// True if a run stands in line again because a quota of its account is used up.
pub(crate) fn is_wall(after: &Reason) -> bool {
    matches!(after, Reason::Quota { .. })
}
