//! A world for the machine: it performs effects by booking them, and decides by a seed what agents do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use offshoot_config::{Config, Loader};
use offshoot_model::{
    AgentId, CancelledBy, Ending, Origin, Payload, Reason, RootId, RunId, SpawnRequest, Timestamp,
};
use offshoot_policy::RuntimeFacts;
use offshoot_runtime::{RunEvent, Stop, WaitMode};
use uuid::Uuid;

use super::super::{Effect, Input, Machine, Opening, Reach, ReplyId, RunIndex, Spawn, WaitId};
use super::invariants::Ledger;

/// The limits of a tree, as the configuration of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) max_concurrent: u32,
    pub(super) per_level: Option<u32>,
    pub(super) max_depth: u32,
    pub(super) max_spawns: u32,
    pub(super) run_timeout_seconds: u64,
    pub(super) idle_timeout_seconds: u64,
    pub(super) grace_seconds: u64,
    pub(super) deadline_seconds: u64,
    pub(super) cascade: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrent: 8,
            per_level: None,
            max_depth: 5,
            max_spawns: 64,
            run_timeout_seconds: 0,
            idle_timeout_seconds: 0,
            grace_seconds: 5,
            deadline_seconds: 0,
            cascade: false,
        }
    }
}

/// What agents do when it is their turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behaviour {
    /// Nothing: the test says what happens.
    Quiet,
    /// Each spawns one child and waits for it, to this depth.
    Chain(u32),
    /// Whatever the seed says.
    Random,
}

impl Behaviour {
    pub(super) fn chain(depth: u32) -> Self {
        Self::Chain(depth)
    }
}

/// A small generator with a period far beyond any test: SplitMix64.
struct Seed(u64);

impl Seed {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, chance: u64) -> bool {
        self.below(chance) == 0
    }
}

/// What the world knows of a run that was started.
#[derive(Debug, Default)]
struct Actor {
    waiting: Option<WaitId>,
    spawned: u32,
}

pub(super) struct World {
    machine: Machine,
    pub(super) ledger: Ledger,
    now: Timestamp,
    seed: Seed,
    behaviour: Behaviour,
    actors: BTreeMap<RunIndex, Actor>,
    stopping: Vec<RunIndex>,
    /// Requests to stop, and whether they were firm.
    pub(super) stops: Vec<(RunIndex, bool)>,
    answers: BTreeMap<u64, Option<RunIndex>>,
    minted: u64,
    facts: Arc<RuntimeFacts>,
    pieces_left: u64,
    open: bool,
}

impl World {
    pub(super) fn new(seed: u64, limits: Limits, behaviour: Behaviour) -> Self {
        let agent = AgentId::main();
        let root = RootId::new(id(1));
        let mut machine = Machine::new(config(limits), root, &agent);
        let opening = Opening {
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
            minted: 1,
            facts: Arc::new(RuntimeFacts::of_a_command("test")),
            pieces_left: 0,
            open: true,
        };
        world.book(effects);
        world
    }

    /// A tree whose limits and agents come from the seed.
    pub(super) fn random(seed: u64) -> Self {
        let mut dice = Seed(seed ^ 0xdead_beef);
        let limits = Limits {
            max_concurrent: 1 + dice.below(4) as u32,
            per_level: dice.one_in(3).then(|| 1 + dice.below(3) as u32),
            max_depth: 1 + dice.below(5) as u32,
            max_spawns: 1 + dice.below(40) as u32,
            run_timeout_seconds: if dice.one_in(2) { 1 + dice.below(30) } else { 0 },
            idle_timeout_seconds: if dice.one_in(3) { 1 + dice.below(20) } else { 0 },
            grace_seconds: dice.below(5),
            deadline_seconds: if dice.one_in(5) { 10 + dice.below(300) } else { 0 },
            cascade: dice.one_in(4),
        };
        let mut world = Self::new(seed, limits, Behaviour::Random);
        world.pieces_left = 1 + dice.below(8);
        world
    }

