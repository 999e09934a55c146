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

use offshoot_config::OnInterrupt;
use offshoot_model::{CancelledBy, Ending, EventKind, Origin, Reason, Timestamp};

use super::super::mail::Mail;
use super::super::run::{RunIndex, SlotState};
use super::super::timer::Due;
use super::super::{Effect, Machine};
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
    pub(crate) fn reopen(self, now: Timestamp) -> Recalled {
        let Self { mut machine, mut about, over, handed_over, kept_values, .. } = self;
        let Self { mut letters, last_at, .. } = self;
        // A clock that was set back would make later events earlier than those on record.
        let now = now.max(last_at);
        let mut effects = Vec::new();
        machine.record(now, RunIndex::ROOT, EventKind::Reopened, &mut effects);
        handed_over.into_iter().for_each(|run| machine.clean_up(run, &mut effects));
        machine.reopened(last_at, now);
        let fates = fates(&machine, &about);
        // Nothing of it runs, so what is stopped from here on is over, and is not started for its stop alone.
        for (run, _) in fates.iter().filter(|(_, fate)| **fate != Fate::Holds) {
            let live =
                machine.runs[run.get()].live_mut().expect("the run ended while it was reopened");
            let About { started, used, .. } = about[run];
            live.phase = SlotState::Queued;
            live.earlier = if started { Some(live.cut_off(used)) } else { used }.map(Box::new);
            machine.queued += 1;
        }
        let mut order: Vec<RunIndex> = fates.keys().copied().collect();
        order.sort_unstable();
        // Leaves first, so that a run that is over has nothing below it that is not.
        let ends = |run: &&RunIndex| matches!(fates[run], Fate::Ends | Fate::WithoutRuntime);
        let mut unneeded = HashSet::new();
        for &run in order.iter().rev().filter(ends) {
            // The end of another may have used up a budget, and so have ended this one.
            let Some(live) = machine.runs[run.get()].live() else { continue };
            let reason = live.stopping.as_deref().cloned().unwrap_or(Reason::Interrupted);
            if reason == (Reason::Cancelled { by: CancelledBy::EarlyAnswer }) {
                unneeded.insert(run);
            }
            machine.finished(now, run, Ending::of(reason), &mut effects);
        }
        machine.look_at_deadlines(now, &mut effects);
        let (mut waiting, mut ending) = (Vec::new(), Vec::new());
        for run in order {
            let About { admitted, mut continues, .. } =
                about.remove(&run).expect("a live run is missing in the record");
            if machine.runs[run.get()].live().is_none() {
                let unneeded = unneeded.contains(&run);
                ending.extend(admitted.place.map(|place| EndedPiece { place, run, unneeded }));
                continue;
            }
            if fates[&run] == Fate::Holds {
                continue;
            }
            let mut letters = letters.remove(&run).unwrap_or_default();
            if let Fate::Again { continues: goes_on } = fates[&run] {
                continues = goes_on;
                machine.begin_again(now, run, continues, &mut effects);
            }
            let live =
                machine.runs[run.get()].live_mut().expect("the run ended while it was reopened");
            live.started_at = None;
            let unread = live.mail.as_ref().map_or(0, |mail| mail.letters as usize);
            let letters = letters.split_off(letters.len() - unread);
            match admitted.origin {
                // The owner of the pieces has to hand in its task again.
                Origin::Piece => drop(machine.unclaimed.insert(run)),
                Origin::Root | Origin::Agent => machine.line_up(now, run),
            }
            waiting.push(Waiting { run, admitted, continues, letters });
        }
        machine.schedule(now, &mut effects);
        Recalled { machine, effects, waiting, over, ending, kept_values }
    }
}

/// Decides the fate of each run that lives. Parents stand before their children, so theirs is known.
fn fates(machine: &Machine, about: &HashMap<RunIndex, About>) -> HashMap<RunIndex, Fate> {
    let mut fates: HashMap<RunIndex, Fate> = HashMap::new();
    for (at, entry) in machine.runs.iter().enumerate() {
        let (run, Some(live)) = (RunIndex::new(at), entry.live()) else { continue };
        let About { facts, started, .. } = &about[&run];
        let orphaned = entry.parent.is_some_and(|parent| {
            let fate = fates.get(&parent);
            !matches!(fate, Some(Fate::Holds | Fate::WaitsInLine | Fate::Again { continues: true }))
        });
        let resumes = facts.as_ref().is_some_and(|facts| facts.resumes);
        let rerun = live.under.on_interrupt(live.origin) == OnInterrupt::Rerun;
        let fate = match () {
            () if live.phase == SlotState::Holder => Fate::Holds,
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
    fn begin_again(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        continues: bool,
        out: &mut Vec<Effect>,
    ) {
        let live = self.runs[run.get()].live().expect("a run that is over begins again");
        let (attempt, held) = (live.attempt + 1, live.mail.as_deref().map(Mail::held));
        if !continues {
            self.return_mail(now, held, out);
        }
        let kind = EventKind::Resumed { attempt, continues, after: None, wait_ms: None };
        self.record(now, run, kind, out);
    }

    /// A piece that was read back, and whose owner has said what it takes to run it, takes its place in line.
    pub(in crate::machine) fn claimed(&mut self, now: Timestamp, run: RunIndex) {
        if self.unclaimed.remove(&run) {
            self.line_up(now, run);
        }
    }

    /// A run that was read back takes its place in line, after what is left of the wait before its next attempt.
    fn line_up(&mut self, now: Timestamp, run: RunIndex) {
        let again_at = self.runs[run.get()].live().and_then(|live| live.again_at);
        match again_at.filter(|&at| at > now) {
            Some(at) => self.timers.arm(at, Due::Again(run)),
            None => self.take_place(run),
        }
    }

    /// The root ends: pieces that were not claimed end with it.
    pub(in crate::machine) fn drop_unclaimed(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        for run in std::mem::take(&mut self.unclaimed) {
            if self.runs[run.get()].live().is_some_and(|live| live.phase == SlotState::Queued) {
                self.finished(now, run, Ending::of(Reason::Interrupted), out);
            }
        }
    }
}
