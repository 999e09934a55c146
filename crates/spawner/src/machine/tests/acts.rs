//! Acts in a world: of the agents, of the operator and of the clock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Account, AgentId, BudgetGrant, CancelledBy, Cost, Ending, Event, EventKind, Need, OnNeedFailed,
    Origin, Payload, Reason, Refusal, RefusalCode, RunId, SpawnRequest, Timestamp, ToolUse,
};
use offshoot_runtime::{RunEvent, WaitMode};

use super::super::run::{Run, SlotState};
use super::super::{
    Busy, Input, Letter, NeededPiece, NewWait, Outcome, Reach, ReplyId, RunIndex, Spawn, TurnEnd,
    WaitId,
};
use super::agents::Behaviour;
use super::limits::AGENTS;
use super::world::{World, id, tokens};

impl World {
    pub(super) fn spawn_piece(&mut self) -> RunIndex {
        self.try_spawn_piece().expect("pieces of the operator are admitted")
    }

    pub(super) fn try_spawn_piece(&mut self) -> Option<RunIndex> {
        let request = self.some_request();
        self.spawn(RunIndex::ROOT, Origin::Piece, request).ok()
    }

    pub(super) fn spawn_from(&mut self, caller: RunIndex) -> Option<RunIndex> {
        self.ask(caller).ok()
    }

    /// A child of a run that may spawn.
    pub(super) fn child_of(&mut self, caller: RunIndex) -> RunIndex {
        self.spawn_from(caller).expect("the caller may spawn")
    }

    /// A piece with a child.
    pub(super) fn family(&mut self) -> (RunIndex, RunIndex) {
        let parent = self.spawn_piece();
        (parent, self.child_of(parent))
    }

    /// A child that runs this agent.
    pub(super) fn spawn_agent(&mut self, caller: RunIndex, agent: &str) -> RunIndex {
        self.spawn(caller, Origin::Agent, of_agent(agent)).expect("the child is admitted")
    }

    /// A child that runs the agent that the seed says.
    pub(super) fn spawn_some(&mut self, caller: RunIndex) {
        let request = self.some_request();
        let _ = self.spawn(caller, Origin::Agent, request);
    }

    fn some_request(&mut self) -> SpawnRequest {
        let random = matches!(self.behaviour, Behaviour::Random);
        match random && self.seed.one_in(2) {
            true => of_agent(self.seed.pick(&AGENTS)),
            false => SpawnRequest::default(),
        }
    }

    pub(super) fn ask(&mut self, caller: RunIndex) -> Result<RunIndex, RefusalCode> {
        self.spawn(caller, Origin::Agent, SpawnRequest::default())
    }

    /// Many pieces at once, which divide what the root has left.
    pub(super) fn fan_out(&mut self, many: u64) {
        let mut requests: Vec<_> = (0..many).map(|_| self.some_request()).collect();
        self.divide(&mut requests);
        for request in requests {
            // Where nothing is left, some are refused.
            let _ = self.spawn(RunIndex::ROOT, Origin::Piece, request);
        }
    }

    pub(super) fn divide(&self, requests: &mut [SpawnRequest]) {
        let wanted = requests.iter_mut().map(|request| (request, Origin::Piece, &*self.facts));
        self.machine.divide(self.now, RunIndex::ROOT, wanted.collect());
    }

    pub(super) fn spawn(
        &mut self,
        caller: RunIndex,
        origin: Origin,
        request: SpawnRequest,
    ) -> Result<RunIndex, RefusalCode> {
        let place = (origin == Origin::Piece).then_some(self.minted as u32 + 1);
        let random = matches!(self.behaviour, Behaviour::Random);
        if let Some(place) = place.filter(|_| random && self.seed.one_in(2)) {
            self.need_some(place);
        }
        self.spawn_at(caller, origin, request, place, None)
    }

