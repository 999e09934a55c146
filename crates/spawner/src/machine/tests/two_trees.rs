//! Two trees that share the slots of the host and of accounts, by the rule by which the host shares them out.

use std::collections::BTreeMap;
use std::sync::Arc;

use offshoot_audit::Audit;
use offshoot_model::Account;
use offshoot_policy::host_share::{Claim, due, free_for_first};

use super::super::Input;
use super::super::run::{RunIndex, SlotState};
use super::limits::Limits;
use super::seed::Seed;
use super::world::{OTHER, World};
use crate::host_slots::{HostClaim, HostGrant, SlotPool};

/// The part of one tree in a pool, as its supervisor writes it down.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    holds: u32,
    debt: u32,
    wants: u32,
    turn: u64,
    comes_last: bool,
    /// The number of the last claim that was taken in.
    taken_in: u64,
    /// The share that was told last.
    due: u32,
    /// A claim that the supervisor has not taken in.
    news: Option<HostClaim>,
    /// True if another one has written since the last look.
    woken: bool,
}

impl Written {
    fn claim(self) -> Claim {
        Claim { wants: self.wants, holds: self.holds + self.debt, turn: self.turn }
    }
}

/// Trees of one user.
struct Trees<const N: usize> {
    worlds: [World; N],
    pools: BTreeMap<SlotPool, [Written; N]>,
    limits: Limits,
    dice: Seed,
    /// The most steps that the trees have made between two things that happened outside.
    most_steps: u32,
    /// The number of times in a row at which nothing could happen but that time passes.
    silent: u32,
}

impl World {
    /// Parents whose slots were lent in their silence, and whose children are over, speak.
    fn silent_parents_go_on(&mut self) {
        for run in self.machine.runs.places() {
            let live = self.machine.runs.live(run);
            let is_lent = live.is_some_and(|live| {
                live.phase == SlotState::Lent
                    && live.waits.is_empty()
                    && live.live_children.is_empty()
            });
            if is_lent {
                self.progress(run);
            }
        }
    }
}

impl<const N: usize> Trees<N> {
    fn new(seed: u64, limits: Limits) -> Self {
        let worlds = [(); N].map(|()| {
            let mut world = World::quiet(limits);
            world.claims = Some(Vec::new());
            world
        });
        Self { worlds, pools: BTreeMap::new(), limits, dice: Seed(seed), most_steps: 0, silent: 0 }
    }

    /// Takes in what the trees have claimed, and answers in the order that the seed says, until nothing is left to answer.
    fn settle(&mut self) {
        let mut steps = 0;
        loop {
            self.hear();
            let awake = |(pool, all): (&SlotPool, &[Written; N])| {
                let is_awake = |tree: &usize| all[*tree].woken || all[*tree].news.is_some();
                (0..N).filter(is_awake).map(|tree| (pool.clone(), tree)).collect::<Vec<_>>()
            };
            let awake: Vec<(SlotPool, usize)> = self.pools.iter().flat_map(awake).collect();
            if awake.is_empty() {
                break;
            }
            let (pool, tree) = awake[self.dice.below(awake.len() as u64) as usize].clone();
            for grant in self.look(&pool, tree) {
                steps += 1;
                self.worlds[tree].step(Input::PoolGives(pool.clone(), grant));
            }
            assert!(steps < 100, "two trees hand slots to and fro: {:?}", self.pools);
        }
        self.most_steps = self.most_steps.max(steps);
        for (pool, all) in &self.pools {
            let held: usize = self.worlds.iter().map(|world| world.holding_of(pool).len()).sum();
            let debt: u32 = all.iter().map(|written| written.debt).sum();
            assert!(held <= (self.most(pool) + debt) as usize, "{held} hold a slot of {pool:?}");
        }
    }

    fn most(&self, pool: &SlotPool) -> u32 {
        match pool {
            SlotPool::Host => self.limits.host_slots,
            SlotPool::Account(_) => self.limits.account_slots,
        }
    }

