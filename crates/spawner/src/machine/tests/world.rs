//! A world for the machine: it performs effects by booking them, and checks what must hold after every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_model::{
    Account, AgentId, CostKnowledge, Ending, Event, EventKind, OnNeedFailed, Payload, RefusalCode,
    RootId, RunId, RunStatus, SpawnRequest, Timestamp, TokenCount, Usage,
};
use offshoot_policy::{Fallback, RuntimeFacts};
use offshoot_runtime::Stop;
use uuid::Uuid;

use super::super::run::SlotState;
use super::super::{Effect, Input, Machine, Opening, RunIndex, WaitId};
use super::agents::{Actor, Behaviour};
use super::host_slots::OtherTrees;
use super::invariants::Ledger;
use super::limits::Limits;
use super::memory::{Memory, Said};
use super::requests::Sent;
use super::seed::Seed;
use super::{REGRESSIONS, WITH_ACCOUNTS};
use crate::host_slots::{HostClaim, SlotPool};
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
    pub(super) answers: BTreeMap<u64, Option<Result<RunIndex, RefusalCode>>>,
    /// Waits that were not answered yet.
    pub(super) open_waits: BTreeMap<WaitId, RunIndex>,
    /// The open waits that stand for a turn.
    pub(super) turns: BTreeSet<WaitId>,
    pub(super) minted: u64,
    pub(super) facts: Arc<RuntimeFacts>,
    /// Facts of another runtime, which shares nothing with the first one but the tree.
    pub(super) other_facts: Arc<RuntimeFacts>,
    pub(super) pieces_left: u64,
    pub(super) limits: Limits,
    /// The limits as a configuration: it is read once, and taken by each machine of this world.
    pub(super) config: Config,
    /// The record, as it would be on disk.
    pub(super) record: Vec<Event>,
    /// The results and letters that agents know.
    pub(super) memory: Memory,
    /// Results that could not be read when a turn should have brought them last.
    pub(super) unreadable: BTreeSet<RunId>,
    /// Letters that are being recorded.
    pub(super) acts: VecDeque<Option<(RunIndex, u64)>>,
    /// Letters to runs that have not started.
    pub(super) letters_held: BTreeMap<RunIndex, Vec<u64>>,
    /// Pieces by their place among all that the owner has asked for.
    pub(super) places: BTreeMap<u32, RunIndex>,
    /// The places of the pieces that each piece needs, and what becomes of it when one of them fails.
    pub(super) needs: BTreeMap<u32, (Vec<u32>, OnNeedFailed)>,
    /// The places of all pieces that were asked for, admitted or not.
    pub(super) asked_places: BTreeSet<u32>,
    /// Pieces that run again and were not asked for yet: their places, and the runs that had them.
    pub(super) again: BTreeMap<u32, RunId>,
    /// Pieces that the owner has not asked for again since the last crash.
    pub(super) unclaimed: Vec<RunIndex>,
    /// True if no run takes an answer any more, while it waits for it.
    pub(super) takes_nothing: bool,
    /// Kept values of sessions, as they were read back last.
    pub(super) kept_values: ValuesBySession,
    /// Runs whose next attempt continues where the last one was, as they were read back last.
    pub(super) going_on: Vec<RunIndex>,
    /// Attempts that a fault has ended, each with the tokens that it has told of.
    pub(super) past_attempts: Vec<(RunIndex, u32, u64)>,
    /// The tokens that all attempts of each run have told of.
    pub(super) paid: BTreeMap<RunId, u64>,
    /// The requests to models that are not over, by their numbers.
    pub(super) requests: BTreeMap<u64, Sent>,
    /// The memory of the computer that is available, in percent; as the seed says where there is none.
    pub(super) available: Option<u64>,
    /// True if the supervisor does not answer how much memory there is.
    pub(super) looks_for_long: bool,
    /// The look at memory that is answered later: true if runs are measured.
    pub(super) open_look: Option<bool>,
    /// The other trees of the user, for each pool of slots; none where the tree counts alone.
    pub(super) hosts: BTreeMap<SlotPool, OtherTrees>,
    /// The claims of a tree that shares its slots with another world, which the test answers; none where the world answers them.
    pub(super) claims: Option<Vec<(SlotPool, HostClaim)>>,
    /// The number of times at which the tree has told others that a service has too much to do.
    pub(super) told_pressure: u32,
    /// The accounts for which the tree has asked for its turn.
    pub(super) asked_turns: Vec<Account>,
}

/// The name of the second runtime of a world.
pub(super) const OTHER: &str = "other";

impl World {
    /// The facts of the runtime of a run with this number: of a random world every third is of the other one.
    pub(super) fn facts_of(&self, number: u64) -> Arc<RuntimeFacts> {
        let is_other = matches!(self.behaviour, Behaviour::Random) && number.is_multiple_of(3);
        Arc::clone(if is_other { &self.other_facts } else { &self.facts })
    }

