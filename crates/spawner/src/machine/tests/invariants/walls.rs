//! Invariants of quotas: nothing starts before a reset but one probe, and a wall is neither a fault nor a success.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use offshoot_model::{Account, Admitted, Ending, Reason, RunId, Timestamp};
use offshoot_runtime::EXEC;

use super::super::super::probe_turn::PATIENCE;
use super::Ledger;

/// The walls of a tree, by the name of the runtime.
#[derive(Default)]
pub(super) struct Walls {
    by_runtime: BTreeMap<Arc<str>, Wall>,
    /// The number of runs without children that may work at once.
    paces: BTreeMap<Account, u32>,
    /// The runs of which the last attempt met a wall.
    met: BTreeSet<RunId>,
    /// The run that meets a wall in this step.
    meets: Option<RunId>,
    /// The accounts of which another tree has told a wall that is not recorded here.
    told: BTreeSet<Account>,
    /// The accounts for which the tree has asked for its turn to probe, each since when; true where it has it.
    turns: BTreeMap<Account, (bool, Timestamp)>,
}

struct Wall {
    until: Timestamp,
    probe: Option<RunId>,
    /// True if a probe has met the wall again.
    again: bool,
}

impl Walls {
    pub(super) fn clear_probes(&mut self) {
        self.by_runtime.values_mut().for_each(|wall| wall.probe = None);
    }

    /// A run has ended or stands in line again.
    pub(super) fn over(&mut self, run: RunId) {
        for wall in self.by_runtime.values_mut().filter(|wall| wall.probe == Some(run)) {
            wall.probe = None;
        }
    }
}

impl Ledger {
    fn runtime(&self, run: RunId) -> Arc<str> {
        self.admitted[&run].runtime.clone().expect("what starts has a runtime")
    }

    pub(super) fn park(
        &mut self,
        account: &Account,
        (at, until): (Timestamp, Timestamp),
        is_kept: bool,
    ) {
        let meets = self.walls.meets.filter(|run| self.runtime(*run) == account.runtime);
        let was_told = meets.is_none() && !is_kept && self.walls.told.remove(account);
        assert!(
            meets.is_some() || was_told || (is_kept && self.limits.keeps_percent > 0),
            "for a run that met a wall, or by word of another tree"
        );
        *self.seen.entry("told of a wall").or_default() += u32::from(was_told);
        let before = self.walls.by_runtime.get(&account.runtime);
        let again = before.is_some_and(|wall| wall.probe.is_some() && wall.probe == meets);
        *self.seen.entry("probe met the wall again").or_default() += u32::from(again);
        let wall = Wall { until, probe: None, again };
        self.walls.by_runtime.insert(Arc::clone(&account.runtime), wall);
        self.rest(at);
    }

    /// Lets the time until the last reset count for no deadline, where deadlines spare it.
    fn rest(&mut self, at: Timestamp) {
        if self.limits.spares_parked {
            let until = self.walls.by_runtime.values().map(|wall| wall.until).max();
            self.alive.rest(at, until.unwrap_or(Timestamp::EPOCH));
        }
    }

    pub(super) fn unpark(&mut self, account: &Account, at: Timestamp) {
        let wall = self.walls.by_runtime.remove(&account.runtime).expect("it was parked");
        let is_other = self.clock_is_true && wall.probe.is_none();
        *self.seen.entry("another login").or_default() += u32::from(is_other);
        *self.seen.entry("went on after two walls").or_default() += u32::from(wall.again);
        self.rest(at);
    }

    /// Takes in a bound, which grows by one at a time.
    pub(super) fn pace(&mut self, account: &Account, most: Option<u32>) {
        let before = match most {
            Some(most) => self.walls.paces.insert(account.clone(), most),
            None => self.walls.paces.remove(account),
        };
        assert!(before != most, "what is recorded changes something");
        *self.seen.entry("pace ends").or_default() += u32::from(most.is_none());
        if let Some(most) = most {
            assert!(before.is_none_or(|before| most <= before + 1), "it grows by one");
            let grows = before.is_some_and(|before| most > before);
            *self.seen.entry("pace grows").or_default() += u32::from(grows);
        }
    }

    /// Checks that no more runs of an account work than its pace allows, where one starts.
    fn assert_pace(&mut self, runtime: &str) {
        let bound = self.walls.paces.iter().find(|(account, _)| *account.runtime == *runtime);
        let Some((_, &most)) = bound else { return };
        let is_parent = |run: &RunId| {
            let is_child = |(child, admitted): (&RunId, &Admitted)| {
                admitted.parent == Some(*run) && !self.ended.contains_key(child)
            };
            self.admitted.iter().any(is_child)
        };
        let works = |run: &&RunId| *self.runtime(**run) == *runtime && !is_parent(run);
        let working = self.holding.iter().filter(works).count();
        assert!(working < most as usize, "{working} work, of {most} that may");
        *self.seen.entry("started at a pace").or_default() += 1;
    }