    fn hear(&mut self) {
        for (tree, world) in self.worlds.iter_mut().enumerate() {
            for (pool, claim) in world.claims.iter_mut().flat_map(std::mem::take) {
                let all = self.pools.entry(pool).or_insert([Written::default(); N]);
                let back = all[tree].news.map_or(0, |before| before.back);
                all[tree].news = Some(HostClaim { back: back + claim.back, ..claim });
            }
        }
    }

    /// One supervisor looks at what all have written, takes what is due to it, and writes its own. What of the host
    /// is due to it once it has taken that is told behind.
    fn look(&mut self, pool: &SlotPool, tree: usize) -> Vec<HostGrant> {
        let most = self.most(pool);
        let all = self.pools.get_mut(pool).expect("it was claimed");
        let before = all[tree].claim();
        let own = &mut all[tree];
        let asked = own.news.is_some();
        own.woken = false;
        if let Some(HostClaim { number, back, debt, wants }) = own.news.take() {
            own.taken_in = number;
            let waited = own.wants > own.holds;
            own.holds = own.holds.checked_sub(back).expect("only what was given comes back");
            (own.debt, own.wants) = (debt, wants);
            own.comes_last |= wants > own.holds && (!waited || back > 0);
        }
        if std::mem::take(&mut all[tree].comes_last) {
            all[tree].turn = all.iter().map(|it| it.turn).max().unwrap_or(0) + 1;
        }
        // The own claim is the first.
        let others = (0..N).filter(|other| *other != tree);
        let order: Vec<usize> = std::iter::once(tree).chain(others).collect();
        let claims = |all: &[Written; N]| -> Vec<Claim> {
            order.iter().map(|at| all[*at].claim()).collect()
        };
        let (due_before, more) = (due(most, &claims(all))[0], free_for_first(most, &claims(all)));
        let own = &mut all[tree];
        own.holds += more;
        let asked = asked && own.wants > own.holds - more;
        let is_told = asked || more > 0 || due_before != own.due;
        let due_with_it = match pool {
            SlotPool::Host => due(most, &claims(all))[0],
            SlotPool::Account(_) => due_before,
        };
        let own = &mut all[tree];
        let known = if is_told { due_before } else { own.due };
        own.due = due_with_it;
        if own.claim() != before {
            (0..N).filter(|other| *other != tree).for_each(|other| all[other].woken = true);
        }
        let claim = all[tree].taken_in;
        let told = is_told.then_some(HostGrant { more, due: due_before, claim });
        let behind =
            (due_with_it != known).then_some(HostGrant { more: 0, due: due_with_it, claim });
        told.into_iter().chain(behind).collect()
    }

    /// Something happens in one of the trees, as the seed says; false where nothing runs in any, and none goes on by itself.
    fn something_happens(&mut self) -> bool {
        // A run that polls for its children ends after them.
        let polls = |world: &World, run: &RunIndex| {
            let live = world.machine.runs.live(*run);
            live.is_some_and(|live| !live.live_children.is_empty())
        };
        let holding = |(tree, world): (usize, &World)| {
            let all = world.holding().into_iter().filter(|run| !polls(world, run));
            all.map(|run| (tree, run)).collect::<Vec<_>>()
        };
        let all: Vec<_> = self.worlds.iter().enumerate().flat_map(holding).collect();
        if self.dice.one_in(2) || all.is_empty() {
            let seconds = if all.is_empty() { 31 } else { self.dice.below(20) };
            self.time_passes(seconds);
        }
        if all.is_empty() {
            self.silent += 1;
            return self.silent < 20 && self.worlds.iter().any(|world| world.machine.live() > 1);
        }
        self.silent = 0;
        let (tree, run) = all[self.dice.below(all.len() as u64) as usize];
        let (asks, is_other) = (self.dice.one_in(4), self.dice.one_in(2));
        let is_silent = self.dice.one_in(3);
        let world = &mut self.worlds[tree];
        if !world.holding().contains(&run) {
            return true;
        }
        let is_fresh = world.machine.runs[run].children.is_empty();
        if asks && is_fresh && world.machine.runs[run].depth() < 3 {
            let facts = Arc::clone(&world.facts);
            if is_other {
                world.facts = Arc::clone(&world.other_facts);
            }
            for _ in 0..2 {
                world.child_of(run);
            }
            world.facts = facts;
            if !is_silent {
                world.wait(run);
            }
        } else {
            world.finish(run);
        }
        self.settle();
        true
    }

