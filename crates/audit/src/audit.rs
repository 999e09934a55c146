//! Reading a record from its first event to its last.

mod child;
mod end;
mod reopened;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use offshoot_model::{
    Admitted, DeliveryId, Event, EventClass, EventKind, Origin, Rules, RunId, Timestamp,
};

use crate::budget::Books;
use crate::delivery::{self, Handed};
use crate::faults::{self, Breakers};
use crate::findings::{Account, Busy};
use crate::needs;
use crate::run::{Run, SlotState, is_act, says_all};
use crate::slots::Holders;
use crate::spawns::Spawns;
use crate::time::{self, Life};
use crate::walls::{Walls, is_wall};
use crate::{Breach, Findings, Rule};

/// An audit of one tree. It holds a little for each run and nothing for each event.
#[derive(Default)]
pub struct Audit {
    /// The findings so far.
    found: Findings,
    last: u64,
    last_at: Timestamp,
    runs: HashMap<RunId, Run>,
    children: HashMap<RunId, Vec<RunId>>,
    slots: Holders,
    spawns: Spawns,
    books: Books,
    breakers: Breakers,
    walls: Walls,
    life: Life,
    /// The time of the tree that the operator gave it when it was reopened, with the age of the tree then.
    deadline: Option<(Duration, u64)>,
    /// The last run of each piece, by its place.
    places: HashMap<u32, RunId>,
    /// The overrun that is booked already and belongs to an end that is still to come.
    overruns: HashMap<RunId, [u128; 2]>,
    /// Runs that have to be asked to stop before anything else is recorded of them, and why.
    doomed: HashMap<RunId, (Rule, &'static str)>,
    /// The work of runs while they waited.
    busy: BTreeMap<RunId, Busy>,
}

impl Audit {
    /// Of a record that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// All of it at once.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Findings {
        let mut audit = Self::new();
        events.into_iter().for_each(|event| audit.apply(event));
        audit.finish()
    }

    /// Takes in the next event. Progress is passed over: it is not kept.
    pub fn apply(&mut self, event: &Event) {
        if event.kind.class() == EventClass::Progress {
            return;
        }
        self.found.events += 1;
        self.check_sequence(event);
        self.found.clock_set_back += u64::from(event.at < self.last_at);
        self.last_at = event.at;
        self.life.tick(event.at, matches!(event.kind, EventKind::Reopened));
        match &event.kind {
            EventKind::Admitted(admitted) => self.admitted(event, admitted),
            _ if !self.runs.contains_key(&event.run) => {
                let message = format!("{} without an admission", event.kind.name());
                self.breach(event, Rule::Lineage, message);
            }
            EventKind::Delivered { delivery, redelivered } => {
                self.handed_over(event, delivery, Handed::Over { again: *redelivered });
            }
            EventKind::Undelivered { delivery } => {
                self.handed_over(event, delivery, Handed::Undelivered);
            }
            EventKind::Reopened => self.reopened(event),
            EventKind::RootReopened(reopened) => self.root_reopened(event, reopened),
            EventKind::Removal { .. } => self.check_removal(event),
            kind if self.runs[&event.run].is_over() => {
                let message = format!("{} after its end", kind.name());
                self.breach(event, Rule::States, message);
            }
            kind => {
                self.check_doom(event);
                self.check_time(event);
                self.happened(event, kind);
            }
        }
    }

    /// Returns the balance of the budget of a run, in each unit in which one bounds it, after the events that were taken in.
    pub fn balance(&self, run: RunId) -> Vec<Account> {
        self.books.accounts(run)
    }

    /// Returns the balance of the dollars that paid runs of the tree may cost together by default, where no budget bounds them; none where
    /// no run has a part of them.
    pub fn by_default(&self) -> Option<Account> {
        self.books.by_default()
    }

