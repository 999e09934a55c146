//! The machine of one tree: who may start, who gets a slot, who is stopped, who is told. Pure.
//!
//! ```text
//!   Input ──▶ Machine::step(now, input) ──▶ [Effect]
//! ```
//!
//! Nothing here is async, reads a file or asks a clock: the time comes in with each step, ids are minted outside.
//! The same inputs give the same effects, which is what lets a seed test a thousand trees and a record be replayed.
//!
//! Order among the effects of a step is the order in which they hold. An answer stands
//! behind the record of it, and is given only once the record is durable. A slot that
//! comes free is handed over in the same step, before the record of the end that freed it is even written.

mod account_pool;
mod account_slots;
mod admission;
mod alive;
mod apply;
mod backoff;
mod budget;
mod busy;
mod deadline;
mod effect;
mod end;
mod fallback;
mod host_slots;
mod input;
mod mail;
mod memory;
mod metered;
mod needs;
mod observation;
mod pace;
mod pool;
mod priming;
mod probe_turn;
mod queue;
mod recall;
mod refusals;
mod report;
mod retry;
mod run;
mod runs;
mod schedule;
mod share;
mod sign;
mod slots;
mod stall;
mod stop;
mod streak;
mod timer;
mod wait;
mod wall;
mod what_if;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use offshoot_config::{Config, OnCap};
use offshoot_model::{
    Account, AgentId, BudgetGrant, CostKnowledge, DelegationContext, Event, EventKind, RootId,
    RunId, Timestamp, TraceStep,
};
use offshoot_policy::prefix::PrefixId;
use offshoot_policy::{Books, Lineage, Terms};
use offshoot_runtime::RunEvent;

pub(crate) use busy::Busy;
pub(crate) use effect::{Effect, Session};
pub(crate) use end::Outcome;
pub(crate) use input::{Input, Opening, Reach, ReplyId, Spawn};
pub(crate) use mail::{Letter, TurnEnd};
pub(crate) use memory::MemorySeen;
pub use metered::RequestVerdict;
pub(crate) use metered::{RequestAsk, RequestOver};
pub(crate) use needs::NeededPiece;
pub(crate) use recall::{EndedPiece, Library, Past, Recall, Recalled, Waiting};
pub use recall::{NewLimits, NotReopened, Unanswered, Unknown};
pub(crate) use run::RunIndex;
pub(crate) use wait::{NewWait, WaitId};
pub use what_if::WhatIf;

use account_slots::AccountSlots;
use alive::LastEvents;
use apply::Applied;
use deadline::Deadlines;
use host_slots::HostSlots;
use memory::MemoryWait;
use needs::Needs;
use pace::Aside;

use probe_turn::ProbeTurns;
use queue::Queue;
use run::{AttemptUse, Run, SlotState};
use runs::Runs;
use slots::{Caps, Slots};
use timer::{Due, Timers};
use wait::Waits;

/// The state of one tree.
#[derive(Debug)]
pub(crate) struct Machine {
    root: RootId,
    runs: Runs,
    slots: Slots,
    queue: Queue,
    waits: Waits,
    timers: Timers,
    deadlines: Deadlines,
    config: Config,
    books: Books,
    seq: u64,
    last_events: LastEvents,
    live: usize,
    /// Runs in line for their first slot.
    queued: usize,
    /// True while another supervisor takes the tree over, and nothing of it runs.
    takes_over: bool,
    /// The runs whose next piece waits because of the budget that their pieces share, as it is on record.
    short_pools: BTreeSet<RunIndex>,
    /// Runs in line whose agent's breaker is open, or whose account has used up a quota. They stand in no queue, so that no search
    /// has to step over them; the next change of the breaker or the quota puts them back.
    held_back: Vec<RunIndex>,
    /// Pieces that were read back from the record and stand in no line yet.
    unclaimed: BTreeSet<RunIndex>,
    needs: Needs,
    memory_wait: MemoryWait,
    host_slots: HostSlots,
    account_slots: AccountSlots,
    /// The runs with requests to models that wait until others are over.
    waiting_requests: BTreeMap<u64, RunIndex>,
    /// Runs that stand in line, and do not start before the operator has given more budget.
    at_cap: BTreeSet<RunIndex>,
    probe_turns: ProbeTurns,
    /// True if runs of an account may start again, or the next one may probe, since runs were held back for it.
    walls_changed: bool,
    /// The last time at which the service of an account had too much to do for a run of any tree of the user.
    pressed: BTreeMap<Account, Timestamp>,
    /// Runs that wait because as many of their account work as may.
    paced_lines: BTreeMap<Account, Aside>,
    /// Runs that wait for the first answer to a prompt that they share.
    unprimed: BTreeMap<PrefixId, Aside>,
    /// Walls that other trees have met and of which no run of this one has asked yet, with their resets.
    told_walls: BTreeMap<Account, (Option<Arc<str>>, Timestamp)>,
    paused: bool,
    /// True if nothing starts, although the tree is not paused.
    held: bool,
    /// The moment of the next look for silent holders.
    stall_looked_for: Option<Timestamp>,
    /// Set once the whole tree is to stop: what is queued ends, nothing is admitted.
    closing: bool,
    root_grace_seconds: u64,
    /// The beginning of the root's task, which each run is told.
    root_request: Arc<str>,
    /// The moment of the step that is being taken, or of the event that is read back.
    now: Timestamp,
    /// The effects of the step that is being taken; empty between steps.
    out: Vec<Effect>,
}