    /// A piece that needs these, in the order of their admission.
    pub(super) fn spawn_needing(
        &mut self,
        needs: &[RunIndex],
        on_failed: OnNeedFailed,
    ) -> RunIndex {
        let place_of = |run: &RunIndex| self.places.iter().find(|(_, it)| *it == run);
        let places = needs.iter().map(|run| *place_of(run).expect("it is a piece").0).collect();
        let place = self.minted as u32 + 1;
        self.needs.insert(place, (places, on_failed));
        let request = SpawnRequest::default();
        let spawned = self.spawn_at(RunIndex::ROOT, Origin::Piece, request, Some(place), None);
        spawned.expect("pieces of the operator are admitted")
    }

    /// A child of the root that pieces may need.
    pub(super) fn spawn_at_place(&mut self, origin: Origin) -> RunIndex {
        let place = Some(self.minted as u32 + 1);
        let spawned = self.spawn_at(RunIndex::ROOT, origin, SpawnRequest::default(), place, None);
        spawned.expect("children of the operator are admitted")
    }

    /// The piece at this place is going to need some that were asked for before it, whether or not they were admitted.
    fn need_some(&mut self, place: u32) {
        let asked: Vec<u32> = self.asked_places.iter().copied().collect();
        let mut needs = BTreeSet::new();
        for _ in 0..self.seed.below(3).min(asked.len() as u64) {
            needs.insert(self.seed.pick(&asked));
        }
        let on_failed = self.seed.pick(&[OnNeedFailed::Skip, OnNeedFailed::Run]);
        self.needs.insert(place, (needs.into_iter().collect(), on_failed));
    }

    /// Other children of the caller that its next child is going to need, whether or not they are over.
    fn needed_siblings(&mut self, caller: RunIndex) -> (Vec<Need>, OnNeedFailed) {
        let random = matches!(self.behaviour, Behaviour::Random);
        if !random || !self.seed.one_in(4) {
            return Default::default();
        }
        let is_sibling = |run: &&Run| run.parent == Some(caller);
        let siblings: Vec<RunId> =
            self.machine.runs.iter().filter(is_sibling).map(|run| run.id).collect();
        let mut needs = BTreeSet::new();
        for _ in 0..siblings.len().min(2) {
            needs.insert(self.seed.pick(&siblings));
        }
        let need = |run: RunId| Need { name: run.to_string().into(), run: Some(run) };
        let on_failed = self.seed.pick(&[OnNeedFailed::Skip, OnNeedFailed::Run]);
        (needs.into_iter().map(need).collect(), on_failed)
    }

    /// The owner asks again for a piece that runs again; answers whether there was one.
    pub(super) fn ask_again(&mut self) -> bool {
        let Some((place, instead)) = self.again.pop_first() else { return false };
        let mut request = [self.some_request()];
        self.divide(&mut request);
        let [request] = request;
        // Where nothing is left, it is refused.
        let _ = self.spawn_at(RunIndex::ROOT, Origin::Piece, request, Some(place), Some(instead));
        true
    }

    fn spawn_at(
        &mut self,
        caller: RunIndex,
        origin: Origin,
        request: SpawnRequest,
        place: Option<u32>,
        instead: Option<RunId>,
    ) -> Result<RunIndex, RefusalCode> {
        self.minted += 1;
        let reply = self.minted;
        self.asked_places.extend(place);
        let (needs, on_need_failed) = match origin {
            Origin::Agent => self.needed_siblings(caller),
            Origin::Root | Origin::Piece => {
                let needs = place.and_then(|place| self.needs.get(&place)).cloned();
                let (places, on_failed) = needs.unwrap_or_default();
                let piece = |place: u32| NeededPiece { name: place.to_string().into(), place };
                let pieces: Vec<_> = places.into_iter().map(piece).collect();
                (self.machine.needed_runs(&pieces), on_failed)
            }
        };
        let task: Arc<str> = format!("task {reply}").into();
        let spawn = Spawn {
            caller,
            run: id(reply),
            task: Payload::Text(Arc::clone(&task)),
            request: SpawnRequest { task, ..request },
            input: None,
            place,
            instead,
            needs,
            on_need_failed,
            folder: None,
            origin,
            facts: self.facts_of(reply),
            fallbacks: self.fallbacks(),
            reply: ReplyId(reply),
        };
        self.answers.insert(reply, None);
        self.step(Input::Spawn(Box::new(spawn)));
        let answer = self.answers[&reply].expect("a request is answered in its own step");
        if let (Some(place), Ok(run)) = (place, answer) {
            self.places.insert(place, run);
        }
        answer
    }