    /// Checks that no run was left open, and returns what was found.
    pub fn finish(mut self) -> Findings {
        self.check_all_handed_over();
        let root = self.found.root.map(|root| root.run());
        let rules = self.root_rules().copied();
        let Self { mut found, slots, .. } = self;
        for run in self.runs.values() {
            found.deepest = found.deepest.max(run.admitted.depth);
            match &run.ended {
                Some(status) => *found.endings.entry(*status).or_default() += 1,
                None => found.unfinished += 1,
            }
        }
        Findings {
            runs: self.runs.len() as u64,
            spawns: self.spawns.count,
            peak_concurrency: slots.tree.peak,
            peak_per_level: slots.tree.peak_per_level,
            accounts: slots.peaks.into_values().collect(),
            rules,
            busy_waiting: self.busy.into_values().collect(),
            budgets: root.map(|root| self.books.accounts(root)).unwrap_or_default(),
            not_recorded: if root.is_some() && rules.is_none() { vec!["limits"] } else { vec![] },
            ..found
        }
    }

    /// Checks that each result was delivered to the agent that asked for it, or recorded as undelivered.
    fn check_all_handed_over(&mut self) {
        let mut silent: Vec<RunId> = Vec::new();
        for (&id, run) in &self.runs {
            let Some(parent) = run.parent.and_then(|parent| self.runs.get(&parent)) else {
                continue;
            };
            let told = run.admitted.origin == Origin::Agent && parent.admitted.runtime.is_some();
            if told && run.is_over() && parent.is_over() && run.handed.is_none() {
                silent.push(id);
            }
        }
        silent.sort_unstable();
        for run in silent {
            let message = "its result was never delivered, and no `undelivered` event is on record"
                .to_owned();
            let rule = Rule::Delivery;
            self.found.breaches.push(Breach { seq: self.last, run, rule, message });
        }
    }

    fn check_sequence(&mut self, event: &Event) {
        let root = *self.found.root.get_or_insert(event.root);
        if event.root != root {
            self.breach(event, Rule::Sequence, format!("belongs to tree {}", event.root));
        }
        let last = std::mem::replace(&mut self.last, event.seq);
        if event.seq != last + 1 {
            self.breach(event, Rule::Sequence, format!("follows event {last}"));
        }
    }

    /// Checks that a run that must be asked to stop does nothing before that.
    fn check_doom(&mut self, event: &Event) {
        let permitted = matches!(
            event.kind,
            EventKind::Stopping { .. }
                | EventKind::Ended(_)
                | EventKind::Overrun { .. }
                | EventKind::BudgetNotice
                | EventKind::BudgetDrawn { .. }
        );
        if matches!(event.kind, EventKind::Stopping { .. } | EventKind::Ended(_)) {
            self.doomed.remove(&event.run);
        } else if !permitted && let Some((rule, why)) = self.doomed.remove(&event.run) {
            self.breach(event, rule, format!("was not asked to stop although {why}"));
        }
    }

    /// Checks that a run without time left is asked to stop. Told once: what happens to it later is not news. Where the clock
    /// was set back, the times on record do not say how long anything took.
    fn check_time(&mut self, event: &Event) {
        let run = self.runs.get_mut(&event.run).expect("the run that was looked up is gone");
        if self.found.clock_set_back > 0 || !says_all(run.rules.as_deref()) {
            return;
        }
        if let Some(message) = time::overtime(run, event.at) {
            run.clock.stop();
            self.breach(event, Rule::Time, message);
        }
    }

    /// Checks that a run begins within the time of the tree and of the subtree of each run above it.
    fn check_deadline(&self, parent: Option<RunId>) -> Option<(Rule, String)> {
        if self.found.clock_set_back > 0 {
            return None;
        }
        self.runs.get(&self.found.root?.run())?;
        let of_tree = self.root_rules().map(|rules| (Duration::ZERO, rules.deadline_seconds));
        let of_tree = match self.deadline {
            Some((since, seconds)) => Some((since, Some(seconds))),
            None => of_tree,
        };
        let above = self.from(parent).filter(|(_, run)| run.binds.deadline);
        let above = above
            .filter_map(|(_, run)| Some((run.binds.since?, run.rules.as_ref()?.deadline_seconds)));
        let mut all = of_tree.into_iter().chain(above);
        let late = all.find_map(|(since, deadline)| self.life.overtime(since, deadline));
        late.map(|message| (Rule::Time, message))
    }