    /// Returns the runtimes that may take runs over.
    pub(super) fn fallbacks(&self) -> Option<Arc<[Fallback]>> {
        let other = Fallback { facts: Arc::clone(&self.other_facts), model: None };
        self.limits.falls_back.then(|| Arc::from([other]))
    }

    /// The facts of the runtime of this name.
    pub(super) fn facts_of_runtime(&self, name: &str) -> Arc<RuntimeFacts> {
        Arc::clone(if name == OTHER { &self.other_facts } else { &self.facts })
    }

    pub(super) fn new(seed: u64, limits: Limits, behaviour: Behaviour) -> Self {
        Self::configured(seed, limits, limits.config(), behaviour)
    }

    /// The same with limits that were made a configuration before.
    pub(super) fn configured(
        seed: u64,
        limits: Limits,
        config: Config,
        behaviour: Behaviour,
    ) -> Self {
        let agent = AgentId::main();
        let root = RootId::new(id(1));
        let mut machine = Machine::new(config.clone(), root, &agent);
        let opening = Opening {
            kind: crate::RootKind::Run,
            run: id(1),
            agent,
            task: Payload::text("hold the pieces"),
            request: SpawnRequest { task: "hold the pieces".into(), ..SpawnRequest::default() },
            facts: None,
            fallbacks: None,
            plan: None,
        };
        machine.watch_memory();
        machine.share_host_slots();
        if limits.shares_probes {
            machine.share_probes();
        }
        let now = Timestamp::from_micros(1_000_000_000);
        let effects = machine.open(now, opening).expect("a root without a runtime is admitted");
        let mut facts = RuntimeFacts::of_a_command("test");
        (facts.turns, facts.resumes) = (true, limits.resumes);
        // In percent of a computer that has 100 bytes.
        facts.memory = 10;
        facts.own_prompt = limits.long_prompts.then_some(9_000);
        if limits.metered {
            facts.cost = CostKnowledge::Metered;
        } else if limits.budget_tokens.is_some() || limits.budget_usd.is_some() {
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
            other_facts: Arc::new(RuntimeFacts {
                name: OTHER.into(),
                account: Arc::new(Account::of_runtime(OTHER)),
                ..facts.clone()
            }),
            facts: Arc::new(facts),
            pieces_left: 0,
            limits,
            config,
            record: Vec::new(),
            memory: Memory::default(),
            unreadable: BTreeSet::new(),
            acts: VecDeque::new(),
            letters_held: BTreeMap::new(),
            places: BTreeMap::new(),
            needs: BTreeMap::new(),
            asked_places: BTreeSet::new(),
            again: BTreeMap::new(),
            unclaimed: Vec::new(),
            takes_nothing: false,
            kept_values: ValuesBySession::new(),
            going_on: Vec::new(),
            past_attempts: Vec::new(),
            paid: BTreeMap::new(),
            requests: BTreeMap::new(),
            available: None,
            looks_for_long: false,
            open_look: None,
            hosts: OtherTrees::of(limits),
            claims: None,
            told_pressure: 0,
            asked_turns: Vec::new(),
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
        let memory_percent = Seed(seed ^ 0x3e30_1234).pick(&[0, 0, 1, 30, 90]);
        let host_slots = Seed(seed ^ 0x4057_51e7).pick(&[0, 0, 1, 2, 4]);
        let falls_back = Seed(seed ^ 0xfa11_bac4).one_in(3) && !REGRESSIONS.contains(&seed);
        let own = Limits::random(&mut dice);
        let pauses_at_cap = Seed(seed ^ 0x00ca_99ed).one_in(2) && !REGRESSIONS.contains(&seed);
        let long_prompts = Seed(seed ^ 0x0009_3017).one_in(2) && !REGRESSIONS.contains(&seed);
        let account_slots = match seed >= WITH_ACCOUNTS {
            true => Seed(seed ^ 0x0acc_1057).pick(&[1, 2]),
            false => 0,
        };
        let own = Limits { memory_percent, host_slots, account_slots, ..own };
        let own = Limits { falls_back, pauses_at_cap, ..own };
        let shares_probes = Seed(seed ^ 0x7042_0b3e).one_in(2) && !REGRESSIONS.contains(&seed);
        let more = Seed(seed ^ 0x0003_e7e2).one_in(6) && !REGRESSIONS.contains(&seed);
        let metered = own.metered || more;
        let limits = Limits { long_prompts, shares_probes, metered, ..own };
        let mut world = Self::new(seed, limits, Behaviour::Random);
        world.pieces_left = 1 + dice.below(8);
        world
    }

    /// The same, with many pieces of which several run at once, and faults that open no breaker soon.
    pub(super) fn wide(seed: u64) -> Self {
        let own = Limits::random(&mut Seed(seed ^ 0xdead_beef));
        let mut dice = Seed(seed ^ 0x0091_de5e);
        let max_concurrent = 4 + dice.below(9) as u32;
        let limits = Limits {
            max_concurrent,
            per_level: None,
            breaker_failures: 50,
            retries: 3,
            budget_tokens: None,
            deadline_seconds: 0,
            ..own
        };
        let mut world = Self::new(seed, limits, Behaviour::Random);
        world.pieces_left = 12 + dice.below(30);
        world
    }

    pub(super) fn is_answered(&self, wait: WaitId) -> bool {
        !self.open_waits.contains_key(&wait)
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
        self.machine.runs.root().is_some()
    }

    /// The status with which a run has ended.
    pub(super) fn status(&self, run: RunIndex) -> Option<RunStatus> {
        self.ledger.status(self.id(run))
    }

    /// Counts one thing that has happened.
    pub(super) fn saw(&mut self, what: &'static str) {
        *self.ledger.seen.entry(what).or_default() += 1;
    }

    /// The number of times that this has happened.
    pub(super) fn times(&self, what: &str) -> u32 {
        self.ledger.seen.get(what).copied().unwrap_or(0)
    }

    /// The texts of the events of breakers, in order.
    pub(super) fn told_of_breakers(&self) -> Vec<String> {
        let is_breaker = |kind: &&EventKind| {
            matches!(kind, EventKind::BreakerOpened { .. } | EventKind::BreakerClosed { .. })
        };
        self.record
            .iter()
            .map(|event| &event.kind)
            .filter(is_breaker)
            .map(EventKind::text)
            .collect()
    }

    /// The last end on record.
    pub(super) fn last_ending(&self) -> Option<&Ending> {
        self.record.iter().rev().find_map(|event| match &event.kind {
            EventKind::Ended(ending) => Some(&**ending),
            _ => None,
        })
    }

    pub(super) fn id(&self, run: RunIndex) -> RunId {
        self.machine.id(run)
    }

    pub(super) fn assert_ended(&self) {
        self.ledger.assert_ended();
        for (run, paid) in &self.paid {
            assert!(self.ledger.reported(*run) >= *paid, "what {run} has paid for is not counted");
        }
        assert_eq!(self.machine.active(), 0, "no slot leaked");
        assert_eq!(self.machine.queued, 0, "no run is left in the queue");
        assert!(self.machine.needs.is_empty(), "no need of a run that is over is left");
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
        let (mut looks, mut claims) = (Vec::new(), BTreeSet::new());
        let random = matches!(self.behaviour, Behaviour::Random);
        for effect in effects {
            self.ledger.note(&effect, &self.machine);
            match effect {
                Effect::Start { run, .. } => self.starts(run),
                Effect::AskForProbe { account, .. } => self.asks_for_turn(account),
                Effect::TellWall { .. } | Effect::ProbeOver { .. } => {}
                Effect::TellPressure { .. } => self.told_pressure += 1,
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
                Effect::AnswerRequest { request, verdict } => {
                    self.request_answered(request, &verdict)
                }
                Effect::LookAtMemory { .. } if self.looks_for_long => {}
                Effect::LookAtMemory { measure } if random && self.seed.one_in(2) => {
                    self.open_look = Some(measure);
                }
                Effect::LookAtMemory { measure } => looks.push(measure),
                Effect::ClaimSlots(pool, claim) => match &mut self.claims {
                    Some(claims) => claims.push((pool, claim)),
                    None => {
                        let limits = self.limits;
                        let new = || OtherTrees::of_account(limits);
                        self.hosts.entry(pool.clone()).or_insert_with(new).claimed(claim);
                        claims.insert(pool);
                    }
                },
                Effect::Show(_)
                | Effect::Again { .. }
                | Effect::FallBack { .. }
                | Effect::Ended { .. }
                | Effect::Remove { .. } => {}
            }
        }
        assert_eq!(delivered, [], "delivered, and the parent was not told");
        self.ledger.assert_step(&self.machine, &self.open_waits, self.now);
        for (pool, host) in self.hosts.iter().filter(|_| self.claims.is_none()) {
            let holding = self.holding_of(pool).len();
            assert!(holding <= host.bound(), "{holding} hold a slot, and {host:?}");
        }
        for measure in looks {
            self.looks_at_memory(measure);
        }
        for pool in claims {
            self.host_answers(pool);
        }
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
        if self.takes_nothing {
            return;
        }
        if random && self.seed.one_in(3) {
            self.saw("answer dropped");
            return self.step(Input::WaitDropped { id: wait });
        }
        if is_turn && !ended.is_empty() {
            self.saw("turn with results");
        }
        self.step(Input::WaitTaken { id: wait });
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
        let Some(live) = self.machine.runs.live(run) else { return };
        // What is left of an attempt that is over is told nothing.
        if live.stopping.is_some() || live.phase == SlotState::Queued {
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
    pub(super) fn go_on(&mut self, wait: WaitId, caller: RunIndex) {
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

pub(super) fn tokens(count: u64) -> Usage {
    Usage { output: TokenCount::Known(count), ..Usage::default() }
}

pub(super) fn id(number: u64) -> RunId {
    RunId::from_uuid(Uuid::from_u64_pair(0x0190_0000_0000_7000, 0x8000_0000_0000_0000 | number))
}
