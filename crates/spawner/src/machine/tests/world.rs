//! A world for the machine: it performs effects by booking them, and checks what must hold after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use offshoot_config::CostKind;
use offshoot_model::{
    AgentId, BudgetGrant, CancelledBy, Cost, Ending, Event, EventKind, Origin, Payload, Reason,
    Refusal, RefusalCode, RootId, RunId, SpawnRequest, Timestamp, TokenCount, Usage,
};
use offshoot_policy::RuntimeFacts;
use offshoot_policy::budget::Unit;
use offshoot_runtime::{RunEvent, Stop, WaitMode};
use uuid::Uuid;

use super::super::run::{Phase, Run};
use super::super::{
    Effect, Input, Letter, Library, Machine, NewWait, Opening, Reach, Recall, Recalled, ReplyId,
    RunIndex, Spawn, TurnEnd, WaitId, Waiting,
};
use super::agents::{Actor, Behaviour};
use super::invariants::Ledger;
use super::limits::Limits;
use super::seed::Seed;
use crate::names::Sessions;

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) ledger: Ledger,
    pub(super) now: Timestamp,
    pub(super) seed: Seed,
    pub(super) behaviour: Behaviour,
    pub(super) actors: BTreeMap<RunIndex, Actor>,
    stopping: Vec<RunIndex>,
    /// Requests to stop, and whether they were firm.
    pub(super) stops: Vec<(RunIndex, bool)>,
    answers: BTreeMap<u64, Option<Result<RunIndex, RefusalCode>>>,
    /// Waits that were not answered yet.
    open_waits: BTreeMap<WaitId, RunIndex>,
    minted: u64,
    pub(super) facts: Arc<RuntimeFacts>,
    pub(super) pieces_left: u64,
    limits: Limits,
    /// The record, as it would be on disk.
    record: Vec<Event>,
    /// What sessions call their values, as it was read back last.
    pub(super) names: Sessions,
    /// Whose next attempt goes on where the last one was, as it was read back last.
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
        facts.turns = true;
        if limits.budget_tokens.is_some() {
            facts.cost = CostKind::Reported;
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
            minted: 1,
            facts: Arc::new(facts),
            pieces_left: 0,
            limits,
            record: Vec::new(),
            names: Sessions::new(),
            going_on: Vec::new(),
        };
        world.book(effects);
        world
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
        self.spawn(RunIndex::ROOT, Origin::Piece, SpawnRequest::default()).ok()
    }

    pub(super) fn spawn_from(&mut self, caller: RunIndex) -> Option<RunIndex> {
        self.ask(caller).ok()
    }

    pub(super) fn ask(&mut self, caller: RunIndex) -> Result<RunIndex, RefusalCode> {
        self.spawn(caller, Origin::Agent, SpawnRequest::default())
    }

    /// Many pieces at once, which divide what the root has left.
    pub(super) fn fan_out(&mut self, many: u64) {
        let mut requests = vec![SpawnRequest::default(); many as usize];
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
        let spawn = Spawn {
            caller,
            run: id(reply),
            task: Payload::Text(Arc::clone(&task)),
            request: SpawnRequest { task, ..request },
            input: None,
            place: None,
            folder: None,
            origin,
            facts: Arc::clone(&self.facts),
            reply: ReplyId(reply),
        };
        self.answers.insert(reply, None);
        self.step(Input::Spawn(Box::new(spawn)));
        self.answers[&reply].expect("a request is answered in its own step")
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

    /// A turn of a run is over, and it has taken every letter that was handed to it.
    pub(super) fn end_turn(&mut self, run: RunIndex) -> WaitId {
        self.minted += 1;
        let id = WaitId(self.minted);
        self.open_waits.insert(id, run);
        let actor = self.actors.get_mut(&run).expect("only what runs has turns");
        actor.waits.insert(id);
        let letters_taken = actor.letters;
        self.step(Input::TurnEnded(TurnEnd { run, id, answer: None, letters_taken }));
        id
    }

    /// The operator writes to a run that has started, if it reads letters.
    pub(super) fn write(&mut self, to: RunIndex) -> Result<(), RefusalCode> {
        self.machine.may_write(to).map_err(|refusal| refusal.code)?;
        let letter = Letter { to, from: None, text: Payload::text("go on") };
        self.step(Input::Letter(letter));
        Ok(())
    }

    pub(super) fn is_answered(&self, wait: WaitId) -> bool {
        !self.open_waits.contains_key(&wait)
    }

    pub(super) fn give_up(&mut self, id: WaitId) {
        self.step(Input::WaitDropped { id });
    }

    pub(super) fn finish(&mut self, run: RunIndex) {
        self.finish_because(run, Reason::Completed { exit_code: None });
    }

    pub(super) fn finish_because(&mut self, run: RunIndex, reason: Reason) {
        let actor = self.actors.remove(&run).expect("only what runs can end");
        self.stopping.retain(|&stopping| stopping != run);
        let ending = Ending { usage: tokens(actor.used), ..Ending::of(reason) };
        self.step(Input::Finished { run, ending: Box::new(ending) });
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
        self.step(Input::Told { run, event });
    }

    pub(super) fn use_tokens(&mut self, run: RunIndex, more: u64) {
        let actor = self.actors.get_mut(&run).expect("only what runs uses anything");
        actor.used += more;
        let event = RunEvent::Used { usage: tokens(actor.used), cost: Cost::NONE };
        self.step(Input::Told { run, event });
    }

    pub(super) fn advance(&mut self, millis: u64) {
        self.jump(self.now.plus(Duration::from_millis(millis)));
    }

    pub(super) fn jump(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
        self.step(Input::Time);
    }

    /// Somebody sets the clock back.
    pub(super) fn set_back(&mut self, by: Duration) {
        let micros = self.now.as_micros().saturating_sub(by.as_micros() as u64);
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

    pub(super) fn id(&self, run: RunIndex) -> RunId {
        self.machine.id(run)
    }

    pub(super) fn assert_ended(&self) {
        self.ledger.assert_ended();
        assert_eq!(self.machine.active(), 0, "no slot leaked");
        assert_eq!(self.machine.queued, 0, "nobody is left in line");
        assert!(self.machine.waits.is_empty() && self.open_waits.is_empty(), "no wait leaked");
        assert!(self.answers.values().all(Option::is_some), "every request was answered");
    }

    /// The supervisor dies with everything in it, and a new one reads the record back. What was counted is counted the
    /// same; then it goes on.
    pub(super) fn crash(&mut self) {
        let root = self.ledger.root;
        let EventKind::Admitted(admitted) = &self.record[0].kind else {
            panic!("a record begins with the admission of its root");
        };
        let mut recall = Recall::new(self.limits.config(), root, admitted);
        for event in self.record.clone() {
            recall.apply(event, self).expect("the record fits together");
        }
        self.assert_same(recall.machine());
        if recall.is_over() {
            return;
        }
        let Recalled { machine, effects, waiting, names, .. } = recall.reopen(self.now);
        self.names = names;
        let goes_on = |waiting: &Waiting| waiting.continues.then_some(waiting.run);
        self.going_on = waiting.iter().filter_map(goes_on).collect();
        self.machine = machine;
        self.actors.clear();
        self.stopping.clear();
        self.open_waits.clear();
        self.book(effects);
        for Waiting { run, admitted, .. } in waiting {
            if admitted.origin == Origin::Piece {
                self.step(Input::Claimed { run });
            }
        }
    }

    fn assert_same(&self, read: &Machine) {
        assert_eq!(read.seq, self.machine.seq);
        assert_eq!(read.live, self.machine.live);
        assert_eq!(read.books.spawns, self.machine.books.spawns, "what was spawned was spawned");
        assert_eq!(read.runs.len(), self.machine.runs.len());
        for (read, was) in read.runs.iter().zip(&self.machine.runs) {
            assert_eq!((read.id, read.parent, read.depth), (was.id, was.parent, was.depth));
            assert_eq!(read.children, was.children);
            assert_eq!(read.live().is_some(), was.live().is_some());
            let of = |run: &Run| {
                let live = run.live()?;
                // What holds pieces is not stopped by being asked; whoever takes it over decides anew.
                let stopping = live.stopping.clone().filter(|_| live.phase != Phase::Holder);
                Some((
                    live.live_children,
                    live.earlier_children,
                    live.attempt,
                    live.faults,
                    live.announces,
                    live.takes_turns,
                    stopping,
                ))
            };
            assert_eq!(of(read), of(was));
        }
        for run in &self.machine.runs {
            for unit in Unit::ALL {
                let balance = |machine: &Machine| machine.books.ledger.balance(run.id, unit);
                assert_eq!(balance(read), balance(&self.machine), "what was spent was spent");
            }
        }
    }

    pub(super) fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.machine.step(self.now, input, &mut effects);
        self.book(effects);
    }

    fn book(&mut self, effects: Vec<Effect>) {
        let mut resolved = Vec::new();
        for effect in effects {
            self.ledger.note(&effect, &self.machine);
            match effect {
                Effect::Start { run } => {
                    self.actors.insert(run, Actor::default());
                }
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
                Effect::Resolve { wait, .. } => {
                    let caller = self.open_waits.remove(&wait);
                    resolved.push((wait, caller.expect("a wait is answered once")));
                }
                Effect::NoTurn { wait } => {
                    let run = self.open_waits.remove(&wait).expect("it is answered once");
                    if let Some(actor) = self.actors.get_mut(&run) {
                        actor.waits.remove(&wait);
                        actor.over = true;
                    }
                }
                Effect::Hand { run } => {
                    if let Some(actor) = self.actors.get_mut(&run) {
                        assert!(!actor.over, "nobody writes to a session whose last turn is over");
                        actor.letters += 1;
                    }
                }
                Effect::Record(event) => self.record.push(event),
                Effect::Show(_)
                | Effect::Again { .. }
                | Effect::Raised
                | Effect::Kept { .. }
                | Effect::Ended { .. }
                | Effect::Remove { .. } => {}
            }
        }
        self.ledger.assert_step(&self.machine, &self.open_waits);
        for (wait, caller) in resolved {
            self.go_on(wait, caller);
        }
    }

    /// A wait was answered: whoever asked goes on, or still waits for something else.
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

impl Library for World {
    fn facts(&self, _runtime: &str) -> Option<Arc<RuntimeFacts>> {
        Some(Arc::clone(&self.facts))
    }

    fn task(&self, _task: &Payload) -> Arc<str> {
        unreachable!("the tasks of this world are short")
    }
}

fn tokens(count: u64) -> Usage {
    Usage { output: TokenCount::Known(count), ..Usage::default() }
}

fn id(number: u64) -> RunId {
    RunId::from_uuid(Uuid::from_u64_pair(0x0190_0000_0000_7000, 0x8000_0000_0000_0000 | number))
}
