//! A world for the machine: it performs effects by booking them, and checks what must hold after every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::CostKnowledge;
use offshoot_model::{
    AgentId, BudgetGrant, CancelledBy, Cost, Ending, Event, EventKind, Origin, Payload, Reason,
    Refusal, RefusalCode, RootId, RunId, RunStatus, SpawnRequest, Timestamp, TokenCount, ToolUse,
    Usage,
};
use offshoot_policy::RuntimeFacts;
use offshoot_runtime::{RunEvent, Stop, WaitMode};
use uuid::Uuid;

use super::super::Busy;
use super::super::{
    Effect, Input, Letter, Machine, NewWait, Opening, Outcome, Reach, ReplyId, RunIndex, Spawn,
    TurnEnd, WaitId,
};
use super::agents::{Actor, Behaviour};
use super::invariants::Ledger;
use super::limits::{AGENTS, Limits};
use super::memory::{Memory, Said};
use super::seed::Seed;
use crate::kept_values::ValuesBySession;

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) ledger: Ledger,
    pub(super) now: Timestamp,
    pub(super) seed: Seed,
    pub(super) behaviour: Behaviour,
    pub(super) actors: BTreeMap<RunIndex, Actor>,
    pub(super) stopping: Vec<RunIndex>,
    /// Requests to stop, and whether they were firm.
    pub(super) stops: Vec<(RunIndex, bool)>,
    answers: BTreeMap<u64, Option<Result<RunIndex, RefusalCode>>>,
    /// Waits that were not answered yet.
    pub(super) open_waits: BTreeMap<WaitId, RunIndex>,
    /// The open waits that stand for a turn.
    turns: BTreeSet<WaitId>,
    minted: u64,
    pub(super) facts: Arc<RuntimeFacts>,
    pub(super) pieces_left: u64,
    pub(super) limits: Limits,
    /// The record, as it would be on disk.
    pub(super) record: Vec<Event>,
    /// The results and letters that agents know.
    pub(super) memory: Memory,
    /// Results that could not be read when a turn should have brought them last.
    pub(super) unreadable: BTreeSet<RunId>,
    /// Letters that are being recorded.
    acts: VecDeque<Option<(RunIndex, u64)>>,
    /// Letters to runs that have not started.
    pub(super) letters_held: BTreeMap<RunIndex, Vec<u64>>,
    /// Pieces by their place among all that the owner has asked for.
    pub(super) places: BTreeMap<u32, RunIndex>,
    /// Pieces that the owner has not asked for again since the last crash.
    pub(super) unclaimed: Vec<RunIndex>,
    /// Kept values of sessions, as they were read back last.
    pub(super) kept_values: ValuesBySession,
    /// Runs whose next attempt continues where the last one was, as they were read back last.
    pub(super) going_on: Vec<RunIndex>,
}

impl World {
    pub(super) fn new(seed: u64, limits: Limits, behaviour: Behaviour) -> Self {
        let agent = AgentId::main();
        let root = RootId::new(id(1));
        let mut machine = Machine::new(limits.config(), root, &agent);
        let opening = Opening {
            kind: crate::RootKind::Run,
            run: id(1),
            agent,
            task: Payload::text("hold the pieces"),
            request: SpawnRequest { task: "hold the pieces".into(), ..SpawnRequest::default() },
            facts: None,
            plan: None,
        };
        let mut effects = Vec::new();
        let now = Timestamp::from_micros(1_000_000_000);
        machine.open(now, opening, &mut effects).expect("a root without a runtime is admitted");
        let mut facts = RuntimeFacts::of_a_command("test");
        (facts.turns, facts.resumes) = (true, limits.resumes);
        if limits.budget_tokens.is_some() {
            facts.cost = CostKnowledge::Reported;
        }
        let mut world = Self {
            machine,
            ledger: Ledger::new(root, limits),
            now,
            seed: Seed(seed),
            behaviour,
            actors: BTreeMap::new(),
            stopping: Vec::new(),
            stops: Vec::new(),
            answers: BTreeMap::new(),
            open_waits: BTreeMap::new(),
            turns: BTreeSet::new(),
            minted: 1,
            facts: Arc::new(facts),
            pieces_left: 0,
            limits,
            record: Vec::new(),
            memory: Memory::default(),
            unreadable: BTreeSet::new(),
            acts: VecDeque::new(),
            letters_held: BTreeMap::new(),
            places: BTreeMap::new(),
            unclaimed: Vec::new(),
            kept_values: ValuesBySession::new(),
            going_on: Vec::new(),
        };
        world.book(effects);
        world
    }

