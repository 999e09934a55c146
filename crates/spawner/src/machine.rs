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

mod admission;
mod apply;
mod budget;
mod busy;
mod deadline;
mod effect;
mod end;
mod input;
mod mail;
mod queue;
mod recall;
mod refusals;
mod report;
mod retry;
mod run;
mod schedule;
mod sign;
mod slots;
mod stall;
mod stop;
mod timer;
mod wait;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_model::{AgentId, BudgetGrant, Cleanup, Event, EventKind, RootId, RunId, Timestamp};
use offshoot_policy::{Books, Terms};
use offshoot_runtime::RunEvent;
use thin_vec::ThinVec;

pub(crate) use busy::Busy;
pub(crate) use effect::{Effect, Session};
pub(crate) use end::Outcome;
pub(crate) use input::{Input, Opening, Reach, ReplyId, Spawn};
pub(crate) use mail::{Letter, TurnEnd};
pub use recall::Unknown;
pub(crate) use recall::{EndedPiece, Library, Past, Recall, Recalled, Waiting};
pub(crate) use run::RunIndex;
pub(crate) use wait::{NewWait, WaitId};

use apply::Applied;
use deadline::Deadlines;
use queue::Queue;
use run::{Body, Live, Run, SlotState};
use slots::{Caps, Position, Slots};
use timer::{Due, Timers};
use wait::Waits;

/// The state of one tree.
#[derive(Debug)]
pub(crate) struct Machine {
    root: RootId,
    runs: Vec<Run>,
    index: HashMap<RunId, RunIndex>,
    slots: Slots,
    queue: Queue,
    waits: Waits,
    timers: Timers,
    deadlines: Deadlines,
    config: Config,
    books: Books,
    seq: u64,
    live: usize,
    /// Runs in line for their first slot.
    queued: usize,
    /// Runs in line whose agent's breaker is open. They stand in no queue, so that no search has to step over them; the
    /// next change of the breaker puts them back.
    held_back: Vec<RunIndex>,
    /// Pieces that were read back from the record and stand in no line yet.
    unclaimed: BTreeSet<RunIndex>,
    paused: bool,
    /// True if nothing starts, although the tree is not paused.
    held: bool,
    /// The moment of the next look for silent holders.
    stall_looked_for: Option<Timestamp>,
    /// Set once the whole tree is to stop: what is queued ends, nothing is admitted.
    closing: bool,
    root_grace_seconds: u64,
}

impl Machine {
    /// An empty tree; [`Machine::open`] puts its root in.
    pub(crate) fn new(config: Config, root: RootId, agent: &AgentId) -> Self {
        let terms = Terms::root(&config, agent);
        let root_grace_seconds = terms.grace_seconds();
        Self {
            root,
            runs: Vec::new(),
            index: HashMap::new(),
            slots: Slots::new(caps(&terms)),
            queue: Queue::default(),
            waits: Waits::default(),
            timers: Timers::default(),
            deadlines: Deadlines::default(),
            config,
            books: Books::default(),
            seq: 0,
            live: 0,
            queued: 0,
            held_back: Vec::new(),
            unclaimed: BTreeSet::new(),
            paused: false,
            held: false,
            stall_looked_for: None,
            closing: false,
            root_grace_seconds,
        }
    }

