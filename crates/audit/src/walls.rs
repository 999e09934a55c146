//! Quotas of accounts, counted again: who may start while one is used up.

use std::collections::BTreeMap;

use offshoot_model::{Account, Reason, RunId, Timestamp};

/// The accounts of a tree of which a quota is used up, by the name of their runtime: in one life of a tree a runtime has one
/// account.
#[derive(Default)]
pub(crate) struct Walls(BTreeMap<Account, Wall>);

struct Wall {
    /// The time from which one run may start.
    until: Timestamp,
    /// The run that has started since.
    probe: Option<RunId>,
}

impl Walls {
    /// No run of this account may start before this time, and then one.
    pub(crate) fn parked(&mut self, account: &Account, until: Timestamp) {
        self.0.insert(account.clone(), Wall { until, probe: None });
    }

    /// Runs of the account may start again.
    pub(crate) fn unparked(&mut self, account: &Account) {
        self.0.remove(account);
    }

    /// A new supervisor: nothing runs, so another run may be the first.
    pub(crate) fn clear_probes(&mut self) {
        self.0.values_mut().for_each(|wall| wall.probe = None);
    }

    /// A run of this runtime starts; in words what is wrong with that.
    pub(crate) fn start(&mut self, runtime: &str, run: RunId, at: Timestamp) -> Option<String> {
        let mut of_runtime = self.0.iter_mut().filter(|(account, _)| *account.runtime == *runtime);
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
        for wall in self.0.values_mut().filter(|wall| wall.probe == Some(run)) {
            wall.probe = None;
        }
    }

    /// Returns true if a quota of this runtime is used up.
    pub(crate) fn is_parked(&self, runtime: &str) -> bool {
        self.0.keys().any(|account| *account.runtime == *runtime)
    }

    /// Returns the latest time before which no run of an account may start.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.0.values().map(|wall| wall.until).max()
    }
}

/// True if a run stands in line again because a quota of its account is used up.
pub(crate) fn is_wall(after: &Reason) -> bool {
    matches!(after, Reason::Quota { .. })
}