    fn time_passes(&mut self, seconds: u64) {
        for world in &mut self.worlds {
            world.advance(seconds * 1_000);
            world.silent_parents_go_on();
        }
        self.settle();
    }

    fn spawn(&mut self, tree: usize, pieces: u32) {
        for piece in 0..pieces {
            match (piece + tree as u32).is_multiple_of(3) {
                true => self.worlds[tree].other_piece(),
                false => self.worlds[tree].spawn_piece(),
            };
        }
        self.settle();
    }

    fn is_done(&self, tree: usize) -> bool {
        self.worlds[tree].machine.live() == 1
    }
}

fn limits(host_slots: u32, account_slots: u32) -> Limits {
    Limits {
        host_slots,
        account_slots,
        max_concurrent: 6,
        max_depth: 9,
        max_spawns: 9999,
        ..Limits::default()
    }
}

#[test]
fn both_trees_come_to_their_end_whatever_is_bounded() {
    let mut most_steps = 0;
    for seed in 0..400 {
        let mut dice = Seed(seed ^ 0x2_7ee5);
        let (host, account) = (dice.pick(&[1, 2, 3, 5]), dice.pick(&[1, 2, 4]));
        let limits = Limits { max_concurrent: dice.pick(&[1, 2, 6]), ..limits(host, account) };
        let mut trees: Trees<2> = Trees::new(seed, limits);
        trees.spawn(0, 1 + dice.below(9) as u32);
        trees.spawn(1, 1 + dice.below(9) as u32);
        while trees.something_happens() {}
        for world in &trees.worlds {
            assert_eq!(world.machine.live(), 1, "seed {seed}: {:?}", trees.pools);
            assert_eq!(Audit::of(&world.ledger.events).breaches, [], "seed {seed}");
        }
        let is_back = |written: &Written| written.holds == 0 && written.wants == 0;
        assert!(trees.pools.values().flatten().all(is_back), "seed {seed}: {:?}", trees.pools);
        most_steps = most_steps.max(trees.most_steps);
    }
    assert!(most_steps < 60, "{most_steps} answers to one thing that happens");
}

/// A tree that always has more to do starves no other one.
#[test]
fn a_tree_comes_to_its_end_beside_one_that_always_has_more_to_do() {
    for seed in 0..200 {
        let mut dice = Seed(seed ^ 0x57a7_0e00);
        let (host, account) = (dice.pick(&[1, 2, 3, 5]), dice.pick(&[1, 2, 4]));
        let limits = Limits { max_concurrent: dice.pick(&[1, 2, 6]), ..limits(host, account) };
        let mut trees: Trees<3> = Trees::new(seed, limits);
        for greedy in [1, 2] {
            trees.spawn(greedy, 20);
        }
        trees.spawn(0, 6);
        let mut happened = 0;
        while !trees.is_done(0) {
            assert!(trees.something_happens(), "seed {seed}: {:?}", trees.pools);
            for greedy in [1, 2] {
                if trees.worlds[greedy].machine.live() < 15 {
                    trees.spawn(greedy, 10);
                }
            }
            happened += 1;
            assert!(happened < 600, "seed {seed}: a tree of six pieces starves: {:?}", trees.pools);
        }
    }
}

#[test]
fn a_tree_that_waits_for_the_host_keeps_no_more_of_an_account_than_is_due_to_it() {
    let mut trees: Trees<2> = Trees::new(7, limits(2, 4));
    trees.spawn(0, 12);
    let of = |trees: &Trees<2>, pool: &SlotPool, tree: usize| trees.pools[pool][tree].holds;
    let account = SlotPool::Account(Arc::new(Account::of_runtime("test")));
    let other = SlotPool::Account(Arc::new(Account::of_runtime(OTHER)));
    assert_eq!(of(&trees, &SlotPool::Host, 0), 2);
    trees.spawn(1, 12);
    for pool in [&account, &other] {
        assert!(of(&trees, pool, 0) <= 2, "{:?}", trees.pools);
    }
    while trees.something_happens() {}
    assert!((0..2).all(|tree| trees.is_done(tree)));
}
