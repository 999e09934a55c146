//! Every state that a tree of at most four runs can reach: from each of them all that can happen next is tried, and from each of them
//! the tree comes to an end. What must hold after every step is checked by the world.
//!
//! Two states are the same where the runs stand alike, in the same order in line, and their results were told alike. Times are no part
//! of a state.

use std::collections::{HashMap, VecDeque};

use offshoot_config::Config;
use offshoot_model::{CancelledBy, Reason};

use super::super::run::{Body, Live, SlotState};
use super::super::{Reach, RunIndex};
use super::agents::{Behaviour, OVERLOADED};
use super::assert_proven;
use super::limits::Limits;
use super::world::World;

/// One thing that can happen.
#[derive(Clone, Copy, Debug)]
enum Act {
    Piece,
    Child(RunIndex),
    Wait(RunIndex),
    GiveUp(RunIndex),
    Complete(RunIndex),
    Fail(RunIndex),
    /// A fault of the runtime, after which there may be a further attempt.
    Fault(RunIndex),
    Cancel(RunIndex),
    Pause(bool),
    /// The moment that the machine waits for.
    Time,
    Crash,
}

/// A way to a state: what happened, in order.
type Way = Vec<Act>;

/// All states of trees with these limits.
struct Search {
    limits: Limits,
    config: Config,
    /// The runs of a tree without its root, which holds the pieces.
    most: usize,
    /// True if the operator pauses the tree and lets it go on.
    pauses: bool,
    /// The states that were found, each with its number.
    found: HashMap<String, usize>,
    /// The ways to states from which nothing was tried yet.
    open: VecDeque<Way>,
}

impl Search {
    /// Finds all states, and returns how many there are.
    fn all(most: usize, pauses: bool, limits: Limits) -> usize {
        let config = limits.config();
        let (found, open) = (HashMap::new(), VecDeque::new());
        let mut search = Self { limits, config, most, pauses, found, open };
        search.reach(Way::new());
        while let Some(way) = search.open.pop_front() {
            for act in search.possible(&way) {
                search.reach([&way[..], &[act]].concat());
            }
        }
        search.found.len()
    }

    /// Goes a way from the beginning. A new state is one to go on from, and one from which the tree must be able to end.
    fn reach(&mut self, way: Way) {
        let world = self.world(&way);
        let number = self.found.len();
        if *self.found.entry(state(&world, &way)).or_insert(number) == number {
            comes_to_its_end(world, number, &way);
            self.open.push_back(way);
        }
    }

    fn world(&self, way: &[Act]) -> World {
        let config = self.config.clone();
        let mut world = World::configured(0, self.limits, config, Behaviour::Quiet);
        for &act in way {
            happens(&mut world, act);
        }
        world
    }

    /// Returns what can happen in a state. One crash is enough: the record does not know how many supervisors have read it.
    fn possible(&self, way: &[Act]) -> Vec<Act> {
        let world = self.world(way);
        let has_room = world.machine.runs.len() <= self.most;
        let mut acts = Vec::new();
        if has_room {
            acts.push(Act::Piece);
        }
        for (&run, actor) in &world.actors {
            if !actor.waits.is_empty() {
                acts.push(Act::GiveUp(run));
                acts.extend(world.is_stopping(run).then_some(Act::Complete(run)));
                continue;
            }
            acts.extend([Act::Complete(run), Act::Fail(run)]);
            acts.extend((self.limits.retries > 0).then_some(Act::Fault(run)));
            acts.extend(has_room.then_some(Act::Child(run)));
            let has_children = !world.machine.runs[run].children.is_empty();
            acts.extend(has_children.then_some(Act::Wait(run)));
        }
        for (at, run) in world.machine.runs.iter().enumerate().skip(1) {
            if run.live().is_some_and(|live| live.stopping.is_none()) {
                acts.push(Act::Cancel(RunIndex::new(at)));
            }
        }
        acts.extend(self.pauses.then_some(Act::Pause(!world.machine.paused)));
        acts.extend(world.machine.next_change().map(|_| Act::Time));
        let is_first = !way.iter().any(|act| matches!(act, Act::Crash));
        acts.extend(is_first.then_some(Act::Crash));
        acts
    }
}