    /// A tree in which nothing happens but what the test says.
    pub(super) fn quiet(limits: Limits) -> Self {
        Self::new(0, limits, Behaviour::Quiet)
    }

    /// The same, with one slot.
    pub(super) fn one_slot() -> Self {
        Self::quiet(Limits { max_concurrent: 1, ..Limits::default() })
    }

    /// A tree whose limits and agents come from the seed.
    pub(super) fn random(seed: u64) -> Self {
        let mut dice = Seed(seed ^ 0xdead_beef);
        let mut world = Self::new(seed, Limits::random(&mut dice), Behaviour::Random);
        world.pieces_left = 1 + dice.below(8);
        world
    }

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
        self.minted += 1;
        let reply = self.minted;
        let task: Arc<str> = format!("task {reply}").into();
        let place = (origin == Origin::Piece).then_some(reply as u32);
        let spawn = Spawn {
            caller,
            run: id(reply),
            task: Payload::Text(Arc::clone(&task)),
            request: SpawnRequest { task, ..request },
            input: None,
            place,
            folder: None,
            origin,
            facts: Arc::clone(&self.facts),
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
        self.step(Input::TurnEnded(TurnEnd { run, id, answer: None, letters_taken }));
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

    pub(super) fn is_answered(&self, wait: WaitId) -> bool {
        !self.open_waits.contains_key(&wait)
    }

    /// The caller of this wait has gone, and hears nothing.
    pub(super) fn give_up(&mut self, id: WaitId) {
        let caller = self.open_waits.remove(&id);
        self.step(Input::WaitDropped { id });
        if let Some(caller) = caller {
            self.go_on(id, caller);
        }
    }

    /// The owner has its answer from fewer pieces than it asked for.
    pub(super) fn answer_early(&mut self) {
        self.pieces_left = 0;
        for piece in self.places.values().copied().collect::<Vec<_>>() {
            self.cancel(piece, Reach::Subtree, CancelledBy::EarlyAnswer);
        }
    }

    pub(super) fn finish(&mut self, run: RunIndex) {
        self.finish_because(run, Reason::Completed { exit_code: None });
    }

    pub(super) fn finish_because(&mut self, run: RunIndex, reason: Reason) {
        let actor = self.actors.remove(&run).expect("only what runs can end");
        self.stopping.retain(|&stopping| stopping != run);
        let ending = Ending { usage: tokens(actor.used), ..Ending::of(reason) };
        self.step(Input::Finished { run, outcome: Box::new(ending.into()) });
    }

    /// Lets the runtime of a run panic: it reports no use any more.
    pub(super) fn panic(&mut self, run: RunIndex) {
        let actor = self.actors.remove(&run).expect("only what runs can end");
        self.stopping.retain(|&stopping| stopping != run);
        let message = "the runtime panicked: it broke".to_owned();
        let ending = Ending::of(Reason::RuntimeError { message, retryable: false });
        let outcome = Outcome { ending, usage: None, cost: None, retry_after: None };
        self.ledger.panics(self.machine.id(run), actor.used);
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
        self.step(Input::StopAll { firm });
    }

    pub(super) fn pause(&mut self, paused: bool) {
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
        let event = RunEvent::Progress("still here".into());
        self.step(Input::RunEvent { run, event });
    }

    pub(super) fn use_tool(&mut self, run: RunIndex) {
        let event = RunEvent::ToolUsed(ToolUse::new("Read", &"a"));
        self.step(Input::RunEvent { run, event });
    }

    pub(super) fn report(&mut self, run: RunIndex) {
        self.step(Input::Reported { run, text: "so far so good".into() });
    }

    pub(super) fn use_tokens(&mut self, run: RunIndex, more: u64) {
        let actor = self.actors.get_mut(&run).expect("only what runs uses anything");
        actor.used += more;
        let event = RunEvent::Used { usage: tokens(actor.used), cost: Cost::NONE };
        self.step(Input::RunEvent { run, event });
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

    /// Runs that hold a slot, in the order in which they were admitted.
    pub(super) fn holding(&self) -> Vec<RunIndex> {
        let holding: BTreeSet<RunIndex> = self.ledger.holding(&self.machine);
        holding.into_iter().collect()
    }

    pub(super) fn asked_to_stop(&self) -> Vec<RunIndex> {
        self.stopping.clone()
    }

    pub(super) fn is_stopping(&self, run: RunIndex) -> bool {
        self.stopping.contains(&run)
    }

    pub(super) fn is_open(&self) -> bool {
        self.machine.runs[0].live().is_some()
    }

    /// The status with which a run has ended.
    pub(super) fn status(&self, run: RunIndex) -> Option<RunStatus> {
        self.ledger.status(self.id(run))
    }

    /// The number of times that this has happened.
    pub(super) fn times(&self, what: &str) -> u32 {
        self.ledger.seen.get(what).copied().unwrap_or(0)
    }

    pub(super) fn id(&self, run: RunIndex) -> RunId {
        self.machine.id(run)
    }

    pub(super) fn assert_ended(&self) {
        self.ledger.assert_ended();
        assert_eq!(self.machine.active(), 0, "no slot leaked");
        assert_eq!(self.machine.queued, 0, "no run is left in the queue");
        assert!(self.machine.waits.is_empty() && self.open_waits.is_empty(), "no wait leaked");
        assert!(self.answers.values().all(Option::is_some), "every request was answered");
    }

    pub(super) fn step(&mut self, input: Input) {
        if matches!(input, Input::Keep { .. } | Input::Raise { .. }) {
            self.acts.push_back(None);
        }
        let mut effects = Vec::new();
        self.machine.step(self.now, input, &mut effects);
        self.book(effects);
    }

    pub(super) fn book(&mut self, effects: Vec<Effect>) {
        let (mut resolved, mut delivered) = (Vec::new(), Vec::new());
        for effect in effects {
            self.ledger.note(&effect, &self.machine);
            match effect {
                Effect::Start { run, .. } => self.starts(run),
                Effect::Stop { run, how } => {
                    if !self.stopping.contains(&run) {
                        self.stopping.push(run);
                    }
                    self.stops.push((run, how == Stop::Firm));
                }
                Effect::Reply { reply, answer } => {
                    let answer = answer.map(|(run, _)| run).map_err(|refusal| refusal.code);
                    let before = self.answers.insert(reply.0, Some(answer));
                    assert_eq!(before, Some(None), "a request is answered once");
                }
                Effect::Resolve { wait, ended, .. } => {
                    // A caller that no longer waits does not hear of it.
                    if let Some(caller) = self.open_waits.remove(&wait) {
                        delivered.retain(|run| !ended.contains(run));
                        resolved.push((wait, caller, ended));
                    }
                }
                Effect::NoTurn { wait } => {
                    let run = self.open_waits.remove(&wait).expect("it is answered once");
                    self.assert_knows_all(run);
                    if let Some(actor) = self.actors.get_mut(&run) {
                        actor.waits.remove(&wait);
                        actor.over = true;
                    }
                }
                Effect::Recorded { .. } => {
                    let act = self.acts.pop_front().expect("more was recorded than was asked for");
                    let Some((run, letter)) = act else { continue };
                    match self.actors.get_mut(&run) {
                        Some(actor) => {
                            assert!(!actor.over, "a session was written to after its last turn");
                            actor.letters += 1;
                            self.memory.told(self.machine.id(run), Said::Letter(letter));
                        }
                        None => self.letters_held.entry(run).or_default().push(letter),
                    }
                }
                Effect::Record(event) => {
                    self.memory.acted(&event);
                    if let EventKind::Delivered { .. } = event.kind {
                        delivered.push(event.run);
                    }
                    self.record.push(Arc::unwrap_or_clone(event));
                }
                Effect::Show(_)
                | Effect::Again { .. }
                | Effect::Ended { .. }
                | Effect::Remove { .. } => {}
            }
        }
        assert_eq!(delivered, [], "delivered, and the parent was not told");
        self.ledger.assert_step(&self.machine, &self.open_waits, self.now);
        for (wait, caller, ended) in resolved {
            self.hears(wait, caller, &ended);
            self.go_on(wait, caller);
        }
    }

    fn starts(&mut self, run: RunIndex) {
        let letters = self.letters_held.remove(&run).unwrap_or_default();
        let actor = Actor { letters: letters.len() as u32, ..Actor::default() };
        self.actors.insert(run, actor);
        for letter in letters {
            self.memory.told(self.machine.id(run), Said::Letter(letter));
        }
    }

    /// An answer reaches the caller that waited, unless the caller has gone at the last moment.
    fn hears(&mut self, wait: WaitId, caller: RunIndex, ended: &[RunId]) {
        let is_turn = self.turns.remove(&wait);
        let random = matches!(self.behaviour, Behaviour::Random);
        if random && !is_turn && self.seed.one_in(3) {
            return self.step(Input::WaitDropped { id: wait });
        }
        if !is_turn {
            self.step(Input::WaitTaken { id: wait });
        }
        let is_unreadable = |_: &&RunId| random && is_turn && self.seed.one_in(4);
        let unreadable: Vec<RunId> = ended.iter().filter(is_unreadable).copied().collect();
        if !unreadable.is_empty() {
            self.not_brought(caller, unreadable.clone());
        }
        for &run in ended.iter().filter(|run| !unreadable.contains(run)) {
            self.unreadable.remove(&run);
            self.memory.told(self.machine.id(caller), Said::Result(run));
        }
    }

    /// A turn of a run did not bring the results of these children.
    pub(super) fn not_brought(&mut self, run: RunIndex, children: Vec<RunId>) {
        self.unreadable.extend(&children);
        self.step(Input::NotBrought { run, children });
    }

    /// A session whose last turn is over has heard of every child that it asked for and whose result can be read, and has
    /// read every letter.
    fn assert_knows_all(&self, run: RunIndex) {
        let Some(live) = self.machine.runs[run.get()].live() else { return };
        if live.stopping.is_some() {
            return;
        }
        let id = self.machine.id(run);
        for &child in self.machine.own_children(run) {
            let child = self.machine.id(child);
            let is_over = self.ledger.status(child).is_some();
            assert!(is_over, "no child is pending after the last turn");
            let knows = self.memory.knows(id, Said::Result(child));
            assert!(knows || self.unreadable.contains(&child), "a result never reached {id}");
        }
        for letter in self.memory.letters_to(id) {
            assert!(self.memory.knows(id, Said::Letter(letter)), "a letter never reached {id}");
        }
    }

    /// A wait was answered: its caller goes on, or still waits for something else.
    fn go_on(&mut self, wait: WaitId, caller: RunIndex) {
        let Some(actor) = self.actors.get_mut(&caller) else { return };
        actor.waits.remove(&wait);
        if actor.takes_any {
            for other in actor.waits.clone() {
                self.give_up(other);
            }
        }
        let blocked = self.actors.get(&caller).is_none_or(|actor| !actor.waits.is_empty());
        assert!(blocked || self.holding().contains(&caller), "what goes on holds a slot");
    }
}

fn of_agent(agent: &str) -> SpawnRequest {
    let agent = AgentId::parse(agent).expect("an id");
    SpawnRequest { agent: Some(agent), ..SpawnRequest::default() }
}

fn tokens(count: u64) -> Usage {
    Usage { output: TokenCount::Known(count), ..Usage::default() }
}

fn id(number: u64) -> RunId {
    RunId::from_uuid(Uuid::from_u64_pair(0x0190_0000_0000_7000, 0x8000_0000_0000_0000 | number))
}