impl Machine {
    /// An empty tree; [`Machine::open`] puts its root in.
    pub(crate) fn new(config: Config, root: RootId, agent: &AgentId) -> Self {
        let terms = Terms::root(&config, agent);
        let root_grace_seconds = terms.grace_seconds();
        Self {
            root,
            runs: Runs::default(),
            slots: Slots::new(caps(&terms)),
            queue: Queue::default(),
            waits: Waits::default(),
            timers: Timers::default(),
            deadlines: Deadlines::default(),
            config,
            books: Books::default(),
            seq: 0,
            last_events: LastEvents::default(),
            live: 0,
            queued: 0,
            takes_over: false,
            short_pools: BTreeSet::new(),
            held_back: Vec::new(),
            unclaimed: BTreeSet::new(),
            needs: Needs::default(),
            memory_wait: MemoryWait::default(),
            host_slots: HostSlots::default(),
            account_slots: AccountSlots::default(),
            waiting_requests: BTreeMap::new(),
            at_cap: BTreeSet::new(),
            probe_turns: ProbeTurns::default(),
            walls_changed: false,
            pressed: BTreeMap::new(),
            paced_lines: BTreeMap::new(),
            unprimed: BTreeMap::new(),
            told_walls: BTreeMap::new(),
            paused: false,
            held: false,
            stall_looked_for: None,
            closing: false,
            root_grace_seconds,
            root_request: Arc::default(),
            now: Timestamp::EPOCH,
            out: Vec::new(),
        }
    }

    /// One step. Effects are added to `out` in the order in which they hold.
    pub(crate) fn step(&mut self, now: Timestamp, input: Input, out: &mut Vec<Effect>) {
        self.now = now;
        // The list of the caller is filled in place: no step allocates one.
        std::mem::swap(&mut self.out, out);
        let changes_nothing = self.only_tells(&input);
        self.take(input);
        if !changes_nothing {
            self.go_on();
        }
        self.watch_for_stall();
        std::mem::swap(&mut self.out, out);
    }

    /// Returns true if an input says how a run goes that holds a slot, by which no run can start that could not before.
    fn only_tells(&self, input: &Input) -> bool {
        let Input::RunEvent { run, event: RunEvent::Started(_) | RunEvent::Progress(_), .. } =
            input
        else {
            return false;
        };
        let live = self.runs.live(*run);
        live.is_some_and(|live| matches!(live.phase, SlotState::Holding { .. }))
    }