    pub(super) fn wait(&mut self, caller: RunIndex) -> WaitId {
        self.wait_for(caller, Vec::new(), WaitMode::All, None)
    }

    pub(super) fn wait_for(
        &mut self,
        caller: RunIndex,
        runs: Vec<RunId>,
        mode: WaitMode,
        until: Option<Timestamp>,
    ) -> WaitId {
        self.minted += 1;
        let id = WaitId(self.minted);
        self.open_waits.insert(id, caller);
        if let Some(actor) = self.actors.get_mut(&caller) {
            actor.waits.insert(id);
        }
        self.step(Input::Wait(NewWait { id, caller, runs, mode, until }));
        id
    }

    /// A wait of a run has closed, in which its processes used so many milliseconds of so many.
    pub(super) fn works(&mut self, run: RunIndex, cpu: u64, wait: u64) {
        let [cpu, wait] = [cpu, wait].map(Duration::from_millis);
        self.step(Input::Busy { run, busy: Busy { cpu, wait } });
    }

    /// A turn of a run is over, and it has taken every letter that was handed to it.
    pub(super) fn end_turn(&mut self, run: RunIndex) -> WaitId {
        self.minted += 1;
        let id = WaitId(self.minted);
        self.open_waits.insert(id, run);
        self.turns.insert(id);
        let actor = self.actors.get_mut(&run).expect("only what runs has turns");
        actor.waits.insert(id);
        let letters_taken = actor.letters;
        self.step(Input::TurnEnded(TurnEnd { run, id, answer: None, letters_taken, again: false }));
        id
    }

    /// The operator writes to a run that has started, if it reads letters.
    pub(super) fn write(&mut self, to: RunIndex) -> Result<(), RefusalCode> {
        self.machine.may_write(to).map_err(|refusal| refusal.code)?;
        self.minted += 1;
        let number = self.minted;
        self.acts.push_back(Some((to, number)));
        self.memory.written(self.id(to), number);
        let text = Payload::text(format!("letter {number}"));
        self.step(Input::Letter(Letter { to, from: None, text }));
        Ok(())
    }

    /// The caller of this wait has gone, and hears nothing.
    pub(super) fn give_up(&mut self, id: WaitId) {
        let caller = self.open_waits.remove(&id);
        if caller.is_some() {
            self.saw("wait dropped");
        }
        self.step(Input::WaitDropped { id });
        if let Some(caller) = caller {
            self.go_on(id, caller);
        }
    }

    /// True if a piece of the owner was refused.
    pub(super) fn has_refused_pieces(&self) -> bool {
        self.asked_places.len() > self.places.len()
    }

    /// The owner has its answer from fewer pieces than it asked for.
    pub(super) fn answer_early(&mut self) {
        self.pieces_left = 0;
        if self.has_refused_pieces() {
            self.saw("early answer beside a refusal");
        }
        for piece in self.places.values().copied().collect::<Vec<_>>() {
            self.cancel(piece, Reach::Subtree, CancelledBy::EarlyAnswer);
        }
    }

    pub(super) fn finish(&mut self, run: RunIndex) {
        self.finish_because(run, Reason::Completed { exit_code: None });
    }