    /// Checks that a run that starts has a slot of its account, as far as this tree tells.
    pub(super) fn assert_account_slot(&mut self, run: RunId) {
        let (most, runtime) = (self.limits.account_slots as usize, self.runtime(run));
        if most == 0 || *runtime == *EXEC {
            return;
        }
        let is_bounded = self.bounded.iter().any(|account| account.runtime == runtime);
        assert!(is_bounded, "the bound of an account is on record before its first start");
        let held = self.holding.iter().filter(|run| self.runtime(**run) == runtime).count();
        assert!(held < most, "{held} hold a slot of the account, of {most} of all trees");
        *self.seen.entry("started with a slot of its account").or_default() += 1;
    }

    /// Checks that a run that starts has no wall before it, or is the probe.
    pub(super) fn assert_no_wall(&mut self, run: RunId, at: Timestamp) {
        let runtime = self.runtime(run);
        self.assert_pace(&runtime);
        if self.walls.met.remove(&run) {
            *self.seen.entry("started after its wall").or_default() += 1;
        }
        let Some(wall) = self.walls.by_runtime.get_mut(&runtime) else { return };
        assert!(at >= wall.until, "no start after the wall's event before its reset");
        assert!(wall.probe.is_none_or(|probe| probe == run), "but one probe");
        wall.probe = Some(run);
        let turn = self.walls.turns.iter().find(|(of, _)| of.runtime == runtime);
        let may = turn.is_some_and(|(_, (has, since))| *has || at.since(*since) >= PATIENCE);
        assert!(may || !self.limits.shares_probes, "no probe without the turn of the tree");
        let without = turn.is_some_and(|(_, (has, _))| !has);
        *self.seen.entry("probe without a turn").or_default() += u32::from(without);
        *self.seen.entry("probe").or_default() += 1;
    }

    /// A run goes over to another runtime: it waits at no wall of the last one, and was not answered there.
    pub(super) fn fall_back(&mut self, run: RunId, runtime: &Arc<str>) {
        assert!(self.limits.falls_back, "only where there is another runtime");
        assert!(!self.ended.contains_key(&run), "only what lives");
        let is_at_work = self.holding.contains(&run);
        let word = if is_at_work { "fell back after an attempt" } else { "fell back in line" };
        *self.seen.entry(word).or_default() += 1;
        self.walls.over(run);
        self.walls.met.remove(&run);
        self.retried.remove(&run);
        if is_at_work {
            self.falling.insert(run);
        }
        let admitted = self.admitted.get_mut(&run).expect("it was admitted");
        admitted.runtime = Some(Arc::clone(runtime));
    }

    /// A run that met a wall stands in line again.
    pub(super) fn stands_at_wall(&mut self, run: RunId) {
        self.walls.over(run);
        let runtime = self.runtime(run);
        assert!(self.walls.by_runtime.contains_key(&runtime), "the wall is on record first");
        self.walls.met.insert(run);
        *self.seen.entry("stands at a wall").or_default() += 1;
    }

    /// Checks the end of a run: it is no success where its last attempt met a wall.
    pub(super) fn ends_at_wall(&mut self, run: RunId, ending: &Ending) {
        self.walls.over(run);
        let met = self.walls.met.remove(&run) || self.walls.meets == Some(run);
        assert!(!met || !ending.status().is_success(), "completed for the wall");
        if matches!(ending.reason, Reason::Quota { .. }) {
            *self.seen.entry("failed at a wall").or_default() += 1;
            let never = !self.started.contains(&run);
            *self.seen.entry("failed behind a wall").or_default() += u32::from(never);
        }
        let is_limit = matches!(ending.reason, Reason::ParkLimit { .. });
        *self.seen.entry("parked for too long").or_default() += u32::from(is_limit);
    }

    pub(super) fn asks_for_turn(&mut self, account: &Account) {
        assert!(self.limits.shares_probes, "only where there are others");
        assert!(self.walls.by_runtime.contains_key(&account.runtime), "for a wall");
        let asked = (false, self.last_at);
        assert_eq!(self.walls.turns.insert(account.clone(), asked), None, "asked once");
    }

    pub(super) fn gives_turn_back(&mut self, account: &Account, is_answered: bool) {
        let turn = self.walls.turns.remove(account);
        assert!(turn.is_some_and(|(has, _)| has), "only what it has");
        let is_parked = self.walls.by_runtime.contains_key(&account.runtime);
        assert!(!is_answered || !is_parked, "what others are told is so");
        let what = if is_answered { "turn with an answer" } else { "turn without an answer" };
        *self.seen.entry(what).or_default() += 1;
    }

    /// Takes in that it is the turn of the tree.
    pub(in crate::machine::tests) fn takes_turn(&mut self, account: &Account) {
        let turn = self.walls.turns.get_mut(account).expect("it has asked");
        assert!(!std::mem::replace(&mut turn.0, true), "once");
    }

    /// The supervisor has died, and the turns go to others.
    pub(in crate::machine::tests) fn forget_turns(&mut self) {
        self.walls.turns.clear();
    }

    /// The next step is that of a run that meets a wall.
    pub(in crate::machine::tests) fn hears_of_wall(&mut self, account: &Account) {
        self.walls.told.insert(account.clone());
    }

    pub(in crate::machine::tests) fn meets_wall(&mut self, run: RunId) {
        self.walls.meets = Some(run);
    }

    pub(in crate::machine::tests) fn assert_wall_is_no_success(&mut self, run: RunId) {
        assert!(self.status(run).is_none_or(|status| !status.is_success()), "a wall is no answer");
        self.walls.meets = None;
    }
}