    /// Hands out what came free: slots, and budget to requests that wait. A run for which nothing is left to pay with ends by that, and others may need it.
    fn go_on(&mut self) {
        if !self.waiting_requests.is_empty() {
            self.retry_requests();
        }
        self.go_on_without_needs();
        self.schedule();
        while self.has_needs_over() {
            self.go_on_without_needs();
            self.schedule();
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Spawn(spawn) => self.spawn(*spawn),
            Input::RunEvent { run, attempt, event } => self.told(run, attempt, event),
            Input::Reported { run, text } => self.reported(run, text),
            Input::Observes { run, number, task_type } => self.observes(run, number, task_type),
            Input::Observed { run, number, success } => self.observed(run, number, success),
            Input::Sign { run, at } => self.sign(run, at),
            Input::Finished { run, outcome } => self.came_back(run, *outcome),
            Input::Merged { summary } => self.record_of_tree(EventKind::Merged(summary)),
            Input::Claimed { run, asked } => {
                if let Some((request, facts)) = asked.as_deref() {
                    self.asked_again(run, request, facts);
                }
                self.claimed(run);
            }
            Input::Wait(wait) => self.wait(wait),
            Input::TurnEnded(end) => self.turn_ended(end),
            Input::Letter(letter) => self.letter(letter),
            Input::Keep { run, name, value } => {
                self.record(run, EventKind::Kept { name, value });
                self.out.push(Effect::Recorded { at: self.now });
            }
            Input::NotBrought { run, children } => self.not_brought(run, &children),
            Input::Busy { run, busy } => self.busy(run, busy),
            Input::WaitTaken { id } => self.wait_taken(id),
            Input::WaitDropped { id } => self.wait_dropped(id),
            Input::Cancel { run, reach, by } => self.cancel(run, reach, by),
            Input::StopAll { firm } => self.stop_all(firm),
            Input::Close { ending } => self.close(*ending),
            Input::Pause(paused) => {
                if self.paused != paused {
                    let event = if paused { EventKind::Paused } else { EventKind::Unpaused };
                    self.record_of_tree(event);
                }
                self.out.push(Effect::Recorded { at: self.now });
            }
            Input::Hold(held) => self.held = held,
            Input::RequestAsked(ask) => self.request_asked(ask),
            Input::RequestOver(over) => self.request_over(over),
            Input::RequestRefused { run, code, message } => {
                self.request_refused(run, code, message);
            }
            Input::WallSeen { run, window, reset, left } => {
                self.sees_wall(run, window, reset, left);
            }
            Input::WallTold { account, window, until } => self.hear_of_wall(account, window, until),
            Input::PressureTold { account, at } => self.hear_of_pressure(&account, at),
            Input::ProbeTurn { account, is_answered } => {
                self.takes_probe_turn(account, is_answered);
            }
            Input::MemorySeen { seen } => self.memory_seen(seen),
            Input::PoolGives(pool, grant) => self.pool_gives(&pool, grant),
            Input::CannotCount { account, message } => self.cannot_count(&account, message),
            Input::Stop { reason } => self.stop_for(&reason),
            Input::Removed { run, error } => self.removed(run, error),
            Input::KeeperFailed { pid, found, error } => {
                let event = EventKind::KeeperFailed { pid, found, error };
                self.record(RunIndex::ROOT, event);
            }
            Input::Raise { run, more } => self.raise(run, more),
            Input::Time => self.time(),
        }
    }

    /// Returns the moment at which the machine wants [`Input::Time`], if nothing else happens before.
    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// The same, but for the moments at which a supervisor only says that it lives.
    #[cfg(test)]
    fn next_change(&self) -> Option<Timestamp> {
        self.timers.next_change()
    }

    /// Runs that hold a slot.
    pub(crate) fn active(&self) -> u32 {
        self.slots.live()
    }

    /// Runs that stand in line.
    pub(crate) fn queued(&self) -> usize {
        self.queued + self.queue.returning() + self.account_slots.returning()
    }

    /// Runs that are not over.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Runs that are not over, but for a root that only holds pieces.
    pub(crate) fn works(&self) -> usize {
        let is_holder = self.runs.root().is_some_and(|root| root.phase == SlotState::Holder);
        self.live - usize::from(is_holder)
    }

    /// Returns the seconds that everything that runs is given to end: those that the root is given.
    pub(crate) fn grace_seconds(&self) -> u64 {
        self.root_grace_seconds
    }