    /// Lets things happen until nothing is alive; fails when nothing can happen any more before that.
    pub(super) fn run_to_the_end(&mut self) {
        if let Behaviour::Chain(_) = self.behaviour {
            self.spawn_piece();
        }
        let mut steps = 0_u32;
        while self.machine.live() > 0 {
            steps += 1;
            assert!(steps < 200_000, "the tree does not come to an end");
            if !self.something_happens() {
                let timer = self.machine.next_timer();
                let at = timer.expect("somebody lives, nobody runs and no timer is set: locked up");
                self.now = self.now.max(at);
                self.step(Input::Time);
            }
        }
        self.ledger.assert_ended();
        assert_eq!(self.machine.active(), 0, "no slot leaked");
        assert!(self.machine.waits.is_empty(), "no wait leaked");
        assert_eq!(self.answers.values().filter(|answer| answer.is_none()).count(), 0);
    }

    fn something_happens(&mut self) -> bool {
        if self.open && self.pieces_left > 0 {
            self.pieces_left -= 1;
            self.spawn_piece();
            return true;
        }
        let awake: Vec<RunIndex> = self
            .actors
            .iter()
            .filter(|(_, actor)| actor.waiting.is_none())
            .map(|(&run, _)| run)
            .collect();
        if self.machine.live() == 1 && self.open {
            self.open = false;
            let ending = Ending::of(Reason::Completed { exit_code: None });
            self.step(Input::Finished { run: RunIndex::ROOT, ending: Box::new(ending) });
            return true;
        }
        let impatient = matches!(self.behaviour, Behaviour::Random) && self.seed.one_in(8);
        if awake.is_empty() || impatient && self.disturb() {
            return !awake.is_empty() || self.disturb();
        }
        let run = awake[self.seed.below(awake.len() as u64) as usize];
        match self.behaviour {
            Behaviour::Quiet => self.finish(run),
            Behaviour::Chain(depth) => self.act_in_a_chain(run, depth),
            Behaviour::Random => self.act_at_random(run),
        }
        true
    }

    /// Sometimes somebody who waits loses patience. Where nobody is awake, else only the clock can help.
    fn disturb(&mut self) -> bool {
        let waiting: Vec<WaitId> = self.actors.values().filter_map(|actor| actor.waiting).collect();
        if !waiting.is_empty() && self.seed.one_in(3) {
            let wait = waiting[self.seed.below(waiting.len() as u64) as usize];
            self.give_up(wait);
            return true;
        }
        false
    }

    fn act_in_a_chain(&mut self, run: RunIndex, depth: u32) {
        let actor = self.actors.entry(run).or_default();
        actor.spawned += 1;
        if actor.spawned > 1 || self.machine.runs[run.get()].depth >= depth {
            return self.finish(run);
        }
        self.spawn_from(run).expect("recursion is on and the depth is not reached");
        self.wait(run);
    }

    fn act_at_random(&mut self, run: RunIndex) {
        self.now = self.now.plus(Duration::from_millis(self.seed.below(2_000)));
        self.step(Input::Time);
        if !self.actors.contains_key(&run) {
            return;
        }
        match self.seed.below(20) {
            0..=5 => {
                self.spawn_from(run);
            }
            6..=9 => {
                let mode = if self.seed.one_in(2) { WaitMode::All } else { WaitMode::Any };
                self.wait_for(run, mode);
            }
            10 => self.progress(run),
            11 => {
                let all: Vec<RunIndex> = self.actors.keys().copied().collect();
                let victim = all[self.seed.below(all.len() as u64) as usize];
                let reach =
                    [Reach::Subtree, Reach::Only, Reach::Below][self.seed.below(3) as usize];
                self.cancel(victim, reach, CancelledBy::Operator);
            }
            12 if self.seed.one_in(30) => self.stop_all(false),
            13 if self.seed.one_in(10) => {
                self.pause(true);
                self.pause(false);
            }
            14 => self.finish_because(run, Reason::ExitCode { code: 7 }),
            15 => self.finish_because(run, Reason::CannotStart { message: "no such file".into() }),
            // It hangs until somebody stops it.
            16 if !self.stopping.contains(&run) && self.machine.next_timer().is_some() => {}
            _ => self.finish(run),
        }
    }

    pub(super) fn spawn_piece(&mut self) -> RunIndex {
        self.spawn(RunIndex::ROOT, Origin::Piece).expect("pieces of the operator are admitted")
    }

    pub(super) fn spawn_from(&mut self, caller: RunIndex) -> Option<RunIndex> {
        self.spawn(caller, Origin::Agent)
    }

