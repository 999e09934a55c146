//! Performing effects: recorded first, told afterwards.

use std::io;
use std::sync::Arc;

use offshoot_model::{
    Account, CancelledBy, Ending, Event, EventKind, Reason, Refusal, RunId, Timestamp, error_chain,
};
use offshoot_runtime::{LetterBox, MemoryMeter, RunContext, Stop, StopHandle, Turns, UsageProbe};
use offshoot_store::{StoreError, Urgency};
use tracing::Instrument;

use super::entries::{AgentTask, Attempt, Entry, Follower};
use super::outbox::Released;
use super::{Act, Answered, Asked, Asker, Supervisor};
use crate::account_board::ParkedAccount;
use crate::attempt_watch::AttemptWatch;
use crate::error::SpawnerError;
use crate::host_slots::{HostGrant, SlotPool};
use crate::kept_values::KeptValue;
use crate::machine::{Effect, Input, MemorySeen, ReplyId, RunIndex};
use crate::message::{FanEvent, Message, TreeState, Waited};
use crate::task::Task;

/// The number of events that are given to the store at once, where a single message has more: the first of a hundred
/// thousand pieces start while the last are being recorded.
const APPEND_EVENTS: usize = 1024;

impl Supervisor {
    /// Performs what need not wait, records the rest, and leaves the telling in the outbox.
    pub(super) fn perform(&mut self) {
        let mut record = Vec::new();
        let mut released = Released::default();
        let mut performing = std::mem::take(&mut self.performing);
        std::mem::swap(&mut performing, &mut self.effects);
        for effect in performing.drain(..) {
            match effect {
                Effect::Record(event) => {
                    self.spans.log(&event, &self.machine);
                    self.tell_of_memory(&event);
                    if record.len() >= APPEND_EVENTS {
                        self.keep(std::mem::take(&mut record), std::mem::take(&mut released));
                    }
                    record.push(event);
                }
                Effect::Show(event) => {
                    self.spans.log(&event, &self.machine);
                    // Without a follower there is no receiver.
                    let _ = self.events.send(event);
                }
                Effect::Stop { run, how } => self.stop(run, how),
                Effect::LookAtMemory { measure } => self.look_at_memory(measure),
                Effect::TellWall { account, window, until } => {
                    self.tell_wall(ParkedAccount { account, window, until });
                }
                Effect::TellPressure { account } => self.tell_pressure(account),
                Effect::AskForProbe { account, since } => self.ask_for_probe(account, since),
                Effect::ProbeOver { account, is_answered } => {
                    self.probe_is_over(&account, is_answered);
                }
                Effect::ClaimSlots(pool, claim) => {
                    if let Some(host) = &mut self.host {
                        host.claim(&pool, claim);
                    }
                }
                Effect::FallBack { run, runtime, model } => {
                    let known = self.tree.runtimes.get(Some(&runtime));
                    let runtime = known.map(|known| Arc::clone(&known.runtime));
                    if let Some(entry) = self.runs.get_mut(run) {
                        let runtime = runtime.expect("a run falls back to a runtime that is here");
                        entry.fall_back(runtime, model.as_deref());
                    }
                }
                Effect::Again { run, continues } => {
                    if let Some(entry) = self.runs.get_mut(run) {
                        entry.again(continues);
                    }
                }
                Effect::Start { run, ahead: Some(seq) }
                    if self.outbox.is_durable(seq)
                        && self.may_start_now(run)
                        && !self.is_broken() =>
                {
                    self.start(run);
                }
                Effect::Reply { reply, answer } => {
                    // The record of its admission is the last one before the answer.
                    let admitted = record.last().map_or(0, |event| event.seq);
                    released.answers.push(self.answered(reply, answer, admitted));
                }
                Effect::Ended { run, envelope } => {
                    // A run that needs this answer may start before the record of it is durable.
                    if self.machine.has_needs() {
                        self.tree.answers.keep(&envelope);
                    }
                    released.effects.push(Effect::Ended { run, envelope });
                }
                later @ (Effect::Start { .. }
                | Effect::Resolve { .. }
                | Effect::NoTurn { .. }
                | Effect::Recorded { .. }
                | Effect::AnswerRequest { .. }
                | Effect::Remove { .. }) => released.effects.push(later),
            }
        }
        self.performing = performing;
        self.keep(record, released);
    }