    pub(super) fn finish_because(&mut self, run: RunIndex, reason: Reason) {
        self.end_requests(run);
        let actor = self.actors.remove(&run).expect("only what runs can end");
        self.stopping.retain(|&stopping| stopping != run);
        let attempt = self.attempt(run);
        let ending = Ending { usage: tokens(actor.used), ..Ending::of(reason) };
        self.step(Input::Finished { run, outcome: Box::new(ending.into()) });
        if self.machine.runs.live(run).is_some() {
            self.past_attempts.push((run, attempt, actor.used));
        }
    }

    /// The service of an account had too much to do for a run of another tree.
    pub(super) fn hear_of_pressure(&mut self, account: Account) {
        let before = self.record.len();
        self.step(Input::PressureTold { account, at: self.now });
        let is_paced = |event: &Event| matches!(event.kind, EventKind::Paced { .. });
        let is_news = self.record[before..].first().is_some_and(is_paced);
        *self.ledger.seen.entry("told of pressure").or_default() += u32::from(is_news);
    }

    /// Another tree has met the wall of an account.
    pub(super) fn hear_of_wall(&mut self, account: Account, until: Timestamp) {
        self.ledger.hears_of_wall(&account);
        self.step(Input::WallTold { account, window: Some("five_hour".into()), until });
    }

    /// The service of a run refuses it until this moment.
    pub(super) fn meet_wall(&mut self, run: RunIndex, until: Timestamp) {
        self.ledger.meets_wall(self.machine.id(run));
        let (window, until) = (Some("five_hour".to_owned()), Some(until));
        self.finish_because(run, Reason::Quota { window, until });
        self.ledger.assert_wall_is_no_success(self.machine.id(run));
    }

    /// Lets the runtime of a run panic: it reports no use any more.
    pub(super) fn panic(&mut self, run: RunIndex) {
        self.end_requests(run);
        let actor = self.actors.remove(&run).expect("only what runs can end");
        self.stopping.retain(|&stopping| stopping != run);
        let message = "the runtime panicked: it broke".to_owned();
        let ending = Ending::of(Reason::RuntimeError { message, retryable: false });
        let outcome =
            Outcome { last_words: None, usage: None, cost: None, ..Outcome::from(ending) };
        let id = self.machine.id(run);
        let told = if self.limits.metered { self.ledger.reported(id) } else { actor.used };
        self.ledger.panics(id, told);
        self.step(Input::Finished { run, outcome: Box::new(outcome) });
    }

    pub(super) fn close(&mut self) {
        let ending = Ending::of(Reason::Completed { exit_code: None });
        self.step(Input::Close { ending: Box::new(ending) });
    }

    pub(super) fn cancel(&mut self, run: RunIndex, reach: Reach, by: CancelledBy) {
        self.step(Input::Cancel { run, reach, by });
    }

    pub(super) fn stop_all(&mut self, firm: bool) {
        self.pieces_left = 0;
        self.again.clear();
        self.step(Input::StopAll { firm });
    }

    pub(super) fn pause(&mut self, paused: bool) {
        self.acts.push_back(None);
        self.step(Input::Pause(paused));
    }

    /// The operator adds to a budget, if there is one.
    pub(super) fn raise(&mut self, run: RunIndex, tokens: u64) -> Result<(), Refusal> {
        let more = BudgetGrant { tokens: Some(tokens), usd: None };
        self.machine.may_raise(run, more)?;
        self.step(Input::Raise { run, more });
        Ok(())
    }

    pub(super) fn progress(&mut self, run: RunIndex) {
        self.tells(run, RunEvent::Progress("still here".into()));
    }

    pub(super) fn report(&mut self, run: RunIndex) {
        self.step(Input::Reported { run, text: "so far so good".into() });
    }

    pub(super) fn use_tool(&mut self, run: RunIndex) {
        self.tells(run, RunEvent::ToolUsed(ToolUse::new("Read", &"a")));
    }