    /// Returns the session of a run, as its launch describes it; none for a run that is over.
    pub(crate) fn session(&self, run: RunIndex) -> Option<Session> {
        let entry = &self.runs[run];
        let live = entry.live()?;
        Some(Session {
            key: live.key.clone(),
            agent: entry.agent.clone(),
            depth: entry.depth(),
            delegation: self.delegation_context(run),
            grant: self.grant_of(run, live),
            left: self.left_at_launch(run, live),
            inline_bytes: live.terms.result_inline_bytes(),
            allows_unknown_cost: live.under.budget.allow_unknown_cost(),
            pauses_at_cap: live.under.budget.on_cap() == OnCap::Pause,
            attempt: live.attempt,
            may_retry: live.faults < live.under.retries_count(live.resumes)
                || wall::may_wait(live)
                || fallback::has_more(live),
            needs: self.answers_for(run),
        })
    }

    /// Returns the runs above a run, and the request at the top.
    fn delegation_context(&self, run: RunIndex) -> DelegationContext {
        let step = |run: RunIndex| {
            let Run { id, agent, .. } = &self.runs[run];
            TraceStep { agent: agent.clone(), run_id: *id }
        };
        let upwards = std::iter::once(run).chain(self.runs.above(run));
        let mut trace: Vec<TraceStep> = upwards.map(step).collect();
        trace.reverse();
        DelegationContext::new(trace, Arc::clone(&self.root_request))
    }

    /// Returns the budget that a run may still promise to children, and the terms under which it spawns; none for a run
    /// that is over.
    pub(crate) fn allowance(&self, run: RunIndex) -> Option<(BudgetGrant, Arc<Terms>)> {
        let live = self.runs.live(run)?;
        Some((self.books.ledger.left(self.id(run)), Arc::clone(&live.terms)))
    }

    /// Returns the chain of delegations down to a run that lives.
    pub(crate) fn lineage(&self, run: RunIndex) -> Option<Arc<Lineage>> {
        self.runs.live(run).map(|live| Arc::clone(&live.lineage))
    }

    /// Returns true if a run is at work and was not asked to stop.
    pub(crate) fn goes_on(&self, run: RunIndex) -> bool {
        self.runs.running(run).is_some_and(|live| live.stopping.is_none())
    }

    /// The place of a run in this tree; none where no attempt of it runs.
    pub(crate) fn find_running(&self, run: RunId) -> Option<RunIndex> {
        self.find(run).filter(|run| self.runs.running(*run).is_some())
    }

    /// The place of a run in this tree.
    pub(crate) fn find(&self, run: RunId) -> Option<RunIndex> {
        self.runs.find(run)
    }

    /// The id of a run in this tree.
    pub(crate) fn id(&self, run: RunIndex) -> RunId {
        self.runs[run].id
    }

    fn told(&mut self, run: RunIndex, attempt: u32, event: RunEvent) {
        if self.runs.running(run).is_none_or(|live| live.attempt != attempt) {
            return self.told_late(run, attempt, event);
        }
        self.gives_sign(run);
        let Some(live) = self.runs.live_mut(run) else { return };
        match event {
            RunEvent::Started(process) => {
                if let SlotState::Holding { started, .. } = &mut live.phase {
                    *started = true;
                }
                self.record(run, EventKind::Started { process });
            }
            RunEvent::Progress(text) => self.show(run, text),
            RunEvent::Answers => self.shows_success(run),
            RunEvent::BacksOff { why, wait, is_pressure } => {
                self.backs_off(run, &why, wait, is_pressure);
            }
            RunEvent::ToolUsed(used) => {
                self.shows_success(run);
                self.tool_used(run, used);
            }
            RunEvent::ModelChanged(model) => {
                self.record_or_show(run, EventKind::ModelChanged { model })
            }
            RunEvent::StrayEnded { pid, name } => {
                self.record(run, EventKind::StrayEnded { pid, name });
            }
            RunEvent::QuotaLeft { window, left, until } => {
                self.sees_quota(run, window, left, until);
            }
            // What the meter counts is not told twice.
            RunEvent::Used { .. } if live.cost == CostKnowledge::Metered => {}
            RunEvent::Used { usage, cost } => {
                let told = (usage.believed(), cost);
                // A runtime that tells the same once more has told nothing.
                if live.told.as_deref() == Some(&told) {
                    return;
                }
                live.told = Some(Box::new(told));
                let (usage, cost) = live.in_all(told.0, told.1);
                self.charge(run, usage, cost);
                if wall::is_something(&told.0) {
                    self.shows_success(run);
                }
            }
        }
    }

