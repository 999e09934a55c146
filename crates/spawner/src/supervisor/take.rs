//! Taking messages: what each means to the machine.

use std::ops::Range;
use std::sync::Arc;

use offshoot_model::{CancelledBy, Refusal, RunId};
use offshoot_runtime::WaitFor;
use tokio::sync::mpsc;

use super::entries::{Entry, Follower};
use super::outbox::Released;
use super::{Act, Allowed, Asked, Asker, BATCH, Recorded, Supervisor};
use crate::machine::{
    Effect, Input, Letter, NewWait, Past, Reach, ReplyId, RunIndex, Session, Spawn, TurnEnd,
};
use crate::message::{Asking, Children, Counts, FanEvent, FanId, Message, over};
use crate::request::Ask;

impl Supervisor {
    pub(super) fn take(&mut self, message: Message, effects: &mut Vec<Effect>) {
        match message {
            Message::Spawn { ask, reply } => self.ask(*ask, Asker::One(reply), effects),
            Message::SpawnMany { caller, mut asks } => {
                self.divide_budget(caller, asks.iter_mut().map(|(ask, _)| ask));
                for (ask, reply) in asks {
                    self.ask(ask, Asker::One(reply), effects);
                }
            }
            Message::Fan { id, caller, mut asks, follower, max_fail, numbers, permit } => {
                if let Some(most) = max_fail {
                    self.allow_failures(id, most, numbers);
                }
                asks = self.adopt(id, asks, &follower, effects);
                self.divide_budget(caller, asks.iter_mut());
                for (count, ask) in asks.into_iter().enumerate() {
                    let follower = Follower { fan: id, place: ask.place, told: follower.clone() };
                    self.ask(ask, Asker::Fan(follower), effects);
                    if count % BATCH == BATCH - 1 {
                        // So that what is to be recorded of a hundred thousand is not in memory at once.
                        self.perform(effects);
                    }
                }
                if let Some(permit) = permit {
                    self.perform(effects);
                    // If no write is under way, the admissions are durable, and the permit is given back here.
                    let released = Released { permits: vec![permit], ..Released::default() };
                    drop(self.outbox.push_behind(released));
                }
            }
            Message::CancelPieces { fan, by } => self.cancel_pieces(fan, by, effects),
            Message::RunEvent { run, event, permit } => {
                drop(permit);
                self.step(Input::RunEvent { run, event }, effects);
            }
            Message::Report { run: id, text, reply } => {
                let answer = match self.machine.find_live(id) {
                    Some(run) => {
                        self.step(Input::Reported { run, text }, effects);
                        Ok(())
                    }
                    None => Err(over()),
                };
                // The caller may have gone.
                let _ = reply.send(answer);
            }
            Message::Finished { run, outcome } => {
                let entry = self.runs.get_mut(run);
                if let Some(attempt) = entry.and_then(|entry| entry.attempt.as_mut()) {
                    attempt.task = None;
                }
                let before = effects.len();
                self.step(Input::Finished { run, outcome }, effects);
                self.count_failures(before, effects);
            }
            Message::Wait { id, caller, wait, reply } => {
                let (run, runs) = (self.machine.id(caller), wait.runs.len());
                tracing::debug!(wait = id.0, %run, runs, "wait begins");
                self.waits.insert(id, reply);
                let until = wait.timeout.map(|patience| self.tree.clock.now().plus(patience));
                let WaitFor { runs, mode, timeout: _ } = wait;
                self.step(Input::Wait(NewWait { id, caller, runs, mode, until }), effects);
            }
            Message::TurnEnded { id, run, answer, letters_taken, reply } => {
                self.waits.insert(id, reply);
                let end = TurnEnd { run, id, answer, letters_taken };
                self.step(Input::TurnEnded(end), effects);
            }
            Message::Letter { to, from, text, payload, reply } => {
                let to = self.machine.find(to).ok_or_else(|| unknown(to));
                match to.and_then(|to| self.machine.may_write(to).map(|()| to)) {
                    Ok(to) => {
                        self.acts.push_back(Act::Letter { to, text, reply });
                        let letter = Letter { to, from, text: payload };
                        self.step(Input::Letter(letter), effects);
                    }
                    // The caller may have gone.
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Message::Keep { run: id, name, value, reply } => {
                match self.machine.find_live(id) {
                    Some(run) => {
                        let act = Act::Name { run: id, name: Arc::clone(&name), value, reply };
                        self.acts.push_back(act);
                        self.step(Input::Keep { run, name, value }, effects);
                    }
                    // The caller may have gone.
                    None => drop(reply.send(Err(over()))),
                }
            }
            Message::Busy { run, busy } => self.step(Input::Busy { run, busy }, effects),
            Message::WaitTaken { id } => self.step(Input::WaitTaken { id }, effects),
            Message::NotBrought { run, children } => {
                self.step(Input::NotBrought { run, children }, effects);
            }
            Message::WaitDropped { id } => {
                self.waits.remove(&id);
                self.step(Input::WaitDropped { id }, effects);
            }
            Message::Cancel { run, reach, by } => {
                if let Some(run) = self.machine.find(run) {
                    self.step(Input::Cancel { run, reach, by }, effects);
                }
            }
            Message::StopAll { firm } => self.step(Input::StopAll { firm }, effects),
            Message::Raise { run, more, reply } => {
                let run = self.machine.find(run).ok_or_else(|| unknown(run));
                match run.and_then(|run| self.machine.may_raise(run, more).map(|()| run)) {
                    Ok(run) => {
                        self.acts.push_back(Act::Raise { reply });
                        self.step(Input::Raise { run, more }, effects);
                    }
                    // The caller may have gone.
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Message::KeeperFailed { pid, found, error } => {
                self.step(Input::KeeperFailed { pid, found, error }, effects);
            }
            Message::Pause(paused) => self.step(Input::Pause(paused), effects),
            Message::Merged { summary } => self.step(Input::Merged { summary }, effects),
            Message::Close { ending } => self.step(Input::Close { ending }, effects),
            Message::Halt { error } => self.broken(error, effects),
            Message::Abandon => {
                self.step(Input::StopAll { firm: false }, effects);
                self.abandon(effects);
            }
            Message::Find { run, reply } => {
                let index = self.machine.find(run);
                let found = index.and_then(|index| Some((index, self.machine.session(index)?)));
                let asking = found.map(|(index, session)| {
                    let Session { key, agent, depth, grant, inline_bytes, may_retry: _ } = session;
                    let attempt = self.runs.get(index).and_then(|entry| entry.attempt.as_ref());
                    let (usage, cpu) = attempt
                        .map(|attempt| (attempt.usage.clone(), attempt.watch.clone()))
                        .unwrap_or_default();
                    Asking { index, key, agent, depth, grant, inline_bytes, usage, cpu }
                });
                // The caller may have gone.
                let _ = reply.send(asking);
            }
            Message::Allowance { run, reply } => {
                let allowance =
                    self.machine.find(run).and_then(|index| self.machine.allowance(index));
                // The caller may have gone.
                let _ = reply.send(allowance);
            }
            Message::Children { run, which, reply } => {
                // The caller may have gone.
                let _ = reply.send(self.machine.find_live(run).map(|run| match which {
                    Children::All => self.machine.children_runs(run),
                    Children::Unnamed => self.machine.unnamed_runs(run),
                }));
            }
            Message::Count { reply } => {
                let counts = Counts {
                    active: self.machine.active() as usize,
                    queued: self.machine.queued(),
                    live: self.machine.live(),
                };
                // The caller may have gone.
                let _ = reply.send(counts);
            }
        }
    }

    /// Lets so many pieces of a request end without success. Those that have done so in an earlier life of the tree count.
    fn allow_failures(&mut self, fan: FanId, most: u32, numbers: Range<u32>) {
        let recorded = &self.recorded;
        self.allowed.entry(fan).or_insert_with(|| {
            match most.checked_sub(recorded.failed(numbers)) {
                Some(left) => Allowed::Failures(left),
                None => Allowed::Nothing(CancelledBy::MaxFail),
            }
        });
    }

    /// Returns the reason why no piece of a request may start any more, if there is one.
    fn cut_short(&self, fan: FanId) -> Option<CancelledBy> {
        match self.allowed.get(&fan)? {
            Allowed::Failures(_) => None,
            Allowed::Nothing(by) => Some(*by),
        }
    }

    fn cancel_pieces(&mut self, fan: FanId, by: CancelledBy, effects: &mut Vec<Effect>) {
        self.allowed.insert(fan, Allowed::Nothing(by));
        let is_piece = |entry: &Entry| entry.follower.as_ref().is_some_and(|it| it.fan == fan);
        for run in self.runs.which(is_piece) {
            // The slot that came free just now may start it with the next effect.
            if let Some(entry) = self.runs.get_mut(run).filter(|entry| entry.attempt.is_none()) {
                entry.stopped = true;
            }
            self.step(Input::Cancel { run, reach: Reach::Subtree, by }, effects);
        }
    }

    /// Counts the pieces whose end is among the effects from this one on. The end that is one too many cancels the rest at once:
    /// the request itself hears of it only when it is on record, and other pieces would start until then.
    fn count_failures(&mut self, from: usize, effects: &mut Vec<Effect>) {
        if self.allowed.is_empty() {
            return;
        }
        let fan_of = |effect: &Effect| match effect {
            Effect::Ended { run, envelope } if !envelope.status.is_success() => {
                self.runs.get(*run)?.follower.as_ref().map(|follower| follower.fan)
            }
            _ => None,
        };
        let failed: Vec<FanId> = effects[from..].iter().filter_map(fan_of).collect();
        for fan in failed {
            match self.allowed.get_mut(&fan) {
                Some(Allowed::Failures(0)) => {
                    self.cancel_pieces(fan, CancelledBy::MaxFail, effects);
                }
                Some(Allowed::Failures(left)) => *left -= 1,
                Some(Allowed::Nothing(_)) | None => {}
            }
        }
    }

    /// Of pieces that stand in the record, tells what came of them or goes on with them. Answers the others.
    fn adopt(
        &mut self,
        fan: FanId,
        asks: Vec<Ask>,
        told: &mpsc::UnboundedSender<FanEvent>,
        effects: &mut Vec<Effect>,
    ) -> Vec<Ask> {
        if self.recorded.is_empty() {
            return asks;
        }
        let cut_short = self.cut_short(fan);
        let (mut others, mut failed) = (Vec::new(), Vec::new());
        for ask in asks {
            let place = ask.place;
            let follower = || Some(Follower { fan, place, told: told.clone() });
            match ask.number.and_then(|number| self.recorded.take(number)) {
                None => others.push(ask),
                Some(Recorded::Over { run, past }) if past.has_failed() => {
                    failed.push(FanEvent::Over { place, run, past });
                }
                Some(Recorded::Over { run, past }) => {
                    // The caller may have gone.
                    let _ = told.send(FanEvent::Over { place, run, past });
                }
                Some(Recorded::Ending { run, unneeded: true }) => {
                    let run = self.machine.id(run);
                    let _ = told.send(FanEvent::Over { place, run, past: Past::Unneeded });
                }
                Some(Recorded::Ending { run, unneeded: false }) => {
                    self.runs.insert(run, Entry::of(ask.prepared(), 1, follower()));
                }
                Some(Recorded::Lives { run, letters }) => {
                    let entry = Entry::of(ask.prepared(), 1, follower());
                    self.runs.insert(run, entry.with_letters(letters));
                    self.step(
                        match cut_short {
                            Some(by) => Input::Cancel { run, reach: Reach::Subtree, by },
                            None => Input::Claimed { run },
                        },
                        effects,
                    );
                }
            }
        }
        // After what completed: where that is an early answer, a failure that came behind it is not one too many.
        for event in failed {
            let _ = told.send(event);
        }
        others
    }

    /// Gives each piece that asks for no amount of its own its part of what the caller has left. No step comes between
    /// this and their admission.
    fn divide_budget<'a>(&self, caller: RunIndex, asks: impl Iterator<Item = &'a mut Ask>) {
        let now = self.tree.clock.now();
        let wanted = asks.map(|ask| (&mut ask.request, ask.origin, &*ask.facts));
        self.machine.divide(now, caller, wanted.collect());
    }

    fn ask(&mut self, mut ask: Ask, to: Asker, effects: &mut Vec<Effect>) {
        if let Some(above) = self.runs.get(ask.caller).and_then(|entry| entry.model_choice.as_ref())
        {
            above.hand_down(ask.runtime.name(), &mut ask.request);
        }
        let cut_short = match &to {
            Asker::Fan(follower) => self.cut_short(follower.fan),
            Asker::One(_) => None,
        };
        self.next_reply += 1;
        let reply = ReplyId(self.next_reply);
        self.asked.push_back(Asked { reply, prepared: ask.prepared(), to });
        let Ask { caller, request, task, input, origin, facts, number, run_spec, .. } = ask;
        let usual = &self.tree.run_spec.working_folder;
        let folder =
            (run_spec.working_folder != *usual).then(|| Arc::clone(&run_spec.working_folder));
        let run = self.tree.clock.mint();
        let place = number;
        let spawn =
            Spawn { caller, run, request, task, input, place, folder, origin, facts, reply };
        self.step(Input::Spawn(Box::new(spawn)), effects);
        if let Some(by) = cut_short
            && let Some(run) = self.machine.find(run)
        {
            // Before its start is performed, if it has a slot already.
            self.step(Input::Cancel { run, reach: Reach::Subtree, by }, effects);
        }
    }
}

fn unknown(run: RunId) -> Refusal {
    Refusal::invalid("run", format!("the run {run} is none of this tree"))
}
