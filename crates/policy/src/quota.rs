//! Quotas of accounts: a service that has refused a run until a reset is left alone until then.
//!
//! ```text
//!         a run meets the wall                    the reset has come
//!  Open ────────────────────────▶ Parked ─────────────────────────────▶ due: one probe starts
//!   ▲                               ▲                                       │
//!   │                               └────── the probe meets it again ───────┤
//!   └──────────────────────────────── the probe's first sign of success ────┘
//! ```
//!
//! A wall is no fault: it says nothing about the agent, and uses up no attempt. A probe that ends without a sign proves nothing:
//! after it the next run probes. A sign of success is for the owner of the tree to see; here it is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Account, RunId, Timestamp};

/// The walls of one tree, one for each account that has met one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    walls: BTreeMap<Account, Wall>,
    /// The part of each window that was left when it was recorded last, in millionths, and its reset.
    windows: BTreeMap<(Account, Arc<str>), (u32, Timestamp)>,
}

/// The wall of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wall {
    /// The time since which no run of the account starts, but for probes.
    pub since: Timestamp,
    /// The time from which a probe starts.
    pub until: Timestamp,
    /// The quota in the words of the service.
    pub window: Option<Arc<str>>,
    /// The number of walls in a row, without a sign of success in between.
    met: u32,
    /// The run that is watched.
    probe: Option<RunId>,
}

/// The answer to a run of an account that wants to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The run may start.
    Open,
    /// Go, and be watched.
    Probe,
    /// Not before this moment.
    Parked {
        /// The reset.
        until: Timestamp,
    },
    /// Not before the probe has given a sign, or has ended.
    Probing {
        /// The one that is watched.
        probe: RunId,
    },
}

/// The least time for which an account is parked: a service that names a reset which is over, and refuses all the same, is
/// not to be asked without a pause. It doubles with each wall in a row.
const LEAST: Duration = Duration::from_secs(1);

/// The longest time that such a pause may become.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The longest time for which an account is parked by one wall: a month, which the longest quotas last.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 3600);

/// The latest moment by which a probe is moved behind a reset, so that trees that wait for the same reset do not come at once.
const LATEST: Duration = Duration::from_secs(30);

/// The step by which what is left of a window is recorded, in millionths.
const STEP: u32 = 50_000;

/// A window whose reset is no further away than this is not recorded: limits of a minute are no quotas to plan with.
const SHORTEST: Duration = Duration::from_secs(600);

/// Resets that lie less than this apart are one: services count them anew with each answer.
const SAME: Duration = Duration::from_secs(60);

impl Wall {
    /// Returns true if a run probes the account.
    pub fn has_probe(&self) -> bool {
        self.probe.is_some()
    }
}

impl Quotas {
    /// Returns true if what is left of a window is to be recorded: it is a long window that is told of first or anew, or a step more
    /// of it is used.
    pub fn is_news(
        &self,
        account: &Account,
        window: &Arc<str>,
        (left, reset): (u32, Timestamp),
        now: Timestamp,
    ) -> bool {
        match self.windows.get(&(account.clone(), Arc::clone(window))) {
            Some((known, until)) if reset < until.plus(SAME) => left / STEP < known / STEP,
            _ => reset > now.plus(SHORTEST),
        }
    }

    /// Takes in what is left of a window.
    pub fn saw(&mut self, account: &Account, window: &Arc<str>, left: u32, reset: Timestamp) {
        self.windows.insert((account.clone(), Arc::clone(window)), (left, reset));
    }

    /// Returns true if no account has a wall.
    pub fn is_empty(&self) -> bool {
        self.walls.is_empty()
    }