    /// An attempt that is over tells something, while its run stands in line or has another attempt. What it has used is paid
    /// for, and counts; what it did is no part of the run any more.
    fn told_late(&mut self, run: RunIndex, attempt: u32, event: RunEvent) {
        let Some(live) = self.runs.live_mut(run) else { return };
        match event {
            RunEvent::Started(_) | RunEvent::QuotaLeft { .. } => {}
            RunEvent::Answers | RunEvent::BacksOff { .. } | RunEvent::ModelChanged(_) => {}
            RunEvent::ToolUsed(used) => self.show(run, used.line().into()),
            RunEvent::Progress(text) => self.show(run, text),
            RunEvent::StrayEnded { pid, name } => {
                self.record(run, EventKind::StrayEnded { pid, name });
            }
            RunEvent::Used { .. } if live.cost == CostKnowledge::Metered => {}
            RunEvent::Used { usage, cost } => {
                let mut earlier = live.earlier.iter_mut();
                let of = |earlier: &&mut AttemptUse| earlier.attempt == Some(attempt);
                let Some(earlier) = earlier.find(of) else { return };
                let before = *earlier;
                earlier.usage = earlier.usage.at_least(usage.believed());
                earlier.cost = earlier.cost.at_least(cost);
                if *earlier != before {
                    let (usage, cost) = live.told.as_deref().copied().unwrap_or_default();
                    let (usage, cost) = live.in_all(usage, cost);
                    self.charge(run, usage, cost);
                }
            }
        }
    }

    fn time(&mut self) {
        while let Some(due) = self.timers.pop(self.now) {
            match due {
                Due::Timeout(run) => self.timeout(run),
                Due::Idle(run) => self.idle(run),
                Due::Again(run) => self.again(run),
                Due::Wait(wait) => self.wait_timed_out(wait),
                Due::Delivery(wait) => self.delivery_timed_out(wait),
                Due::Stall => self.look_for_stall(),
                Due::Deadline(run) => self.deadline(run),
                Due::Park => self.park_limit(),
                Due::Memory => self.look_at_memory_again(),
                Due::Alive => self.may_say_alive(),
                Due::FirstAnswer => self.first_answers_run_out(),
                // What is kept is looked at where slots are handed out.
                Due::AccountSlot => {}
                Due::Reconsider => self.reconsider(),
            }
        }
    }

    /// Applies an event and appends it to the record.
    fn record(&mut self, run: RunIndex, kind: EventKind) -> Applied {
        self.record_refusals(run);
        self.append(run, kind)
    }

    /// True as long as the root is not over: of a tree whose root is over nothing more starts.
    fn is_open(&self) -> bool {
        self.runs.root().is_some()
    }

    /// Records an event of the whole tree, as long as its root is not over.
    fn record_of_tree(&mut self, kind: EventKind) {
        if self.is_open() {
            self.record(RunIndex::ROOT, kind);
        }
    }

    fn append(&mut self, run: RunIndex, kind: EventKind) -> Applied {
        self.seq += 1;
        self.last_events.see(&kind, self.now);
        let applied = self.apply(run, &kind);
        let event = self.event(run, kind);
        self.out.push(Effect::Record(Arc::new(event)));
        applied
    }

    fn event(&self, run: RunIndex, kind: EventKind) -> Event {
        Event { root: self.root, seq: self.seq, at: self.now, run: self.id(run), kind }
    }

    /// Puts a run into the tree. It stands in no queue yet.
    fn insert(&mut self, run: Run) -> RunIndex {
        let parent = run.parent;
        let run = self.runs.add(run);
        if let Some(parent) = parent {
            self.runs[parent].children.push(run);
            if let Some(parent) = self.runs.live_mut(parent) {
                parent.live_children.insert(run);
            }
        }
        self.live += 1;
        run
    }

    /// The run and everything below it, parents before children.
    fn subtree(&self, run: RunIndex) -> Vec<RunIndex> {
        let mut found = vec![run];
        let mut at = 0;
        while let Some(&next) = found.get(at) {
            found.extend(&self.runs[next].children);
            at += 1;
        }
        found
    }
}

/// Returns how many runs may hold a slot at once under these terms.
fn caps(terms: &Terms) -> Caps {
    Caps { total: terms.max_concurrent(), per_level: terms.max_concurrent_per_level() }
}