fn happens(world: &mut World, act: Act) {
    match act {
        Act::Piece => {
            world.try_spawn_piece();
        }
        Act::Child(run) => {
            world.spawn_from(run);
        }
        Act::Wait(run) => {
            world.wait(run);
        }
        Act::GiveUp(run) => {
            let wait = *world.actors[&run].waits.first().expect("it waits");
            world.give_up(wait);
        }
        Act::Complete(run) => world.finish(run),
        Act::Fail(run) => world.finish_because(run, Reason::ExitCode { code: 7 }),
        Act::Fault(run) => world.finish_because(run, OVERLOADED),
        Act::Cancel(run) => world.cancel(run, Reach::Subtree, CancelledBy::Operator),
        Act::Pause(paused) => world.pause(paused),
        Act::Time => {
            let at = world.machine.next_change().expect("it waits for a moment");
            world.jump(at);
        }
        Act::Crash => world.crash(),
    }
}

/// Returns a text that is the same for two states from which the same can happen.
fn state(world: &World, way: &[Act]) -> String {
    let runs = world.machine.runs.iter().map(|run| {
        let told = world.ledger.told(run.id);
        match &run.body {
            Body::Ended(status) => format!("{:?} {status} {told:?}", run.parent),
            Body::Live(live) => format!("{:?} {} {told:?}", run.parent, alive(live)),
        }
    });
    let line: Vec<RunIndex> = world.machine.queue.entries().collect();
    let crashed = way.iter().any(|act| matches!(act, Act::Crash));
    let paused = world.machine.paused;
    format!("{:?} {line:?} {paused} {crashed}", runs.collect::<Vec<_>>())
}

fn alive(live: &Live) -> String {
    let phase = match &live.phase {
        SlotState::Queued => "queued",
        SlotState::Holding { .. } => "holding",
        SlotState::Lent => "lent",
        SlotState::Returning { .. } => "returning",
        SlotState::Holder => "holder",
    };
    let Live { attempt, earlier_children, .. } = live;
    let (stopping, waits) = (&live.stopping, live.waits.len());
    let backs_off = live.again_at.is_some();
    format!("{phase} {stopping:?} {waits} {attempt} {earlier_children} {backs_off}")
}

/// Ends everything: what runs completes, and what is in line gets its turn.
fn comes_to_its_end(mut world: World, number: usize, way: &[Act]) {
    if world.machine.paused {
        world.pause(false);
    }
    let mut left = 100;
    while world.machine.live() > 1 {
        left -= 1;
        assert!(left > 0, "it does not come to an end after {way:?}");
        let is_awake = |run: &RunIndex| world.actors[run].waits.is_empty();
        match world.actors.keys().copied().find(is_awake) {
            Some(run) => world.finish(run),
            None => {
                let at = world.machine.next_change();
                let at = at.unwrap_or_else(|| panic!("nothing goes on after {way:?}"));
                world.jump(at);
            }
        }
    }
    world.close();
    world.assert_ended();
    assert_proven(&world, number as u64);
}

/// The variable that asks for all states of trees of four runs, not for those of one configuration alone.
const WANTED: &str = "OFFSHOOT_FAULTS";

#[test]
fn every_state_of_a_small_tree_comes_to_an_end() {
    let one = Limits { max_concurrent: 1, breaker_failures: 100, ..Limits::default() };
    let two = Limits { max_concurrent: 2, ..one };
    let retried = Limits { retries: 1, resumes: true, ..two };
    let cascade = Limits { cascade: true, ..two };
    let mut states =
        vec![Search::all(2, true, one), Search::all(2, true, retried), Search::all(3, false, one)];
    #[expect(clippy::disallowed_methods, reason = "a soak takes two minutes here, a test seconds")]
    if std::env::var(WANTED).is_ok_and(|wanted| wanted == "all") {
        states.extend([Search::all(3, false, cascade), Search::all(3, true, retried)]);
    }
    println!("{} states: {states:?}", states.iter().sum::<usize>());
    // Fewer would mean that something that can happen is not tried any more.
    assert!(states[0] >= 500 && states[1] >= 1_000 && states[2] >= 5_000, "{states:?}");
}
