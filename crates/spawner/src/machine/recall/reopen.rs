//! The fate of the runs that were alive when a supervisor died. With nothing of the tree running, each run is decided about:
//!
//! | it | and | becomes |
//! |---|---|---|
//! | holds pieces | | goes on holding them |
//! | was being stopped | | over, for the reason it was stopped |
//! | has a parent that is over, lost or begins again | is no piece | lost: no session is left that asked for it |
//! | had not started | | stands in line as before |
//! | had started | its runtime can go on | stands in line, and goes on where it was |
//! | had started | is to be run again | stands in line, and begins anew |
//! | had started | | lost |
//!
//! From the first step after that everything is as in any other tree.

use std::collections::{HashMap, HashSet};

use offshoot_model::{
    CancelledBy, Changes, Cost, CostKnowledge, Ending, EventKind, Origin, Reason, Timestamp, Usage,
};
use offshoot_policy::budget::Unit;

use super::super::Machine;
use super::super::mail::Mail;
use super::super::run::{AttemptUse, Run, RunIndex, SlotState};
use super::super::timer::Due;
use super::{About, EndedPiece, Recall, Recalled, Waiting};

/// The fate of a run that was alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Holds,
    WaitsInLine,
    Again {
        continues: bool,
    },
    /// The runtime is not here: it is unknown if the run can go on, and the run cannot be started.
    WithoutRuntime,
    Ends,
}

impl Recall {
    /// Decides about all runs that were alive.
    pub(crate) fn reopen(mut self, now: Timestamp) -> Recalled {
        let last_at = self.last_at;
        // A clock that was set back would make later events earlier than those on record.
        self.machine.now = now.max(last_at);
        self.machine.record(RunIndex::ROOT, EventKind::Reopened);
        self.reopened(last_at);
        self.record_reopening();
        self.machine.record_host_bound();
        let Self {
            mut machine,
            mut about,
            over,
            only,
            handed_over,
            kept_values,
            mut letters,
            mut changes,
            ..
        } = self;
        // An attempt has worked, although its start was not recorded any more. A run that stands in line has left what is on record.
        for (run, about) in &mut about {
            let left = changes.get(&machine.id(*run));
            let has_worked = left.is_some_and(|left| left.is_new || !about.has_changes);
            if has_worked && !about.started {
                about.begins();
            }
        }
        handed_over.into_iter().for_each(|run| machine.clean_up(run));
        // Requests to models that were under way may have been answered, and are charged at their bounds. No piece draws more of its pool
        // for that: it draws its part when it starts, and nothing would give back what it drew before.
        machine.takes_over = true;
        let mut runs: Vec<RunIndex> = about.keys().copied().collect();
        runs.sort_unstable();
        for run in runs {
            let Some(about) = about.get_mut(&run) else { continue };
            if let Some(lost) = machine.lose_requests(run) {
                about.has_used(lost);
                about.charged = machine.charged_in_full(run, lost);
            }
        }
        // An attempt that told nothing may have asked a model too.
        let goes_on = |fate: &Fate| matches!(fate, Fate::Again { .. });
        let again = fates(&machine, &about).into_iter().filter(|(_, fate)| goes_on(fate));
        let mut again: Vec<RunIndex> = again.map(|(run, _)| run).collect();
        again.sort_unstable();
        for run in again {
            let Some(about) = about.get_mut(&run) else { continue };
            if let Some(lost) = machine.charge_silence(run, about) {
                about.has_used(lost);
                about.charged = machine.charged_in_full(run, lost);
            }
        }
        machine.takes_over = false;
        let fates = fates(&machine, &about);
        // Nothing of it runs, so what is stopped from here on is over, and is not started for its stop alone.
        for (run, _) in fates.iter().filter(|(_, fate)| **fate != Fate::Holds) {
            let live = machine.runs.live_mut(*run).expect("the run ended while it was reopened");
            let about = &about[run];
            live.phase = SlotState::Queued;
            let used = if about.started { Some(about.cut_off(live)) } else { about.used };
            let earlier = |(usage, cost)| AttemptUse { attempt: None, usage, cost };
            live.earlier = used.map(earlier).into_iter().collect();
            machine.queued += 1;
        }
        let mut order: Vec<RunIndex> = fates.keys().copied().collect();
        order.sort_unstable();
        // Leaves first, so that a run that is over has nothing below it that is not.
        let ends = |run: &&RunIndex| matches!(fates[run], Fate::Ends | Fate::WithoutRuntime);
        let mut unneeded = HashSet::new();
        for &run in order.iter().rev().filter(ends) {
            // The end of another may have used up a budget, and so have ended this one.
            let Some(live) = machine.runs.live(run) else { continue };
            let reason = live.stopping.as_deref().cloned().unwrap_or(Reason::Interrupted);
            if reason == (Reason::Cancelled { by: CancelledBy::EarlyAnswer }) {
                unneeded.insert(run);
            }
            let changes = changes.remove(&machine.id(run)).map(|left| left.changes);
            machine.finished(run, Ending { changes, ..Ending::of(reason) });
        }
        machine.look_at_deadlines();
        machine.look_at_park_limit();
        let (mut waiting, mut ending) = (Vec::new(), Vec::new());
        for run in order {
            if fates[&run] == Fate::Holds && machine.runs.live(run).is_some() {
                continue;
            }
            let About { admitted, mut continues, .. } =
                about.remove(&run).expect("a live run is missing in the record");
            if machine.runs.live(run).is_none() {
                let unneeded = unneeded.contains(&run);
                ending.extend(admitted.place.map(|place| EndedPiece { place, run, unneeded }));
                continue;
            }
            let mut letters = letters.remove(&run).unwrap_or_default();
            if let Fate::Again { continues: goes_on } = fates[&run] {
                continues = goes_on;
                let changes = changes.remove(&machine.id(run)).map(|left| left.changes);
                machine.begin_again(run, continues, changes);
            }
            let live = machine.runs.live_mut(run).expect("the run ended while it was reopened");
            live.started_at = None;
            let unread = live.mail.as_ref().map_or(0, |mail| mail.letters as usize);
            let letters = letters.split_off(letters.len() - unread);
            match admitted.origin {
                // The owner of the pieces has to hand in its task again.
                Origin::Piece => drop(machine.unclaimed.insert(run)),
                Origin::Root | Origin::Agent => machine.line_up(run),
            }
            waiting.push(Waiting { run, admitted, continues, letters });
        }
        machine.go_on();
        let effects = std::mem::take(&mut machine.out);
        let (again, over): (Vec<_>, Vec<_>) = over.into_iter().partition(|(_, piece)| piece.again);
        let over = over.into_iter().map(|(place, piece)| (place, piece.run, piece.past)).collect();
        let again = again.into_iter().map(|(place, piece)| (place, piece.run)).collect();
        Recalled { machine, effects, waiting, over, again, only, ending, kept_values }
    }