    /// One step. Effects are added to `out` in the order in which they hold.
    pub(crate) fn step(&mut self, now: Timestamp, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Spawn(spawn) => self.spawn(now, *spawn, out),
            Input::RunEvent { run, event } => self.told(now, run, event, out),
            Input::Reported { run, text } => self.reported(now, run, text, out),
            Input::Sign { run, at } => self.sign(now, run, at, out),
            Input::Finished { run, outcome } => self.came_back(now, run, *outcome, out),
            Input::Merged { summary } => {
                if self.runs[RunIndex::ROOT.get()].live().is_some() {
                    self.record(now, RunIndex::ROOT, EventKind::Merged(summary), out);
                }
            }
            Input::Claimed { run } => self.claimed(now, run),
            Input::Wait(wait) => self.wait(now, wait, out),
            Input::TurnEnded(end) => self.turn_ended(now, end, out),
            Input::Letter(letter) => self.letter(now, letter, out),
            Input::Keep { run, name, value } => {
                self.record(now, run, EventKind::Kept { name, value }, out);
                out.push(Effect::Recorded { at: now });
            }
            Input::NotBrought { run, children } => self.not_brought(now, run, &children, out),
            Input::Busy { run, busy } => self.busy(now, run, busy, out),
            Input::WaitTaken { id } => self.wait_taken(id),
            Input::WaitDropped { id } => self.wait_dropped(now, id, out),
            Input::Cancel { run, reach, by } => self.cancel(now, run, reach, by, out),
            Input::StopAll { firm } => self.stop_all(now, firm, out),
            Input::Close { ending } => self.close(now, *ending, out),
            Input::Pause(paused) => self.paused = paused,
            Input::Hold(held) => self.held = held,
            Input::Stop { reason } => self.stop_for(now, &reason, out),
            Input::Removed { run, error } => self.removed(now, run, error, out),
            Input::KeeperFailed { pid, found, error } => {
                let event = EventKind::KeeperFailed { pid, found, error };
                self.record(now, RunIndex::ROOT, event, out);
            }
            Input::Raise { run, more } => self.raise(now, run, more, out),
            Input::Time => self.time(now, out),
        }
        self.schedule(now, out);
        self.watch_for_stall(now);
    }

    /// Returns the moment at which the machine wants [`Input::Time`], if nothing else happens before.
    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Runs that hold a slot.
    pub(crate) fn active(&self) -> u32 {
        self.slots.live()
    }

    /// Runs that stand in line.
    pub(crate) fn queued(&self) -> usize {
        self.queued + self.queue.returning()
    }

    /// Runs that are not over.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Runs that are not over, but for a root that only holds pieces.
    pub(crate) fn works(&self) -> usize {
        let root = self.runs.first().and_then(Run::live);
        self.live - usize::from(root.is_some_and(|root| root.phase == SlotState::Holder))
    }

    /// Returns the seconds that everything that runs is given to end: those that the root is given.
    pub(crate) fn grace_seconds(&self) -> u64 {
        self.root_grace_seconds
    }

    /// Returns the session of a run, as its launch describes it; none for a run that is over.
    pub(crate) fn session(&self, run: RunIndex) -> Option<Session> {
        let run = &self.runs[run.get()];
        let live = run.live()?;
        let (key, agent, grant) = (live.key.clone(), live.agent.clone(), Arc::clone(&live.grant));
        let inline_bytes = live.terms.result_inline_bytes();
        let may_retry = live.faults < live.under.retries_count(live.resumes);
        Some(Session { key, agent, depth: run.depth(), grant, inline_bytes, may_retry })
    }

    /// Returns the budget that a run may still promise to children, and the terms under which it spawns; none for a run
    /// that is over.
    pub(crate) fn allowance(&self, run: RunIndex) -> Option<(BudgetGrant, Arc<Terms>)> {
        let live = self.runs[run.get()].live()?;
        Some((self.books.ledger.left(self.id(run)), Arc::clone(&live.terms)))
    }

    /// The place of a run in this tree; none where the run is over.
    pub(crate) fn find_live(&self, run: RunId) -> Option<RunIndex> {
        self.find(run).filter(|run| self.runs[run.get()].live().is_some())
    }

    /// The place of a run in this tree.
    pub(crate) fn find(&self, run: RunId) -> Option<RunIndex> {
        self.index.get(&run).copied()
    }

    /// The id of a run in this tree.
    pub(crate) fn id(&self, run: RunIndex) -> RunId {
        self.runs[run.get()].id
    }

    fn told(&mut self, now: Timestamp, run: RunIndex, event: RunEvent, out: &mut Vec<Effect>) {
        self.wake(now, run, out);
        let Some(live) = self.runs[run.get()].live_mut() else { return };
        live.clock.sign(now);
        // Told by an attempt that is over, while the next one waits for its slot.
        let is_late = matches!(live.phase, SlotState::Queued);
        match event {
            RunEvent::Started(_) if is_late => {}
            RunEvent::Started(process) => {
                if let SlotState::Holding { started, .. } = &mut live.phase {
                    *started = true;
                }
                self.record(now, run, EventKind::Started { process }, out);
            }
            RunEvent::ToolUsed(used) if is_late => self.show(now, run, used.line().into(), out),
            RunEvent::Progress(text) => self.show(now, run, text, out),
            RunEvent::ToolUsed(used) => self.tool_used(now, run, used, out),
            RunEvent::StrayEnded { pid, name } => {
                self.record(now, run, EventKind::StrayEnded { pid, name }, out);
            }
            RunEvent::Used { usage, cost } => {
                let told = (usage.believed(), cost);
                // A runtime that tells the same once more has told nothing.
                if live.told.as_deref() == Some(&told) {
                    return;
                }
                live.told = Some(Box::new(told));
                let (usage, cost) = live.in_all(told.0, told.1);
                self.charge(now, run, usage, cost, out);
            }
        }
    }

    fn time(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        while let Some(due) = self.timers.pop(now) {
            match due {
                Due::Timeout(run) => self.timeout(now, run, out),
                Due::Idle(run) => self.idle(now, run, out),
                Due::Again(run) => self.again(run),
                Due::Wait(wait) => self.wait_timed_out(now, wait, out),
                Due::Stall => self.look_for_stall(now, out),
                Due::Deadline(run) => self.deadline(now, run, out),
                Due::Reconsider => self.reconsider(),
            }
        }
    }

    /// Applies an event and appends it to the record.
    fn record(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        kind: EventKind,
        out: &mut Vec<Effect>,
    ) -> Applied {
        self.record_refusals(now, run, out);
        self.append(now, run, kind, out)
    }

    fn append(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        kind: EventKind,
        out: &mut Vec<Effect>,
    ) -> Applied {
        self.seq += 1;
        let applied = self.apply(now, run, &kind);
        let event = self.event(now, run, kind);
        out.push(Effect::Record(Arc::new(event)));
        applied
    }

    fn event(&self, now: Timestamp, run: RunIndex, kind: EventKind) -> Event {
        let run = self.runs[run.get()].id;
        Event { root: self.root, seq: self.seq, at: now, run, kind }
    }

    /// Puts a run into the tree. It stands in no queue yet.
    fn insert(
        &mut self,
        id: RunId,
        parent: Option<RunIndex>,
        position: Position,
        live: Live,
    ) -> RunIndex {
        let run = RunIndex::new(self.runs.len());
        let body = Body::Live(Box::new(live));
        self.runs.push(Run {
            id,
            parent,
            position,
            below: position.part,
            cleanup: Cleanup::Keep,
            keeps: false,
            not_removed: false,
            children: ThinVec::new(),
            body,
        });
        let before = self.index.insert(id, run);
        assert!(before.is_none(), "run ids are minted once");
        if let Some(parent) = parent {
            self.runs[parent.get()].children.push(run);
            if let Some(parent) = self.runs[parent.get()].live_mut() {
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
            found.extend(&self.runs[next.get()].children);
            at += 1;
        }
        found
    }
}

/// Returns how many runs may hold a slot at once under these terms.
fn caps(terms: &Terms) -> Caps {
    Caps { total: terms.max_concurrent(), per_level: terms.max_concurrent_per_level() }
}
