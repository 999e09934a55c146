//! Runs that wait for a slot of their account while something else waits for them.

use std::sync::Arc;

use offshoot_model::{Account, EventKind, Origin, RefusalCode, SpawnRequest};
use offshoot_runtime::EXEC;

use super::super::run::RunIndex;
use super::account_slots::pool;
use super::limits::Limits;
use super::world::{OTHER, World};

fn tree(more: Limits) -> World {
    World::quiet(Limits { account_slots: 1, ..more })
}

impl World {
    /// A child that another runtime runs, under its own account.
    fn other_child_of(&mut self, caller: RunIndex) -> RunIndex {
        let facts = std::mem::replace(&mut self.facts, Arc::clone(&self.other_facts));
        let run = self.child_of(caller);
        self.facts = facts;
        run
    }

    /// A child that is a program, which has no account.
    pub(super) fn program_of(&mut self, caller: RunIndex) -> RunIndex {
        let mut program = (*self.facts).clone();
        program.name = EXEC.into();
        program.account = Arc::new(Account::of_runtime(EXEC));
        let facts = std::mem::replace(&mut self.facts, Arc::new(program));
        let run = self.child_of(caller);
        self.facts = facts;
        run
    }

    pub(super) fn kept(&self) -> usize {
        self.hosts[&pool("test")].bound()
    }
}

#[test]
fn a_child_of_a_piece_gets_its_slot_while_other_pieces_wait_for_the_pool_of_budget() {
    let mut world = tree(Limits { budget_tokens: Some(1_000), pools: true, ..Limits::default() });
    let piece = world.other_piece();
    let next = world.spawn_piece();
    assert_eq!(world.holding(), [piece], "the first one has all that may be taken");
    let child = world.child_of(piece);
    assert_eq!(
        world.holding(),
        [piece, child],
        "its account has a slot, and it needs no budget of the pool"
    );
    world.wait(piece);
    world.finish(child);
    world.finish(piece);
    assert_eq!(world.holding(), [next]);
}

#[test]
fn a_silent_parent_lends_where_only_a_parent_below_waits_for_its_account() {
    let mut world = tree(Limits::default());
    let silent = world.spawn_piece();
    let below = world.other_child_of(silent);
    let child = world.other_child_of(below);
    world.wait(below);
    assert_eq!(world.holding(), [silent, child]);
    world.others_change_in(pool(OTHER), 0, 1);
    world.finish(child);
    world.others_change_in(pool(OTHER), 1, 1);
    assert_eq!(world.holding(), [silent], "the account of the one that may go on is full");
    world.advance(29_999);
    assert_eq!(world.holding(), [silent]);
    world.advance(1);
    assert_eq!(world.holding(), [], "another tree may wait for what it holds");
    world.others_change_in(pool(OTHER), 0, 0);
    assert_eq!(world.holding(), [below]);
}

#[test]
fn a_silent_parent_keeps_its_slot_where_nothing_below_it_waits_for_an_account() {
    let mut world = tree(Limits { per_level: Some(3), max_concurrent: 9, ..Limits::default() });
    let [works, waits] = [(); 2].map(|()| world.spawn_piece());
    let silent = world.other_piece();
    let programs = [(); 3].map(|()| world.program_of(works));
    let queued = world.program_of(silent);
    let holding: Vec<RunIndex> = [works, silent].into_iter().chain(programs).collect();
    assert_eq!(world.holding(), holding, "one waits for the account, one for its level");
    world.advance(90_000);
    assert_eq!((world.holding(), world.times("stall_lent")), (holding, 0));
    programs.iter().for_each(|run| world.finish(*run));
    world.finish(works);
    assert_eq!(world.holding(), [waits, silent, queued]);
}

#[test]
fn what_is_kept_while_the_host_is_full_goes_to_others_once_another_run_has_started() {
    let mut world = tree(Limits { host_slots: 2, ..Limits::default() });
    world.others_change(1, 1);
    let busy = world.other_piece();
    assert_eq!(world.holding(), [busy]);
    world.spawn_piece();
    assert_eq!((world.holding(), world.kept()), (vec![busy], 1), "it waits for the host alone");
    world.others_change_in(pool("test"), 0, 1);
    world.advance(600_000);
    assert_eq!(world.kept(), 1, "no run of the tree has started meanwhile");
    let program = world.program_of(busy);
    world.others_change(0, 0);
    assert_eq!(world.holding(), [busy, program], "the deeper one goes first");
    assert_eq!(world.kept(), 0, "it was kept for longer than a minute");
}

