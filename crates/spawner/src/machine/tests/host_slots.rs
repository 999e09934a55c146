//! Trees that share slots with other trees.

use std::collections::BTreeMap;

use offshoot_model::EventKind;

use super::super::Input;
use super::super::run::RunIndex;
use super::agents::Behaviour;
use super::limits::Limits;
use super::world::World;
use crate::host_slots::{HostClaim, HostGrant, SlotPool};

/// A pool of slots, and what the other trees of the user take of it.
#[derive(Debug, Default)]
pub(super) struct OtherTrees {
    max: u32,
    /// The slots that the others hold.
    pub(super) taken: u32,
    /// The slots that the others want in all.
    pub(super) wanted: u32,
    given: u32,
    claim: HostClaim,
}

impl OtherTrees {
    /// The pool of the host, where that bounds something. Those of accounts follow with their first claims.
    pub(super) fn of(limits: Limits) -> BTreeMap<SlotPool, Self> {
        let host = Self { max: limits.host_slots, ..Self::default() };
        (host.max > 0).then_some((SlotPool::Host, host)).into_iter().collect()
    }

    /// The pool of an account of which nothing was claimed before.
    pub(super) fn of_account(limits: Limits) -> Self {
        assert!(limits.account_slots > 0, "a tree that counts alone claims nothing");
        Self { max: limits.account_slots, ..Self::default() }
    }

    /// Takes in a claim.
    pub(super) fn claimed(&mut self, claim: HostClaim) {
        self.given = self.given.checked_sub(claim.back).expect("only what was given comes back");
        assert!(claim.wants >= self.given, "what nothing wants is given back");
        self.claim = claim;
    }

    /// The supervisor has died, and what it had is free.
    pub(super) fn forget(&mut self) {
        (self.given, self.claim) = (0, HostClaim::default());
    }

    fn waits(&self) -> bool {
        self.claim.wants > self.given
    }

    /// The slots that the tree holds or could use.
    pub(super) fn wants(&self) -> u32 {
        self.claim.wants
    }

    /// Gives what is free and due, at most this many.
    fn gives(&mut self, most: u32) -> HostGrant {
        let due = self.max.saturating_sub(self.wanted.max(self.taken)).min(self.claim.wants);
        let free = self.max.saturating_sub(self.taken + self.given + self.claim.debt);
        let more = free.min(due.saturating_sub(self.given)).min(most);
        self.given += more;
        HostGrant { more, due, claim: self.claim.number }
    }

    /// The most runs of the tree that may hold a slot.
    pub(super) fn bound(&self) -> usize {
        (self.given + self.claim.debt) as usize
    }
}

impl World {
    /// Returns the runs that hold a slot of a pool.
    pub(super) fn holding_of(&self, pool: &SlotPool) -> Vec<RunIndex> {
        let is_of = |run: &RunIndex| match pool {
            SlotPool::Host => true,
            SlotPool::Account(account) => {
                let live = self.machine.runs.live(*run);
                live.and_then(|live| live.account.as_ref()) == Some(account)
            }
        };
        self.holding().into_iter().filter(is_of).collect()
    }

    /// A pool answers to a claim. In a random world it may have something else to do first.
    pub(super) fn host_answers(&mut self, pool: SlotPool) {
        let random = matches!(self.behaviour, Behaviour::Random);
        let host = self.hosts.get_mut(&pool).filter(|host| host.waits());
        let Some(host) = host else { return };
        let most = if random { self.seed.below(3) as u32 } else { u32::MAX };
        let grant = host.gives(most);
        self.step(Input::PoolGives(pool, grant));
    }

    /// The others want other amounts of the host, and the tree hears what that leaves. Returns true if it was given a slot.
    pub(super) fn others_change(&mut self, taken: u32, wanted: u32) -> bool {
        self.others_change_in(SlotPool::Host, taken, wanted)
    }

    /// The same of any pool.
    pub(super) fn others_change_in(&mut self, pool: SlotPool, taken: u32, wanted: u32) -> bool {
        let Some(host) = self.hosts.get_mut(&pool) else { return false };
        (host.taken, host.wanted) = (taken, wanted);
        let grant = host.gives(u32::MAX);
        self.step(Input::PoolGives(pool, grant));
        grant.more > 0
    }

