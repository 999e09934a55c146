//! Taking messages: what each means to the machine.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use offshoot_model::{CancelledBy, Need, Refusal, RunId};
use offshoot_runtime::WaitFor;
use tokio::sync::mpsc;

use super::entries::{Entry, Follower};
use super::outbox::Released;
use super::{Act, Allowed, Asked, Asker, BATCH, Recorded, Supervisor};
use crate::account_board::{AccountNews, ParkedAccount};
use crate::host_slots::HostShare;
use crate::machine::{
    Effect, Input, Letter, NeededPiece, NewWait, Past, Reach, ReplyId, RequestVerdict, RunIndex,
    Session, Spawn, TurnEnd,
};
use crate::message::{Asking, Children, Counts, FanEvent, FanId, Message, over};
use crate::model_request::{RefusedRequest, SeenQuota};
use crate::request::{Ask, Prepared};

impl Supervisor {
    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Spawn { ask, reply } => self.ask(*ask, Asker::One(reply)),
            Message::SpawnMany { caller, mut asks } => {
                self.divide_budget(caller, asks.iter_mut().map(|(ask, _)| ask));
                // By their places. A need that was refused is none of the tree.
                let mut asked: HashMap<u32, RunId> = HashMap::new();
                for (ask, reply) in asks {
                    let run = |place: u32| asked.get(&place).copied();
                    let admitted = |run: &RunId| self.machine.find(*run).is_some();
                    let need = |need: &NeededPiece| Need {
                        name: Arc::clone(&need.name),
                        run: run(need.place).filter(admitted),
                    };
                    let needs = ask.needs.iter().map(need).collect();
                    let place = ask.place;
                    let run = self.ask_for(ask, needs, Asker::One(reply));
                    asked.insert(place, run);
                }
            }
            Message::Fan { id, caller, mut asks, follower, max_fail, numbers, permit } => {
                if let Some(most) = max_fail {
                    self.allow_failures(id, most, numbers);
                }
                asks = self.adopt(id, asks, &follower);
                self.divide_budget(caller, asks.iter_mut());
                for (count, ask) in asks.into_iter().enumerate() {
                    let follower = Follower { fan: id, place: ask.place, told: follower.clone() };
                    self.ask(ask, Asker::Fan(follower));
                    if count % BATCH == BATCH - 1 {
                        // So that what is to be recorded of a hundred thousand is not in memory at once.
                        self.perform();
                    }
                }
                if let Some(permit) = permit {
                    self.perform();
                    // If no write is under way, the admissions are durable, and the permit is given back here.
                    let released = Released { permits: vec![permit], ..Released::default() };
                    drop(self.outbox.push_behind(released));
                }
                // Further parts of the request may be taken before anything else is heard.
                while let Some((pool, grant)) = self.host.as_mut().and_then(HostShare::next_now) {
                    self.pool_gives(pool, grant);
                    self.perform();
                }
            }
            Message::CancelPieces { fan, by } => self.cancel_pieces(fan, by),
            Message::RunEvent { run, attempt, event, permit } => {
                drop(permit);
                self.step(Input::RunEvent { run, attempt, event });
            }
            Message::Report { run: id, text, reply } => {
                let run = self.running(id);
                // The caller may have gone.
                let _ = reply.send(run.map(|run| self.step(Input::Reported { run, text })));
            }
            Message::Observe { run, task_type, reply } => {
                let run = self.machine.find_running(run);
                let next = run.and_then(|run| Some((run, self.machine.next_observation(run)?)));
                if let Some((run, number)) = next {
                    self.step(Input::Observes { run, number, task_type });
                }
                // The caller may have gone.
                let _ = reply.send(next.map(|(_, number)| number));
            }
            Message::Observed { run, number, success, reply } => {
                let open = self.running(run);
                let open = open.and_then(|run| match self.machine.is_observing(run, number) {
                    true => Ok(run),
                    false => Err(not_observing(number)),
                });
                let answer = open.map(|run| self.step(Input::Observed { run, number, success }));
                // The caller may have gone.
                let _ = reply.send(answer);
            }
            Message::Finished { run, outcome } => {
                let entry = self.runs.get_mut(run);
                if let Some(attempt) = entry.and_then(|entry| entry.attempt.as_mut()) {
                    attempt.task = None;
                }
                let before = self.effects.len();
                self.step(Input::Finished { run, outcome });
                self.count_failures(before);
            }
            Message::Wait { id, caller, wait, reply } => {
                let (run, runs) = (self.machine.id(caller), wait.runs.len());
                tracing::debug!(wait = id.0, %run, runs, "wait begins");
                self.waits.insert(id, reply);
                let until = wait.timeout.map(|patience| self.tree.clock.now().plus(patience));
                let WaitFor { runs, mode, timeout: _ } = wait;
                self.step(Input::Wait(NewWait { id, caller, runs, mode, until }));
            }
            Message::TurnEnded { id, run, answer, letters_taken, again, reply } => {
                self.waits.insert(id, reply);
                let end = TurnEnd { run, id, answer, letters_taken, again };
                self.step(Input::TurnEnded(end));
            }
            Message::Letter { to, from, text, payload, reply } => {
                let to = self.known(to);
                match to.and_then(|to| self.machine.may_write(to).map(|()| to)) {
                    Ok(to) => {
                        self.acts.push_back(Act::Letter { to, text, reply });
                        let letter = Letter { to, from, text: payload };
                        self.step(Input::Letter(letter));
                    }
                    // The caller may have gone.
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Message::Keep { run: id, name, value, reply } => {
                match self.running(id) {
                    Ok(run) => {
                        let act = Act::Name { run: id, name: Arc::clone(&name), value, reply };
                        self.acts.push_back(act);
                        self.step(Input::Keep { run, name, value });
                    }
                    // The caller may have gone.
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Message::Input(input) => self.step(input),
            Message::WaitDropped { id } => {
                self.waits.remove(&id);
                self.step(Input::WaitDropped { id });
            }
            Message::Cancel { run, reach, by } => {
                if let Some(run) = self.machine.find(run) {
                    self.step(Input::Cancel { run, reach, by });
                }
            }
            Message::Raise { run, more, reply } => {
                let run = self.known(run);
                match run.and_then(|run| self.machine.may_raise(run, more).map(|()| run)) {
                    Ok(run) => {
                        self.acts.push_back(Act::Answer { reply });
                        self.step(Input::Raise { run, more });
                    }
                    // The caller may have gone.
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Message::Pause { paused, reply } => {
                self.acts.push_back(Act::Answer { reply });
                self.step(Input::Pause(paused));
            }
            Message::RequestAsked { asked, reply } => {
                match self.machine.find_running(asked.run) {
                    Some(run) => {
                        self.requests.insert(asked.request, reply);
                        self.step(Input::RequestAsked(asked.of(run)));
                    }
                    // The caller may have gone.
                    None => drop(reply.send(RequestVerdict::Refused(Box::new(over())))),
                }
            }
            Message::RequestOver { charge } => {
                self.requests.remove(&charge.request);
                if let Some(run) = self.machine.find(charge.run) {
                    self.step(Input::RequestOver(charge.of(run)));
                }
            }
            Message::RequestRefused { refused } => {
                let RefusedRequest { run, code, message } = *refused;
                if let Some(run) = self.machine.find(run) {
                    self.step(Input::RequestRefused { run, code, message });
                }
            }
            Message::WallSeen { seen } => {
                let SeenQuota { run, window, reset, left } = *seen;
                if let Some(run) = self.machine.find(run) {
                    self.step(Input::WallSeen { run, window, reset, left });
                }
            }
            Message::AccountTold { news } => self.step(match news {
                AccountNews::Parked(ParkedAccount { account, window, until }) => {
                    Input::WallTold { account, window, until }
                }
                AccountNews::Pressed { account, at } => Input::PressureTold { account, at },
            }),
            Message::ProbeTurn { account, since, mut turn } => {
                if let Some(ParkedAccount { account, window, until }) = turn.told.take() {
                    self.step(Input::WallTold { account, window, until });
                }
                let is_answered = turn.answered_at.is_some_and(|at| at >= since);
                self.probe_turns.insert(account.clone(), turn);
                self.step(Input::ProbeTurn { account, is_answered });
            }
            Message::Halt { error } => self.broken(error),
            Message::Abandon => {
                self.step(Input::StopAll { firm: false });
                self.abandon();
            }
            Message::Find { run, reply } => {
                let index = self.machine.find_running(run);
                let found = index.and_then(|index| Some((index, self.machine.session(index)?)));
                let asking = found.map(|(index, session)| {
                    let Session { key, agent, depth, delegation, grant, inline_bytes, .. } =
                        session;
                    let attempt = self.runs.attempt(index);
                    let (usage, cpu) = attempt
                        .map(|attempt| (attempt.usage.clone(), attempt.watch.clone()))
                        .unwrap_or_default();
                    Asking { index, key, agent, depth, delegation, grant, inline_bytes, usage, cpu }
                });
                // The caller may have gone.
                let _ = reply.send(asking);
            }
            Message::Allowance { run, reply } => {
                let run = self.machine.find(run);
                // The caller may have gone.
                let _ = reply.send(run.and_then(|run| self.machine.allowance(run)));
            }
            Message::Lineage { run, reply } => {
                let run = self.machine.find(run);
                // The caller may have gone.
                let _ = reply.send(run.and_then(|run| self.machine.lineage(run)));
            }
            Message::GoesOn { run, reply } => {
                // The caller may have gone.
                let _ = reply.send(self.machine.goes_on(run));
            }
            Message::Children { run, which, reply } => {
                // The caller may have gone.
                let _ = reply.send(self.machine.find_running(run).map(|run| match which {
                    Children::All => self.machine.children_runs(run),
                    Children::Unnamed => self.machine.unnamed_runs(run),
                }));
            }
            Message::Signs { reply } => {
                let seen = |run| self.runs.attempt(run)?.watch.last_seen();
                let signs = self.machine.signs();
                let signs =
                    signs.map(|(run, id, at)| (id, seen(run).map_or(at, |seen| seen.max(at))));
                // The caller may have gone.
                let _ = reply.send(signs.collect());
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

    /// Returns the place of a run of the tree.
    fn known(&self, run: RunId) -> Result<RunIndex, Refusal> {
        let unknown = || Refusal::invalid("run", format!("the run {run} is none of this tree"));
        self.machine.find(run).ok_or_else(unknown)
    }

    /// Returns the place of a run that is at work.
    fn running(&self, run: RunId) -> Result<RunIndex, Refusal> {
        self.machine.find_running(run).ok_or_else(over)
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

    fn cancel_pieces(&mut self, fan: FanId, by: CancelledBy) {
        self.allowed.insert(fan, Allowed::Nothing(by));
        let is_piece = |entry: &Entry| entry.follower.as_ref().is_some_and(|it| it.fan == fan);
        for run in self.runs.which(is_piece) {
            // The slot that came free just now may start it with the next effect.
            if let Some(entry) = self.runs.get_mut(run).filter(|entry| entry.attempt.is_none()) {
                entry.stopped = true;
            }
            self.step(Input::Cancel { run, reach: Reach::Subtree, by });
        }
    }

    /// Counts the pieces whose end is among the effects from this one on. The end that is one too many cancels the rest at once:
    /// the request itself hears of it only when it is on record, and other pieces would start until then.
    fn count_failures(&mut self, from: usize) {
        if self.allowed.is_empty() {
            return;
        }
        let fan_of = |effect: &Effect| match effect {
            Effect::Ended { run, envelope } if !envelope.status.is_success() => {
                self.runs.get(*run)?.follower.as_ref().map(|follower| follower.fan)
            }
            _ => None,
        };
        let failed: Vec<FanId> = self.effects[from..].iter().filter_map(fan_of).collect();
        for fan in failed {
            match self.allowed.get_mut(&fan) {
                Some(Allowed::Failures(0)) => {
                    self.cancel_pieces(fan, CancelledBy::MaxFail);
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
                None => match self.excluded(&ask) {
                    Some(refusal) => {
                        // The caller may have gone.
                        let _ = told.send(FanEvent::Refused { place, refusal: Box::new(refusal) });
                    }
                    None => others.push(ask),
                },
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
                Some(Recorded::Lives { run, letters, continues }) => {
                    let asked = (ask.request.clone(), Arc::clone(&ask.facts));
                    let launch = Box::new(Prepared { continues, ..*ask.prepared() });
                    let entry = Entry::of(launch, 1, follower());
                    self.runs.insert(run, entry.with_letters(letters));
                    self.step(match cut_short {
                        Some(by) => Input::Cancel { run, reach: Reach::Subtree, by },
                        None => Input::Claimed { run, asked: Some(Box::new(asked)) },
                    });
                }
            }
        }
        // After what completed: where that is an early answer, a failure that came behind it is not one too many.
        for event in failed {
            let _ = told.send(event);
        }
        others
    }

    /// Returns the refusal of a piece that was never admitted and is not among those with which the tree goes on.
    fn excluded(&self, ask: &Ask) -> Option<Refusal> {
        if ask.request.merges.is_some() {
            return None;
        }
        let only = self.recorded.excludes(ask.number?, ask.request.label.as_deref())?;
        let message = format!("the tree goes on with the pieces of the label `{only}` alone");
        Some(Refusal::invalid("label", message))
    }

    /// Gives each piece that asks for no amount of its own its part of what the caller has left. No agent acts between
    /// this and their admission.
    fn divide_budget<'a>(&self, caller: RunIndex, asks: impl Iterator<Item = &'a mut Ask>) {
        let now = self.tree.clock.now();
        let wanted = asks.map(|ask| (&mut ask.request, ask.origin, &*ask.facts));
        self.machine.divide(now, caller, wanted.collect());
    }

    /// Asks for a run whose needs are pieces of the owner.
    fn ask(&mut self, ask: Ask, to: Asker) {
        let needs = self.machine.needed_runs(&ask.needs);
        self.ask_for(ask, needs, to);
    }

    /// Returns the id that the run has if it is admitted.
    fn ask_for(&mut self, mut ask: Ask, needs: Vec<Need>, to: Asker) -> RunId {
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
        let Ask { on_need_failed, fallbacks, .. } = ask;
        let usual = &self.tree.run_spec.working_folder;
        let folder =
            (run_spec.working_folder != *usual).then(|| Arc::clone(&run_spec.working_folder));
        let run = self.tree.clock.mint();
        let instead = number.and_then(|place| self.recorded.instead(place));
        self.step(Input::Spawn(Box::new(Spawn {
            caller,
            run,
            request,
            task,
            input,
            place: number,
            instead,
            needs,
            on_need_failed,
            folder,
            origin,
            facts,
            fallbacks,
            reply,
        })));
        if let Some(by) = cut_short
            && let Some(run) = self.machine.find(run)
        {
            // Before its start is performed, if it has a slot already.
            self.step(Input::Cancel { run, reach: Reach::Subtree, by });
        }
        run
    }
}

fn not_observing(number: u32) -> Refusal {
    Refusal::invalid("observation", format!("this session has no open observation {number}"))
}