    /// Returns the answer to a run of this account that wants to start.
    pub fn gate(&self, account: &Account, run: RunId, now: Timestamp) -> Gate {
        let Some(wall) = self.walls.get(account) else { return Gate::Open };
        match wall.probe {
            // It stands in line again, and is still the one that is watched.
            Some(probe) if probe == run && now >= wall.until => Gate::Probe,
            Some(probe) if now >= wall.until => Gate::Probing { probe },
            None if now >= wall.until => Gate::Probe,
            _ => Gate::Parked { until: wall.until },
        }
    }

    /// Takes in that a run of this account has been started. Where the account waits for a probe, this is the one.
    pub fn started(&mut self, account: &Account, run: RunId) {
        if let Some(wall) = self.walls.get_mut(account) {
            wall.probe.get_or_insert(run);
        }
    }

    /// Returns the moment from which a probe may start, where a run was refused until this reset; none where that is known
    /// already. `chance`, from 0 to 1, moves the probe by up to `jitter` of the wait.
    pub fn meets(
        &self,
        account: &Account,
        run: RunId,
        (reset, now): (Timestamp, Timestamp),
        (jitter, chance): (f64, f64),
    ) -> Option<Timestamp> {
        let wall = self.walls.get(account);
        let is_known = wall.is_some_and(|wall| wall.probe != Some(run) && reset <= wall.until);
        if is_known {
            return None;
        }
        let met = wall.map_or(0, |wall| wall.met);
        let least = LEAST.saturating_mul(1 << met.min(16)).min(LONGEST_PAUSE);
        let wait = reset.since(now).max(least).min(LONGEST);
        let more = wait.mul_f64(jitter).min(LATEST).mul_f64(chance.clamp(0.0, 1.0));
        Some(now.plus(wait + more))
    }

    /// Takes in that no run of this account starts before this moment.
    pub fn parked(
        &mut self,
        account: &Account,
        window: Option<Arc<str>>,
        until: Timestamp,
        now: Timestamp,
    ) {
        let new = || Wall { since: now, until, window: None, met: 0, probe: None };
        let wall = self.walls.entry(account.clone()).or_insert_with(new);
        (wall.until, wall.window, wall.probe) = (until, window, None);
        wall.met = wall.met.saturating_add(1);
    }

    /// Takes in that runs of this account start again.
    pub fn unparked(&mut self, account: &Account) {
        self.walls.remove(account);
    }

    /// Takes in that a run has ended or stands in line again. Returns true if it was the probe, and the next one may probe now.
    pub fn over(&mut self, account: &Account, run: RunId) -> bool {
        match self.walls.get_mut(account) {
            Some(wall) if wall.probe == Some(run) => {
                wall.probe = None;
                true
            }
            _ => false,
        }
    }

    /// Takes in that another supervisor holds the tree: nothing runs, so nothing probes, and what was waited so far is forgotten.
    pub fn interrupt(&mut self, now: Timestamp) {
        for wall in self.walls.values_mut() {
            (wall.since, wall.probe) = (now, None);
        }
    }

    /// Returns true if this run is the probe of its account.
    pub fn is_probe(&self, account: &Account, run: RunId) -> bool {
        self.walls.get(account).is_some_and(|wall| wall.probe == Some(run))
    }

    /// Returns the accounts of the same runtime with another credential than this one that have a wall: the runtime has another
    /// account now.
    pub fn replaced_by(&self, account: &Account) -> Vec<Account> {
        let is_other = |it: &&Account| it.runtime == account.runtime && *it != account;
        self.walls.keys().filter(is_other).cloned().collect()
    }

    /// Returns the wall of an account.
    pub fn wall(&self, account: &Account) -> Option<&Wall> {
        self.walls.get(account)
    }

    /// Returns the time since which the tree waits for the account that waits longest.
    pub fn since(&self) -> Option<Timestamp> {
        self.walls.values().map(|wall| wall.since).min()
    }

    /// Returns the latest moment at which an account is due.
    pub fn until(&self) -> Option<Timestamp> {
        self.walls.values().map(|wall| wall.until).max()
    }
}

#[cfg(test)]
mod tests;