    /// Something changes at random. Where no run is awake, all others end.
    pub(super) fn host_changes(&mut self, all_asleep: bool) -> bool {
        let mut has_more = false;
        for pool in self.hosts.keys().cloned().collect::<Vec<_>>() {
            let host = &self.hosts[&pool];
            if !all_asleep && !host.waits() {
                continue;
            }
            let (max, free) = (host.max, host.max.saturating_sub(host.given));
            let mut below =
                || if all_asleep { 0 } else { self.seed.below(u64::from(max) + 1) as u32 };
            let (taken, wanted) = (below(), below());
            has_more |= self.others_change_in(pool, taken.min(free), wanted);
        }
        has_more
    }

    fn told_of_host(&self) -> Vec<&'static str> {
        let is_host = |kind: &&EventKind| {
            let kinds = [EventKind::HostFull, EventKind::HostFree, EventKind::Starting];
            kinds.contains(kind) || matches!(kind, EventKind::HostBound { .. })
        };
        self.record.iter().map(|event| &event.kind).filter(is_host).map(EventKind::name).collect()
    }
}

fn tree(max: u32) -> World {
    World::quiet(Limits { host_slots: max, ..Limits::default() })
}

#[test]
fn no_more_run_than_the_host_has_slots() {
    let mut world = tree(2);
    let pieces = [(); 4].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces[..2]);
    world.finish(pieces[0]);
    assert_eq!(world.holding(), pieces[1..3]);
    pieces[1..].iter().for_each(|piece| world.finish(*piece));
    let told =
        ["host_bound", "starting", "starting", "host_full", "starting", "starting", "host_free"];
    assert_eq!(world.told_of_host(), told);
    assert_eq!(world.hosts[&SlotPool::Host].bound(), 0, "all went back");
}

#[test]
fn a_slot_that_is_due_to_another_tree_goes_back_before_the_next_run_starts() {
    let mut world = tree(2);
    let pieces = [(); 4].map(|()| world.spawn_piece());
    world.others_change(0, 1);
    assert_eq!(world.holding(), pieces[..2], "nothing that runs is stopped for it");
    world.finish(pieces[0]);
    assert_eq!(world.holding(), [pieces[1]], "the other tree is next");
    world.others_change(1, 1);
    assert_eq!(world.holding(), [pieces[1]]);
    world.finish(pieces[1]);
    assert_eq!(world.holding(), [pieces[2]], "this one is due to the tree");
    world.others_change(0, 0);
    assert_eq!(world.holding(), pieces[2..]);
}

#[test]
fn a_parent_that_waits_lends_its_slot_of_the_host_and_goes_on_with_one() {
    let mut world = tree(1);
    let (parent, child) = world.family();
    assert_eq!(world.holding(), [parent]);
    world.wait(parent);
    assert_eq!(world.holding(), [child]);
    world.others_change(0, 1);
    world.finish(child);
    assert_eq!(world.holding(), [], "another tree is next, and the parent waits");
    world.others_change(1, 1);
    assert_eq!(world.holding(), []);
    world.others_change(0, 0);
    assert_eq!(world.holding(), [parent]);
    assert_eq!(world.told_of_host().last(), Some(&"host_free"));
}

#[test]
fn a_silent_parent_lends_where_the_host_is_full() {
    let mut world = tree(1);
    let (parent, child) = world.family();
    assert_eq!(world.holding(), [parent]);
    world.advance(30_000);
    assert_eq!(world.holding(), [child], "it polls, and its child waits for its slot");
}

#[test]
fn a_debt_is_told_to_the_host() {
    let mut world = tree(1);
    let (parent, child) = world.family();
    let wait = world.wait(parent);
    world.give_up(wait);
    assert_eq!(world.holding(), [parent, child], "a parent whose wait failed goes on at once");
    let more = world.spawn_piece();
    world.finish(child);
    assert_eq!(world.holding(), [parent], "the debt is paid first");
    world.finish(parent);
    assert_eq!(world.holding(), [more]);
}

#[test]
fn what_waits_for_the_host_starts_under_the_next_supervisor() {
    let mut world = tree(1);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    world.crash();
    let live = world.holding();
    assert_eq!(live.len(), 1, "the host has given as much to the next one");
    live.iter().for_each(|run| world.finish(*run));
    let rest: Vec<_> = pieces.iter().copied().filter(|run| world.holding().contains(run)).collect();
    rest.iter().for_each(|run| world.finish(*run));
    let told = world.told_of_host();
    assert_eq!(told.iter().filter(|kind| **kind == "host_bound").count(), 2, "{told:?}");
    assert_eq!(told.last(), Some(&"host_free"), "{told:?}");
}