    /// A run and those above it.
    fn from(&self, run: Option<RunId>) -> impl Iterator<Item = (RunId, &Run)> {
        let entry = |run: RunId| Some((run, self.runs.get(&run)?));
        std::iter::successors(run.and_then(entry), move |(_, run)| run.parent.and_then(entry))
    }

    /// The runs above one in which its slot is counted, but for the whole tree.
    fn counted_below(&self, run: RunId) -> Vec<RunId> {
        let above = self.from(self.runs[&run].parent);
        above.filter(|(_, run)| run.binds.slots).map(|(run, _)| run).collect()
    }

    fn admitted(&mut self, event: &Event, admitted: &Admitted) {
        if self.runs.contains_key(&event.run) {
            return self.breach(event, Rule::Lineage, "admitted twice".to_owned());
        }
        let mut broken = Vec::new();
        let inherited = match admitted.parent {
            None => {
                // A root that only holds pieces never has a slot.
                if admitted.runtime.is_none() {
                    self.life.begin();
                }
                let is_root = event.seq == 1
                    && event.run == event.root.run()
                    && admitted.origin == Origin::Root;
                if !is_root {
                    broken.push((Rule::Lineage, "has no parent and is not the root".to_owned()));
                }
                if admitted.depth != 0 {
                    let message = format!("is a root at depth {}", admitted.depth);
                    broken.push((Rule::Lineage, message));
                }
                None
            }
            Some(parent) => self.check_child(event, admitted, parent, &mut broken),
        };
        broken.extend(self.check_place(event.run, admitted));
        if admitted.key.depth() != admitted.depth as usize {
            let message = format!("is at depth {}, and its key is not", admitted.depth);
            broken.push((Rule::Lineage, message));
        }
        // A run that was not admitted before is no parent: so no forged record goes round in circles.
        let parent = admitted.parent.filter(|parent| self.runs.contains_key(parent));
        let promised = self.books.open(event.run, parent, &admitted.grant);
        broken.extend(promised.into_iter().map(|message| (Rule::Budget, message)));
        for (rule, message) in broken {
            self.breach(event, rule, message);
        }
        if let Some(parent) = parent {
            self.children.entry(parent).or_default().push(event.run);
            let age = self.life.age;
            let above = self.runs.get_mut(&parent).expect("it was looked up");
            above.binds.since.get_or_insert(age);
        }
        self.runs.insert(event.run, Run::new(Box::new(admitted.clone()), parent, inherited));
    }

    fn handed_over(&mut self, event: &Event, delivery: &DeliveryId, how: Handed) {
        let parent = self.runs[&event.run].parent;
        let parent = parent.and_then(|parent| self.runs.get(&parent)).map(|parent| parent.state);
        let run = self.runs.get_mut(&event.run).expect("the run that was looked up is gone");
        let handed =
            delivery::check(&mut self.found.deliveries, event.run, run, parent, delivery, how);
        if let Err(message) = handed {
            self.breach(event, Rule::Delivery, message);
        }
    }

    /// Checks that a removed folder belonged to a run that is over and was to be deleted.
    fn check_removal(&mut self, event: &Event) {
        let run = &self.runs[&event.run];
        if run.admitted.cleanup.is_keep() || !run.is_over() {
            let message = "removed although it was to stay".to_owned();
            self.breach(event, Rule::States, message);
        }
    }

    /// A letter comes from above, or from the operator.
    fn check_letter(&self, to: RunId, from: Option<RunId>) -> Option<(Rule, String)> {
        let from = from?;
        let above = |run: &RunId| self.runs.get(run).and_then(|run| run.parent);
        let is_above = std::iter::successors(above(&to), above).any(|run| run == from);
        (!is_above)
            .then(|| (Rule::Lineage, format!("has a letter from {from}, which is not above it")))
    }