    /// The service of a run refuses a call, and is asked again three seconds later.
    pub(super) fn back_off(&mut self, run: RunIndex) {
        let wait = Duration::from_secs(3);
        self.tells(
            run,
            RunEvent::BacksOff { why: "529 overloaded".into(), wait, is_pressure: true },
        );
    }

    /// The runtime of a run says once more that it has started.
    pub(super) fn says_that_it_started(&mut self, run: RunIndex) {
        self.tells(run, RunEvent::Started(None));
    }

    /// The runtime of a run tells something of its present attempt.
    pub(super) fn tells(&mut self, run: RunIndex, event: RunEvent) {
        let attempt = self.attempt(run);
        self.step(Input::RunEvent { run, attempt, event });
    }

    pub(super) fn use_tokens(&mut self, run: RunIndex, more: u64) {
        if self.limits.metered {
            return self.ask_model(run, more + 1);
        }
        let actor = self.actors.get_mut(&run).expect("only what runs uses anything");
        actor.used += more;
        let (used, attempt) = (actor.used, self.attempt(run));
        self.uses(run, attempt, used, more);
    }

    fn uses(&mut self, run: RunIndex, attempt: u32, used: u64, more: u64) {
        if self.limits.metered {
            return;
        }
        *self.paid.entry(self.id(run)).or_default() += more;
        let event = RunEvent::Used { usage: tokens(used), cost: Cost::NONE };
        self.step(Input::RunEvent { run, attempt, event });
    }

    /// The number of the attempt of a run that runs.
    fn attempt(&self, run: RunIndex) -> u32 {
        self.machine.runs.live(run).expect("only what lives has attempts").attempt
    }

    /// An attempt of a run that is over says one thing more.
    pub(super) fn speaks_late(&mut self) {
        let lives = |run: RunIndex| self.machine.runs.live(run);
        let past: Vec<usize> = (0..self.past_attempts.len())
            .filter(|&at| lives(self.past_attempts[at].0).is_some())
            .collect();
        if past.is_empty() {
            return;
        }
        let at = self.seed.pick(&past);
        let (run, attempt, used) = self.past_attempts[at];
        let is_queued = lives(run).is_some_and(|live| live.phase == SlotState::Queued);
        self.saw("late");
        match self.seed.below(8) {
            0..=2 => {
                let more = self.seed.below(300);
                self.past_attempts[at].2 += more;
                self.uses(run, attempt, used + more, more);
            }
            3 => {
                let event = RunEvent::ToolUsed(ToolUse::new("Read", &"late"));
                self.step(Input::RunEvent { run, attempt, event });
            }
            // The next attempt may say all of these.
            _ if !is_queued => {}
            4 => self.report(run),
            5 => assert_eq!(self.ask(run), Err(RefusalCode::CallerEnded)),
            6 => {
                let wait = self.wait(run);
                assert!(self.is_answered(wait), "nothing waits any more");
            }
            _ => {
                self.minted += 1;
                let id = WaitId(self.minted);
                self.open_waits.insert(id, run);
                self.turns.insert(id);
                let end = TurnEnd { run, id, answer: None, letters_taken: 0, again: false };
                self.step(Input::TurnEnded(end));
            }
        }
    }

    pub(super) fn advance(&mut self, millis: u64) {
        self.jump(self.now.plus(Duration::from_millis(millis)));
    }

    pub(super) fn jump(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
        self.step(Input::Time);
    }

    /// Sets the clock back.
    pub(super) fn set_back(&mut self, by: Duration) {
        let micros = self.now.as_micros().saturating_sub(by.as_micros() as u64);
        self.ledger.clock_is_true = false;
        self.now = Timestamp::from_micros(micros);
        self.step(Input::Time);
    }
}

fn of_agent(agent: &str) -> SpawnRequest {
    let agent = AgentId::parse(agent).expect("the text is no id");
    SpawnRequest { agent: Some(agent), ..SpawnRequest::default() }
}
