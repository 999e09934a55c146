//! The end of a run, and the runs that it takes along.

use offshoot_model::{Cost, Ending, Event, MicroUsd, Reason, RunId, Usage, number};

use super::Audit;
use crate::faults;
use crate::needs;
use crate::run::{Run, SlotState};
use crate::{Breach, Rule};

impl Audit {
    /// Compares an end with what was asked, booked and reserved, and notes the runs that have to stop because of it.
    pub(super) fn ended(&mut self, event: &Event, ending: &Ending) {
        let run = self.runs.get_mut(&event.run).expect("the run that was looked up is gone");
        let before = std::mem::replace(&mut run.state, SlotState::Ended);
        run.ended = Some(ending.status());
        self.walls.over(event.run);
        if before == SlotState::Holding {
            let depth = run.admitted.depth;
            let above = self.counted_below(event.run);
            self.slots.give_back(event.run, depth, &above);
        }
        let run = &self.runs[&event.run];
        let has_started = run.has_started;
        let cascades = run.rules.as_ref().is_some_and(|rules| rules.cascade);
        let parent = run.parent;
        let above = parent.and_then(|parent| self.runs.get(&parent)?.rules.clone());
        let run = &self.runs[&event.run];
        let limits = faults::breaker_limits(run.rules.as_deref(), above.as_deref());
        if let (Some(limits), SlotState::Holding | SlotState::Lent) = (limits, before) {
            let (agent, reason) = (&run.admitted.agent, &ending.reason);
            self.breakers.ended(agent, event.run, reason, limits, event.at);
        }
        let mut broken = Vec::new();
        if let Reason::NeedFailed { need } = &ending.reason {
            let wrong = needs::check_skip(&run.admitted, need, |run| self.runs.get(&run)?.ended);
            broken.extend(wrong.map(|message| (Rule::Needs, message)));
            if has_started {
                broken.push((Rule::Needs, "is skipped, and has started".to_owned()));
            }
        }
        // A run that was asked to stop ends for that reason, unless its work was done by then or its supervisor was gone.
        if let Some(reason) = &run.stopping
            && !ending.status().is_success()
            && ending.reason != Reason::Interrupted
            && ending.reason != *reason
        {
            let message = format!("`{}` after it was asked to stop: {reason}", ending.reason);
            broken.push((Rule::States, message));
        }
        if let Some(parent) = parent.and_then(|parent| self.runs.get_mut(&parent)) {
            parent.live_children -= 1;
        }
        if !has_started {
            // A run that never started used nothing, also where it was interrupted and reported nothing. No limit is reached.
            self.books.report(event.run, &Usage::default(), &Cost::NONE);
        }
        let (beyond, exhausted) = self.books.close(event.run, ending);
        self.check_promises(event);
        let booked = self.overruns.remove(&event.run).unwrap_or_default();
        if booked != beyond {
            // Exactly, since two amounts that are rounded may look the same.
            let amounts = |[tokens, micro_usd]: [u128; 2]| {
                let micro_usd = u64::try_from(micro_usd).unwrap_or(u64::MAX);
                let dollars = number::exact_dollars(MicroUsd::from_micros(micro_usd));
                format!("{tokens} tokens and {dollars}")
            };
            let message = format!(
                "used {} more than was reserved, and {} are booked",
                amounts(beyond),
                amounts(booked)
            );
            broken.push((Rule::Overrun, message));
        }
        for (rule, message) in broken {
            self.breach(event, rule, message);
        }
        self.doom(&exhausted);
        if cascades {
            self.doom_below(event.run, (Rule::States, "its parent's end takes it along"));
        }
    }

    /// A parent tells what it has spent, and may have promised some of that before.
    pub(super) fn check_promises(&mut self, event: &Event) {
        for (run, message) in self.books.belated() {
            let rule = Rule::Budget;
            self.found.breaches.push(Breach { seq: event.seq, run, rule, message });
        }
    }

    /// Runs that have used all they had are to stop, with everything below them. What one leaves behind that is over
    /// lives on what was reserved for it.
    pub(super) fn doom(&mut self, exhausted: &[RunId]) {
        const WHY: (Rule, &str) = (Rule::Budget, "a budget was used up");
        // A late report of an attempt: a run that draws from a pool takes its part when the next one starts.
        let draws_yet = |run: &Run| {
            let is_between = matches!(run.state, SlotState::Queued | SlotState::Interrupted);
            is_between && !run.admitted.grant.pooled.is_none()
        };
        let live =
            |run: &&RunId| self.runs.get(run).is_some_and(|run| !run.is_over() && !draws_yet(run));
        for &run in exhausted.iter().filter(live).collect::<Vec<_>>() {
            self.doom_one(run, WHY);
            self.doom_below(run, WHY);
        }
    }

    /// A run has more to use: where that was what it lacked, it and what is below it go on.
    pub(super) fn spare(&mut self, run: RunId) {
        if self.books.is_exhausted(run) {
            return;
        }
        let mut spared = vec![run];
        while let Some(run) = spared.pop() {
            spared.extend(self.children.get(&run).into_iter().flatten());
            if self.doomed.get(&run).is_some_and(|(rule, _)| *rule == Rule::Budget) {
                self.doomed.remove(&run);
            }
        }
    }

    fn doom_below(&mut self, run: RunId, why: (Rule, &'static str)) {
        let mut below = self.children.get(&run).cloned().unwrap_or_default();
        while let Some(run) = below.pop() {
            below.extend(self.children.get(&run).into_iter().flatten());
            self.doom_one(run, why);
        }
    }

    pub(super) fn doom_one(&mut self, run: RunId, why: (Rule, &'static str)) {
        let Some(entry) = self.runs.get(&run) else { return };
        // A run that only holds pieces ends when its owner has the answer.
        let is_asked = entry.stopping.is_some();
        if !entry.is_over() && !is_asked && entry.state != SlotState::Holder {
            self.doomed.insert(run, why);
        }
    }
}