    fn happened(&mut self, event: &Event, kind: &EventKind) {
        let above = match kind {
            EventKind::Starting
            | EventKind::Waiting
            | EventKind::Returned
            | EventKind::Resumed { .. } => self.counted_below(event.run),
            _ => Vec::new(),
        };
        let run = self.runs.get_mut(&event.run).expect("the run that was looked up is gone");
        let (state, depth) = (run.state, run.admitted.depth);
        let misplaced = |after: &str| Some((Rule::States, format!("{} {after}", kind.name())));
        let broken = match (kind, state) {
            (EventKind::Starting, SlotState::Queued | SlotState::Holder) => {
                run.state = SlotState::Holding;
                (run.has_started, run.is_falling) = (true, false);
                let capped = run.starts_at_cap();
                run.clock.start(event.at);
                let (agent, parent) = (run.admitted.agent.clone(), run.parent);
                let tired = self.breakers.start(&agent, event.run, event.at);
                let late = self.check_deadline(parent);
                let admitted = &self.runs[&event.run].admitted;
                let runtime = admitted.runtime.as_deref().unwrap_or_default();
                let works = |run: RunId| {
                    let Run { state, live_children, admitted, .. } = &self.runs[&run];
                    let is_of_runtime = admitted.runtime.as_deref() == Some(runtime);
                    *state == SlotState::Holding && *live_children == 0 && is_of_runtime
                };
                let parked = self.walls.start(runtime, (event.run, event.at), works);
                let needs = needs::check_start(admitted, |run| self.runs.get(&run)?.ended);
                self.life.begin();
                let broken = [
                    tired.map(|message| (Rule::Breaker, message)),
                    parked.map(|message| (Rule::Quota, message)),
                    capped,
                    needs.map(|message| (Rule::Needs, message)),
                    late,
                ];
                for (rule, message) in broken.into_iter().flatten() {
                    self.breach(event, rule, message);
                }
                let rules = self.root_rules();
                let said =
                    above.iter().filter_map(|run| Some((*run, self.runs[run].rules.as_deref()?)));
                let of_account = self.runs[&event.run].admitted.runtime.clone();
                let full = self.slots.check_start(depth, rules, said);
                let full = full.or_else(|| self.slots.check_account(of_account.as_deref()?));
                self.slots.take(event.run, of_account.as_ref(), depth, &above);
                full.map(|message| (Rule::Concurrency, message))
            }
            (EventKind::Starting, _) => misplaced("when it had started"),
            (EventKind::Started { .. }, SlotState::Holding | SlotState::Lent) => None,
            (EventKind::Started { .. }, _) => misplaced("without a slot"),
            (EventKind::Waiting, SlotState::Holding) => {
                run.state = SlotState::Lent;
                run.clock.pause(event.at);
                self.slots.give_back(event.run, depth, &above);
                self.breakers.rests(&run.admitted.agent, event.run);
                None
            }
            (EventKind::Waiting, _) => misplaced("without a slot to lend"),
            (EventKind::Returned, SlotState::Lent) => {
                run.state = SlotState::Holding;
                run.clock.go_on(event.at);
                self.slots.take(event.run, run.admitted.runtime.as_ref(), depth, &above);
                None
            }
            (EventKind::Returned, _) => misplaced("without having lent its slot"),
            (
                EventKind::BusyWaiting { .. },
                SlotState::Queued | SlotState::Holder | SlotState::Interrupted,
            ) => misplaced("while nothing of it ran"),
            (EventKind::BusyWaiting { cpu_ms, wait_ms }, _) => {
                self.busy
                    .entry(event.run)
                    .or_insert_with(|| Busy::of(event.run))
                    .add(*cpu_ms, *wait_ms);
                let is_over = time::has_worked(run, *cpu_ms, event.at);
                let holds = says_all(run.rules.as_deref()) && self.found.clock_set_back == 0;
                if is_over && holds {
                    self.doom_one(event.run, (Rule::Time, "its time was used up in waits"));
                }
                let at_rest = u128::from(*cpu_ms) * 10 <= u128::from(*wait_ms);
                at_rest.then(|| (Rule::Time, "is said to have worked, and was at rest".to_owned()))
            }
            (EventKind::Stopping { .. }, _) if run.stopping.is_some() => misplaced("twice"),
            (EventKind::Stopping { reason }, _) => {
                run.stopping = Some((**reason).clone());
                let at = (self.found.clock_set_back == 0).then_some(event.at);
                let early = says_all(run.rules.as_deref())
                    .then(|| time::too_early(run, reason, at))
                    .flatten();
                early.map(|message| (Rule::Time, message))
            }
            // Between two attempts it is a report of the last one, which came late and is paid for all the same.
            (EventKind::Used { .. }, SlotState::Queued) if !run.has_started => {
                misplaced("before it started")
            }
            (EventKind::Used { usage, cost }, _) => {
                let exhausted = self.books.report(event.run, usage, cost);
                self.check_promises(event);
                self.doom(&exhausted);
                None
            }
            (
                EventKind::RequestReserved { .. } | EventKind::RequestSettled { .. },
                SlotState::Queued,
            ) if !run.has_started => misplaced("before it started"),
            (EventKind::RequestReserved { request, tokens, micro_usd, .. }, _) => {
                let amounts = [*tokens, micro_usd.unwrap_or(0)];
                let wrong = self.books.reserve(event.run, *request, amounts);
                wrong.map(|message| (Rule::Budget, message))
            }
            (EventKind::RequestSettled { request, usage, cost, .. }, _) => {
                let (wrong, exhausted) = self.books.settle(event.run, *request, (usage, cost));
                self.doom(&exhausted);
                wrong.map(|message| (Rule::Budget, message))
            }
            (EventKind::RequestHeld { for_others: false, .. }, _) => run.meets_cap(),
            (EventKind::RequestHeld { for_others: true, .. }, _) => {
                self.books.return_unused(event.run);
                None
            }
            (EventKind::Overrun { tokens, micro_usd }, _) => {
                let amounts = [*tokens, *micro_usd].map(u128::from);
                let before = self.overruns.insert(event.run, amounts);
                before.and_then(|_| misplaced("twice"))
            }
            (EventKind::BudgetDrawn { tokens, micro_usd }, _) => {
                let wrong = self.books.draw(event.run, [*tokens, *micro_usd]);
                self.spare(event.run);
                wrong.map(|message| (Rule::Budget, message))
            }
            (EventKind::BudgetRaised { tokens, micro_usd }, _) => {
                self.books.raise(event.run, [*tokens, *micro_usd]);
                self.runs.values_mut().for_each(Run::is_given_more);
                None
            }
            (EventKind::Ended(ending), _) => return self.ended(event, ending),
            (
                kind @ (EventKind::Parked { .. } | EventKind::Unparked { .. } | EventKind::Paced { .. }),
                _,
            ) => {
                self.walls.told(kind);
                self.rest_at_walls();
                None
            }
            (
                kind @ (EventKind::MemoryShort(_)
                | EventKind::HostBound { .. }
                | EventKind::HostFull
                | EventKind::AccountBound { .. }
                | EventKind::AccountFull { .. }),
                _,
            ) => self.slots.of_host(kind),
            (EventKind::Refused { times, .. }, _) => {
                self.found.refusals = self.found.refusals.saturating_add(times.unwrap_or(1));
                None
            }
            (EventKind::TurnEnded { .. }, SlotState::Holding | SlotState::Lent) => {
                run.has_acted = true;
                None
            }
            (EventKind::TurnEnded { .. }, _) => misplaced("before it started"),
            (kind, SlotState::Queued | SlotState::Interrupted) if is_act(kind) => {
                misplaced("while nothing of it ran")
            }
            (EventKind::Letter { from, .. }, _) => {
                run.has_acted = true;
                self.check_letter(event.run, *from)
            }
            (
                EventKind::Resumed { after: None, attempt, continues, .. },
                SlotState::Interrupted,
            ) => {
                run.state = SlotState::Queued;
                self.books.return_to_pool(event.run);
                (run.attempt, run.is_falling) = (*attempt, false);
                // One that begins anew has forgotten what it asked for.
                run.has_acted &= *continues;
                None
            }
            (
                EventKind::Resumed { after: Some(after), attempt, continues, .. },
                SlotState::Holding,
            ) if run.stopping.as_ref().is_none_or(|reason| *reason == **after) => {
                run.stopping = None;
                let runtime = run.admitted.runtime.as_deref().unwrap_or_default();
                let is_parked = self.walls.is_parked(runtime);
                self.walls.over(event.run);
                let rules = run.parent.and_then(|above| self.runs.get(&above)?.rules.clone());
                let run =
                    self.runs.get_mut(&event.run).expect("the run that was looked up is gone");
                let wrong = match is_wall(after) {
                    true => faults::parked(run, *attempt, *continues, is_parked),
                    false => faults::retried(run, rules.as_deref(), *attempt, *continues, after),
                };
                run.state = SlotState::Queued;
                run.attempt = *attempt;
                self.books.return_to_pool(event.run);
                run.clock.stop();
                self.slots.give_back(event.run, depth, &above);
                wrong.map(|message| (Rule::Retries, message))
            }
            (EventKind::Resumed { .. }, _) => misplaced("although nothing interrupted it"),
            (EventKind::FellBack { number, runtime, .. }, _) => {
                self.walls.over(event.run);
                faults::fell_back(run, *number, runtime).map(|message| (Rule::Retries, message))
            }
            (
                EventKind::Kept { .. }
                | EventKind::Reported { .. }
                | EventKind::ToolUsed(_)
                | EventKind::Repeats { .. }
                | EventKind::BacksOff { .. }
                | EventKind::Answered
                | EventKind::ModelChanged { .. }
                | EventKind::ObservationOpened { .. }
                | EventKind::ObservationClosed { .. }
                | EventKind::RequestRefused { .. }
                | EventKind::BudgetNotice
                | EventKind::StallLent
                | EventKind::Alive
                | EventKind::Paused
                | EventKind::Unpaused
                | EventKind::MemoryEnough
                | EventKind::HostFree
                | EventKind::AccountFree { .. }
                // Breakers are counted here from the ends of runs.
                | EventKind::BreakerOpened { .. }
                | EventKind::BreakerClosed { .. }
                | EventKind::QuotaSeen { .. }
                | EventKind::Priming { .. }
                | EventKind::Primed { .. }
                | EventKind::PoolShort { .. }
                | EventKind::PoolEnough { .. }
                | EventKind::Merged(_)
                | EventKind::StrayEnded { .. }
                | EventKind::KeeperFailed { .. },
                _,
            ) => None,
            (
                EventKind::Admitted(_)
                | EventKind::Reopened
                | EventKind::RootReopened(_)
                | EventKind::Delivered { .. }
                | EventKind::Undelivered { .. }
                | EventKind::Removal { .. }
                | EventKind::Progress { .. },
                _,
            ) => unreachable!("taken before"),
        };
        if let Some((rule, message)) = broken {
            self.breach(event, rule, message);
        }
    }

    /// The limits of the root, where it has said them.
    fn root_rules(&self) -> Option<&Rules> {
        self.runs.get(&self.found.root?.run())?.rules.as_deref()
    }

    /// Lets no time until a reset count for a deadline, where the rules of the tree say so.
    fn rest_at_walls(&mut self) {
        if self.root_rules().is_some_and(|rules| rules.deadline_spares_parked == Some(true)) {
            self.life.rest(self.walls.until());
        }
    }

    fn breach(&mut self, event: &Event, rule: Rule, message: String) {
        self.found.breaches.push(Breach { seq: event.seq, run: event.run, rule, message });
    }
}