    /// Ends all runs that were alive, for the operator: nothing of the tree goes on.
    pub(crate) fn cancel(mut self, now: Timestamp) -> Recalled {
        let reason = Reason::Cancelled { by: CancelledBy::Operator };
        for live in self.machine.runs.iter_mut().filter_map(Run::live_mut) {
            live.stopping.get_or_insert_with(|| Box::new(reason.clone()));
        }
        let mut recalled = self.reopen(now);
        // A root that holds pieces is the only run left.
        recalled.machine.close(Ending::of(reason));
        recalled.effects.append(&mut recalled.machine.out);
        recalled
    }

    /// Returns the places of the pieces that end because nothing can go on with them.
    pub(super) fn ending(&self) -> Vec<u32> {
        let fates = fates(&self.machine, &self.about);
        let ends =
            fates.iter().filter(|(_, fate)| matches!(fate, Fate::Ends | Fate::WithoutRuntime));
        ends.filter_map(|(run, _)| self.about[run].admitted.place).collect()
    }
}

/// Decides the fate of each run that lives. Parents stand before their children, so theirs is known.
fn fates(machine: &Machine, about: &HashMap<RunIndex, About>) -> HashMap<RunIndex, Fate> {
    let mut fates: HashMap<RunIndex, Fate> = HashMap::new();
    for run in machine.runs.places() {
        let entry = &machine.runs[run];
        let Some(live) = entry.live() else { continue };
        if live.phase == SlotState::Holder {
            fates.insert(run, Fate::Holds);
            continue;
        }
        let About { facts, started, .. } = &about[&run];
        let orphaned = entry.parent.is_some_and(|parent| {
            let fate = fates.get(&parent);
            !matches!(fate, Some(Fate::Holds | Fate::WaitsInLine | Fate::Again { continues: true }))
        });
        let resumes = facts.as_ref().is_some_and(|facts| facts.resumes);
        let rerun = live.may_repeat();
        let fate = match () {
            () if live.stopping.is_some() || orphaned => Fate::Ends,
            () if facts.is_none() => Fate::WithoutRuntime,
            () if !started => Fate::WaitsInLine,
            () if resumes => Fate::Again { continues: true },
            () if rerun => Fate::Again { continues: false },
            () => Fate::Ends,
        };
        fates.insert(run, fate);
    }
    fates
}