#[test]
fn a_slot_that_a_full_tree_cannot_use_goes_to_another_tree_after_a_minute_and_sooner_each_time() {
    let mut world = tree(Limits { max_concurrent: 1, ..Limits::default() });
    // The account is full when a slot of the tree is free, and the other way round.
    world.spawn_piece();
    world.others_change_in(pool("test"), 0, 1);
    let first = world.holding()[0];
    let next = world.spawn_piece();
    let busy = world.other_piece();
    world.finish(first);
    world.others_change_in(pool("test"), 1, 1);
    assert_eq!(world.holding(), [busy]);
    for seconds in [60, 30, 15, 8, 8] {
        world.others_change_in(pool("test"), 0, 0);
        assert_eq!(world.kept(), 1, "no other tree waits for it");
        world.advance(3_600_000);
        assert_eq!(world.kept(), 1);
        world.others_change_in(pool("test"), 0, 1);
        world.advance(seconds * 1_000 - 1_000);
        assert_eq!(world.kept(), 1, "{seconds}");
        world.advance(1_000);
        assert_eq!(world.kept(), 0, "{seconds}");
        world.others_change_in(pool("test"), 1, 1);
    }
    world.others_change_in(pool("test"), 0, 0);
    world.finish(busy);
    assert_eq!(world.holding(), [next]);
}

#[test]
fn a_slot_that_is_kept_for_a_run_without_room_goes_to_a_deeper_one() {
    let mut world = tree(Limits { host_slots: 2, per_level: Some(1), ..Limits::default() });
    world.others_change(1, 1);
    let parent = world.program_of(RunIndex::ROOT);
    let program = world.program_of(parent);
    world.wait(parent);
    let late = world.spawn_piece();
    assert_eq!((world.holding(), world.kept()), (vec![program], 1));
    world.finish(program);
    assert_eq!(world.holding(), [parent], "its level is full again, and the piece waits for it");
    let deeper = world.child_of(parent);
    world.others_change(0, 0);
    assert_eq!(world.holding(), [parent, deeper], "the parent may wait for it");
    world.finish(deeper);
    world.finish(parent);
    assert_eq!(world.holding(), [late]);
}

#[test]
fn a_parent_that_goes_on_takes_the_slot_that_is_kept_for_a_new_run() {
    let mut world = tree(Limits { host_slots: 1, ..Limits::default() });
    let (parent, _) = world.family();
    world.wait(parent);
    let program = world.holding()[0];
    let late = world.spawn_piece();
    world.finish(program);
    assert_eq!(world.holding(), [parent], "before the piece");
    world.finish(parent);
    assert_eq!(world.holding(), [late]);
}

#[test]
fn a_run_that_goes_over_to_another_account_keeps_nothing_of_the_first() {
    let mut world = tree(Limits { host_slots: 1, falls_back: true, ..Limits::default() });
    world.others_change(1, 1);
    let piece = world.spawn_piece();
    assert_eq!((world.holding(), world.kept()), (vec![], 1));
    world.hear_of_wall(
        Account::of_runtime("test"),
        world.now.plus(std::time::Duration::from_secs(60)),
    );
    assert_eq!(world.kept(), 0);
    assert_eq!(world.times("fell_back"), 1);
    world.others_change(0, 0);
    assert_eq!(world.holding(), [piece]);
}

#[test]
fn a_run_that_is_to_wait_for_nothing_is_refused_while_others_wait_for_its_account() {
    let mut world = tree(Limits::default());
    let first = world.spawn_piece();
    world.spawn_piece();
    let at_once = |world: &mut World| {
        let request = SpawnRequest { no_queue: true, ..SpawnRequest::default() };
        world.spawn(RunIndex::ROOT, Origin::Agent, request)
    };
    assert_eq!(at_once(&mut world), Err(RefusalCode::Busy));
    let facts = std::mem::replace(&mut world.facts, Arc::clone(&world.other_facts));
    let other = at_once(&mut world).expect("its own account has a slot");
    world.facts = facts;
    assert_eq!(world.holding(), [first, other]);
    let told = |kind: &EventKind| matches!(kind, EventKind::AccountFull { .. });
    assert_eq!(world.record.iter().filter(|event| told(&event.kind)).count(), 1);
}