    /// Tells the machine how much memory there is. To measure the processes of all runs takes longer, and is done beside.
    fn look_at_memory(&mut self, measure: bool) {
        let Some(host_memory) = self.tree.host_memory.clone() else { return };
        if !measure {
            let seen = host_memory().map(|memory| MemorySeen { memory, runs: None });
            return self.step(Input::MemorySeen { seen });
        }
        let runs = self.runs.which(|entry| entry.attempt.is_some());
        let meter = |run| Some((run, self.runs.attempt(run)?.watch.memory().clone()));
        let meters: Vec<(RunIndex, MemoryMeter)> = runs.into_iter().filter_map(meter).collect();
        let sender = self.sender.clone();
        drop(tokio::task::spawn_blocking(move || {
            let measured = meters.iter().filter_map(|(run, meter)| Some((*run, meter.read()?)));
            let runs = Some(measured.collect());
            // Read last: what the runs have taken until now is not available any more.
            let seen = host_memory().map(|memory| MemorySeen { memory, runs });
            // The supervisor outlives what it waits for, unless everything is torn down at once.
            let _ = sender.send(Message::Input(Input::MemorySeen { seen }));
        }));
    }

    /// Asks for the turn of the tree to probe an account. It is told of it by a message.
    fn ask_for_probe(&self, account: Account, since: Timestamp) {
        let Some(board) = &self.tree.account_board else { return };
        let (turn, sender) = (board.turn(&account), self.sender.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the tree")]
        tokio::spawn(async move {
            let turn = tokio::select! {
                turn = turn => turn,
                () = sender.closed() => return,
            };
            // The turn of a tree that is over goes on to the next one.
            let _ = sender.send(Message::ProbeTurn { account, since, turn });
        });
    }

    /// Gives back the turn to probe an account, after the other trees were told where a run of the account was answered, or has met the wall
    /// again.
    fn probe_is_over(&mut self, account: &Account, is_answered: bool) {
        let turn = self.probe_turns.remove(account);
        let Some(board) = self.tree.account_board.clone() else { return };
        let (account, now, telling) = (account.clone(), self.tree.clock.now(), self.telling.take());
        // It writes a file, and no run of this tree waits for it.
        let tell = move || {
            if is_answered {
                board.answered(&account, now);
            }
            drop(turn);
        };
        #[expect(clippy::disallowed_methods, reason = "it ends when the files are written")]
        tokio::spawn(async move {
            if let Some(telling) = telling {
                // A thread that has panicked has told of it.
                let _ = telling.await;
            }
            drop(tokio::task::spawn_blocking(tell));
        });
    }

    /// Takes in what was given of a pool of slots. Where those of an account cannot be counted, no run of it starts.
    pub(super) fn pool_gives(&mut self, pool: SlotPool, grant: io::Result<HostGrant>) {
        match (grant, pool) {
            (Ok(grant), pool) => self.step(Input::PoolGives(pool, grant)),
            (Err(error), SlotPool::Account(account)) => {
                let error = SpawnerError::AccountSlots(Account::clone(&account), Arc::new(error));
                let hint = error.hint().unwrap_or_default();
                let message = format!("{}; {hint}", error_chain(&error));
                self.step(Input::CannotCount { account, message });
            }
            (Err(_), SlotPool::Host) => unreachable!("it was opened before the tree"),
        }
    }

    /// Tells the other trees of the user that the service of an account had too much to do.
    fn tell_pressure(&self, account: Account) {
        if let Some(board) = self.tree.account_board.clone() {
            let now = self.tree.clock.now();
            // It writes a file, and no run waits for it.
            drop(tokio::task::spawn_blocking(move || board.pressed(&account, now)));
        }
    }

    /// Tells the other trees of the user of a wall.
    fn tell_wall(&mut self, parked: ParkedAccount) {
        if let Some(board) = self.tree.account_board.clone() {
            // It writes a file, and no run waits for it.
            self.telling = Some(tokio::task::spawn_blocking(move || board.tell(&parked)));
        }
    }

    /// Tells the runs that wait whether memory is short.
    fn tell_of_memory(&self, event: &Event) {
        match event.kind {
            EventKind::MemoryShort(_) => drop(self.tree.memory_short.send_replace(true)),
            EventKind::MemoryEnough => drop(self.tree.memory_short.send_replace(false)),
            _ => {}
        }
    }

    /// The record of a batch is durable, or could not be written.
    pub(super) fn told_of_commit(
        &mut self,
        committed: Result<(Vec<Arc<Event>>, Released), StoreError>,
    ) {
        match committed {
            Ok((events, released)) => {
                self.written();
                if self.events.receiver_count() > 0 {
                    for event in events {
                        // Followers may come and go.
                        let _ = self.events.send(event);
                    }
                }
                self.tell(released);
            }
            Err(error) => self.not_written(error),
        }
    }

    /// Gives events to the store. Once the record is broken nothing more is kept or told.
    fn keep(&mut self, record: Vec<Arc<Event>>, released: Released) {
        if self.is_broken() {
            return self.forget(&released.effects);
        }
        if !record.is_empty() {
            let store = &self.tree.store;
            let commit = match self.unwritten {
                // The store would refuse what follows a gap.
                Some(_) => None,
                // While other runs hold slots, further events will follow soon.
                None if released.can_wait() && self.machine.active() > 0 => {
                    Some(store.record(&record, Urgency::Soon))
                }
                None => Some(store.record(&record, Urgency::Now)),
            };
            self.outbox.push(commit, record, released);
        } else if let Some(released) = self.outbox.push_behind(released) {
            self.tell(released);
        }
    }

    fn tell(&mut self, released: Released) {
        for answered in released.answers {
            answered.tell();
        }
        let mut gone = Vec::new();
        for effect in released.effects {
            match effect {
                Effect::Remove { run } => gone.push(run),
                Effect::Start { run, .. } => self.start(run),
                Effect::Resolve { wait, ended, repeated, pending } => {
                    let (over, open) = (ended.len(), pending.len());
                    tracing::debug!(wait = wait.0, over, open, "wait answered");
                    if let Some(reply) = self.waits.remove(&wait) {
                        // The caller of the wait may have gone, which its guard says.
                        let _ = reply.send(Waited { ended, repeated, pending });
                    }
                }
                // Dropping the sender tells the caller that no answer comes.
                Effect::NoTurn { wait } => drop(self.waits.remove(&wait)),
                Effect::Recorded { at } => {
                    let act = self.acts.pop_front();
                    self.carry_out(act.expect("more was recorded than was asked for"), at);
                }
                Effect::AnswerRequest { request, verdict } => {
                    if let Some(reply) = self.requests.remove(&request) {
                        // The program may have gone, of which the meter tells.
                        let _ = reply.send(verdict);
                    }
                }
                Effect::Ended { run, envelope } => {
                    self.tree.answers.recorded(envelope.run_id);
                    self.tree.kept_values.lock().remove(&envelope.run_id);
                    self.discard_folder(envelope.run_id);
                    match self.runs.remove(run).map(|entry| entry.follower) {
                        Some(Some(Follower { place, told, .. })) => {
                            // The follower may have gone.
                            let _ = told.send(FanEvent::Ended { place, envelope });
                        }
                        Some(None) => {}
                        None => self.recorded.ended(run, *envelope),
                    }
                }
                Effect::Record(_)
                | Effect::Show(_)
                | Effect::Again { .. }
                | Effect::FallBack { .. }
                | Effect::Stop { .. }
                | Effect::LookAtMemory { .. }
                | Effect::TellWall { .. }
                | Effect::TellPressure { .. }
                | Effect::AskForProbe { .. }
                | Effect::ProbeOver { .. }
                | Effect::ClaimSlots(..)
                | Effect::Reply { .. } => {
                    unreachable!("performed at once, never put into the outbox")
                }
            }
        }
        if !gone.is_empty() {
            self.remove(gone);
        }
    }

    /// Carries out an act that is recorded since this moment. The caller may have gone.
    fn carry_out(&mut self, act: Act, at: Timestamp) {
        match act {
            Act::Letter { to, text, reply } => {
                if let Some(entry) = self.runs.get_mut(to) {
                    entry.post.put(text);
                }
                let _ = reply.send(Ok(()));
            }
            Act::Name { run, name, value, reply } => {
                let kept = KeptValue { value, at };
                self.tree.kept_values.lock().entry(run).or_default().insert(name, kept);
                let _ = reply.send(Ok(kept));
            }
            Act::Answer { reply } => drop(reply.send(Ok(()))),
        }
    }

    /// Removes the folder in which a run worked apart from others, where it was the last in it: its changes are on record.
    fn discard_folder(&mut self, run: RunId) {
        if let (Some(owner), Some(workspaces)) =
            (self.tree.workplaces.recorded(run), &self.tree.workspaces)
        {
            let discarded = workspaces.discard(owner);
            self.removals.spawn(async {
                discarded.await;
                Vec::new()
            });
        }
    }

    /// Removes the folders of these runs, where they have any.
    fn remove(&mut self, runs: Vec<RunId>) {
        let folder = self.tree.folder.clone();
        self.removals.spawn_blocking(move || {
            let remove = |run| {
                let error = folder.remove_run_folder(run).err();
                // No harm is done: the folder goes when the tree is pruned. But a user may count on its being gone.
                (run, error.map(|error| error_chain(&error).into()))
            };
            runs.into_iter().map(remove).collect()
        });
    }

    /// Returns true if the record of this run's admission is durable.
    fn may_start_now(&self, run: RunIndex) -> bool {
        self.runs.get(run).is_some_and(|entry| self.outbox.is_durable(entry.admitted))
    }

    /// Books what came of a request; the one who asked is told later.
    fn answered(
        &mut self,
        reply: ReplyId,
        answer: Result<(RunIndex, RunId), Box<Refusal>>,
        admitted: u64,
    ) -> Answered {
        let asked =
            self.asked.pop_front().expect("the machine answered a request that it did not get");
        let Asked { reply: next, prepared, to } = asked;
        assert_eq!(next, reply, "the machine answers each request in its own step");
        if let Ok((run, _)) = answer {
            let follower = match &to {
                Asker::Fan(follower) => Some(follower.clone()),
                Asker::One(_) => None,
            };
            let entry = Entry::of(prepared, admitted, follower);
            self.runs.insert(run, entry);
        }
        Answered { to, answer: answer.map(|(_, id)| id) }
    }

    fn start(&mut self, run: RunIndex) {
        let id = self.machine.id(run);
        let session = self.machine.session(run).expect("a run that starts is live");
        let entry = self.runs.get_mut(run).expect("a run that starts was admitted");
        assert!(entry.attempt.is_none(), "an attempt was started twice");
        let prepared = entry.launch.take().expect("nothing is left to start the run with");
        entry.launch = session.may_retry.then(|| prepared.clone());
        if entry.stopped {
            // Asked to stop between its slot and its start: the machine knows why.
            let ending = Ending::of(Reason::Cancelled { by: CancelledBy::Operator });
            let outcome = Box::new(ending.into());
            return self.step(Input::Finished { run, outcome });
        }
        let (stop, signal) = StopHandle::new();
        let watch = AttemptWatch::default();
        let usage = UsageProbe::default();
        let requests = usage.requests();
        let output = self.tree.outputs.begin(id, self.tree.clock.now());
        let schema = prepared.schema.clone();
        let host = self.host(run, &session, schema, watch.clone(), output.clone());
        let letters = LetterBox::default();
        let turns = Turns::new(host.clone(), letters.clone());
        let entry = self.runs.get_mut(run).expect("the run vanished during its start");
        // Before the task begins, so that its first look finds what was held for it.
        entry.post.open(letters);
        let (cpu, memory) = (watch.meter(), watch.memory().clone());
        let cx = RunContext { host, stop: signal, turns, usage: requests, cpu, memory };
        let (link, watched) = (self.link(), watch.clone());
        let task = Task { link, run, id, outcome: None, watch: watched, output };
        let work = task.run(session, prepared, cx);
        let task = AgentTask::spawn(work.instrument(self.spans.attempt(id)));
        let entry = self.runs.get_mut(run).expect("the run vanished during its start");
        entry.attempt = Some(Box::new(Attempt { stop, usage, watch, task: Some(task) }));
    }

    fn stop(&mut self, run: RunIndex, how: Stop) {
        let Some(entry) = self.runs.get_mut(run) else { return };
        match &entry.attempt {
            Some(attempt) => attempt.stop.stop(how),
            None => entry.stopped = true,
        }
    }

    /// Nothing more can be recorded: so nothing more is started or told, and what runs is killed.
    pub(super) fn broken(&mut self, error: StoreError) {
        tracing::error!(error = error_chain(&error), "record broken, everything is stopped");
        self.state.send_replace(TreeState::Broken(Arc::new(error)));
        self.unwritten = None;
        let forgotten = self.outbox.clear();
        self.waits.clear();
        self.acts.clear();
        self.step(Input::StopAll { firm: true });
        // Not before everything is stopped: the slot of a run that never starts is given to no other run.
        for released in forgotten {
            self.forget(&released.effects);
        }
        self.abandon();
    }

    fn is_broken(&self) -> bool {
        matches!(*self.state.borrow(), TreeState::Broken(_))
    }

    /// Drops what the broken record would have set free. A run that was to start with it never does, so it is over.
    fn forget(&mut self, released: &[Effect]) {
        for effect in released {
            if let Effect::Start { run, .. } = *effect {
                let outcome = Box::new(Ending::of(Reason::Interrupted).into());
                self.step(Input::Finished { run, outcome });
            }
        }
    }
}

impl Answered {
    fn tell(self) {
        let Self { to, answer } = self;
        match (to, answer) {
            // The caller may have gone; the run stays, for the record says that it was admitted.
            (Asker::One(reply), answer) => drop(reply.send(answer.map_err(|refusal| *refusal))),
            (Asker::Fan(Follower { place, told, .. }), Err(refusal)) => {
                let _ = told.send(FanEvent::Refused { place, refusal });
            }
            (Asker::Fan(_), Ok(_)) => {}
        }
    }
}