/// Returns true if the root goes on, itself or with its pieces.
pub(super) fn root_goes_on(machine: &Machine, about: &HashMap<RunIndex, About>) -> bool {
    let fate = fates(machine, about).remove(&RunIndex::ROOT);
    !matches!(fate, Some(Fate::Ends | Fate::WithoutRuntime))
}

/// The first run that would go on, and whose runtime is not here.
pub(super) fn without_runtime(
    machine: &Machine,
    about: &HashMap<RunIndex, About>,
) -> Option<RunIndex> {
    let fates = fates(machine, about).into_iter();
    fates.filter(|(_, fate)| *fate == Fate::WithoutRuntime).map(|(run, _)| run).min()
}

impl Machine {
    /// A run was interrupted, and another attempt of it follows. One that begins anew has nothing to do with what the last
    /// one had asked for.
    fn begin_again(&mut self, run: RunIndex, continues: bool, changes: Option<Box<Changes>>) {
        let live = self.runs.live(run).expect("a run that is over begins again");
        let (attempt, held) = (live.attempt + 1, live.mail.as_deref().map(Mail::held));
        if !continues {
            self.return_mail(held);
        }
        let (after, wait_ms) = (None, None);
        let kind = EventKind::Resumed { attempt, continues, after, wait_ms, changes };
        self.record(run, kind);
    }

    /// The attempt of a run was interrupted, and another one follows. Where it has told nothing of its use in a unit, a request of it is taken
    /// for lost, and charged there.
    fn charge_silence(&mut self, run: RunIndex, about: &About) -> Option<(Usage, Cost)> {
        let live = self.runs.live(run)?;
        // The charge of another may have used up a budget, and so have stopped this one.
        let is_stopped = live.stopping.is_some();
        if is_stopped || matches!(live.cost, CostKnowledge::Metered | CostKnowledge::None) {
            return None;
        }
        let [(usage_before, cost_before), (usage, cost)] =
            [about.used_before, about.used].map(Option::unwrap_or_default);
        let told = |unit: Unit| match unit {
            Unit::Tokens => usage.total().charged() > usage_before.total().charged(),
            Unit::Usd => cost.dollars() > cost_before.dollars(),
        };
        let particulars = about.admitted.particulars.as_deref();
        let model = particulars.and_then(|particulars| particulars.model.clone());
        self.lose_untold(run, model.as_deref().unwrap_or("unknown"), told)
    }

    /// A piece that was read back, and whose owner has said what it takes to run it, takes its place in line.
    pub(in crate::machine) fn claimed(&mut self, run: RunIndex) {
        if self.unclaimed.remove(&run) {
            self.line_up(run);
        }
    }

    /// A run that was read back takes its place in line, after what is left of the wait before its next attempt.
    fn line_up(&mut self, run: RunIndex) {
        let again_at = self.runs.live(run).and_then(|live| live.again_at);
        match again_at.filter(|&at| at > self.now) {
            Some(at) => self.timers.arm(at, Due::Again(run)),
            None => self.take_place_when_ready(run),
        }
    }

    /// The root ends: pieces that were not claimed end with it.
    pub(in crate::machine) fn drop_unclaimed(&mut self) {
        for run in std::mem::take(&mut self.unclaimed) {
            if self.is_in_line(run) {
                self.finished(run, Ending::of(Reason::Interrupted));
            }
        }
    }
}