    fn spawn(&mut self, caller: RunIndex, origin: Origin) -> Option<RunIndex> {
        self.minted += 1;
        let reply = self.minted;
        let task: Arc<str> = format!("task {reply}").into();
        let spawn = Spawn {
            caller,
            run: id(reply),
            task: Payload::Text(Arc::clone(&task)),
            request: SpawnRequest { task, ..SpawnRequest::default() },
            input: None,
            origin,
            facts: Arc::clone(&self.facts),
            reply: ReplyId(reply),
        };
        self.answers.insert(reply, None);
        self.step(Input::Spawn(Box::new(spawn)));
        match self.answers.get(&reply) {
            Some(&Some(run)) => Some(run),
            _ => None,
        }
    }

    pub(super) fn wait(&mut self, caller: RunIndex) -> WaitId {
        self.wait_for(caller, WaitMode::All)
    }

    fn wait_for(&mut self, caller: RunIndex, mode: WaitMode) -> WaitId {
        self.minted += 1;
        let id = WaitId(self.minted);
        if let Some(actor) = self.actors.get_mut(&caller) {
            actor.waiting = Some(id);
        }
        self.step(Input::Wait { id, caller, runs: Vec::new(), mode, until: None });
        id
    }

    pub(super) fn give_up(&mut self, id: WaitId) {
        self.step(Input::WaitDropped { id });
    }

    pub(super) fn finish(&mut self, run: RunIndex) {
        self.finish_because(run, Reason::Completed { exit_code: None });
    }

    pub(super) fn finish_because(&mut self, run: RunIndex, reason: Reason) {
        let started = self.actors.remove(&run);
        assert!(started.is_some(), "only what runs can end");
        self.stopping.retain(|&stopping| stopping != run);
        self.step(Input::Finished { run, ending: Box::new(Ending::of(reason)) });
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

    pub(super) fn progress(&mut self, run: RunIndex) {
        let event = RunEvent::Progress("still here".into());
        self.step(Input::Told { run, event });
    }

    pub(super) fn advance(&mut self, millis: u64) {
        self.now = self.now.plus(Duration::from_millis(millis));
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

    pub(super) fn id(&self, run: RunIndex) -> RunId {
        self.machine.id(run)
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.machine.step(self.now, input, &mut effects);
        self.book(effects);
    }

    /// Performs effects by noting them, and checks what must hold after every step.
    fn book(&mut self, effects: Vec<Effect>) {
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
                Effect::Reply { reply, answer } => match answer {
                    Ok((run, _)) => {
                        self.answers.insert(reply.0, Some(run));
                    }
                    Err(_) => {
                        self.answers.remove(&reply.0);
                    }
                },
                Effect::Resolve { wait, .. } => {
                    for actor in self.actors.values_mut() {
                        actor.waiting = actor.waiting.filter(|&open| open != wait);
                    }
                }
                Effect::Record(_) | Effect::Show(_) | Effect::Ended { .. } | Effect::AllEnded => {}
            }
        }
        self.ledger.assert_step(&self.machine);
    }
}

fn id(number: u64) -> RunId {
    RunId::from_uuid(Uuid::from_u64_pair(0x0190_0000_0000_7000, 0x8000_0000_0000_0000 | number))
}

fn config(limits: Limits) -> Config {
    let key = |name: &str| format!("agents.defaults.subagents.{name}");
    let mut loader = Loader::new();
    let mut set = |name: &str, value: String| {
        loader = std::mem::take(&mut loader).flag(key(name), value, "test");
    };
    set("allowRecursiveSpawn", "true".into());
    set("maxConcurrent", limits.max_concurrent.to_string());
    set("maxDepth", limits.max_depth.to_string());
    set("maxSpawns", limits.max_spawns.to_string());
    set("runTimeoutSeconds", limits.run_timeout_seconds.to_string());
    set("idleTimeoutSeconds", limits.idle_timeout_seconds.to_string());
    set("graceSeconds", limits.grace_seconds.to_string());
    set("deadlineSeconds", limits.deadline_seconds.to_string());
    set("onParentEnd", if limits.cascade { "cascade" } else { "letFinish" }.into());
    if let Some(per_level) = limits.per_level {
        set("maxConcurrentPerLevel", per_level.to_string());
    }
    loader.load().expect("the limits of a test are within bounds")
}