#[test]
fn a_tree_that_counts_alone_tells_nothing() {
    let mut world = World::quiet(Limits::default());
    let pieces = [(); 3].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces);
    assert_eq!(world.told_of_host(), ["starting"; 3]);
}

#[test]
fn a_tree_waits_for_the_host_all_the_time_while_it_is_looked_at_memory_before_each_start() {
    let limits = Limits { host_slots: 2, memory_percent: 30, ..Limits::default() };
    let mut world = World::quiet(limits);
    world.available = Some(100);
    let pieces = [(); 6].map(|()| world.spawn_piece());
    for piece in &pieces[..4] {
        // Long enough that what was seen of memory counts no more.
        world.advance(60_000);
        world.finish(*piece);
    }
    assert_eq!(world.holding(), pieces[4..]);
    assert_eq!((world.times("host_full"), world.times("host_free")), (1, 1));
}

#[test]
fn a_tree_keeps_the_slots_that_come_free_while_it_is_looked_at_memory() {
    let limits =
        Limits { host_slots: 3, account_slots: 3, memory_percent: 30, ..Limits::default() };
    let mut world = World::quiet(limits);
    world.available = Some(100);
    let pieces = [(); 6].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces[..3]);
    world.advance(60_000);
    world.looks_for_long = true;
    (0..2).for_each(|number| world.finish(pieces[number]));
    assert_eq!(world.holding(), [pieces[2]], "it is looked for the next one");
    assert_eq!(world.hosts.len(), 2);
    for (pool, host) in &world.hosts {
        assert_eq!(host.bound(), 3, "{pool:?}");
    }
    world.looks_at_memory(false);
    assert_eq!(world.holding(), pieces[2..5]);
    let claims = world.times("host_full") + world.times("account_full");
    assert_eq!((claims, world.times("host_free"), world.times("account_free")), (1, 0, 0));
    // To measure what all runs have takes longer, and what is free goes back meanwhile.
    world.advance(60_000);
    world.available = Some(0);
    world.finish(pieces[2]);
    let bounds = |world: &World| world.hosts.values().map(OtherTrees::bound).collect::<Vec<_>>();
    assert_eq!(bounds(&world), [3, 3]);
    world.looks_at_memory(false);
    let why = "the run in line has its place in the line of its account";
    assert_eq!((world.holding(), bounds(&world)), (pieces[3..5].to_vec(), vec![2, 3]), "{why}");
    world.looks_at_memory(true);
    assert!(world.machine.is_memory_short());
}

/// The slots of the host that the tree holds or could use.
fn wants(world: &World) -> u32 {
    world.hosts[&SlotPool::Host].wants()
}

#[test]
fn a_tree_claims_as_many_slots_as_could_start_runs() {
    let mut world = tree(1);
    (0..4).for_each(|_| _ = world.spawn_piece());
    assert_eq!((world.holding().len(), wants(&world)), (1, 4));
    let mut world = World::quiet(Limits { host_slots: 1, max_concurrent: 3, ..Limits::default() });
    (0..6).for_each(|_| _ = world.spawn_piece());
    assert_eq!((world.holding().len(), wants(&world)), (1, 3), "no more than its own limit");
}

#[test]
fn a_tree_claims_nothing_for_runs_that_wait_for_something_else() {
    // Two wait for the answer to the prompt that the first has sent; the prompt of another agent is another one.
    let mut world = World::quiet(Limits { host_slots: 1, long_prompts: true, ..Limits::default() });
    (0..3).for_each(|_| _ = world.spawn_piece());
    assert_eq!((world.holding().len(), wants(&world)), (1, 1));
    world.spawn_agent(RunIndex::ROOT, "a");
    assert_eq!((world.holding().len(), wants(&world)), (1, 2));
    // One waits for the account of the first; another account is free.
    let mut world = World::quiet(Limits { host_slots: 1, account_slots: 1, ..Limits::default() });
    (0..2).for_each(|_| _ = world.spawn_piece());
    world.facts = std::sync::Arc::clone(&world.other_facts);
    world.spawn_piece();
    assert_eq!((world.holding().len(), wants(&world)), (1, 2));
}
