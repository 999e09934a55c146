//! The line of an account: the run that comes next, and the slots that its tree keeps for it and claims.

use offshoot_model::{CancelledBy, Reason};
use offshoot_runtime::WaitMode;

use super::super::run::RunIndex;
use super::super::{Input, Reach};
use super::account_slots::pool;
use super::limits::Limits;
use super::world::World;
use crate::host_slots::HostGrant;

fn tree(slots: u32, more: Limits) -> World {
    World::quiet(Limits { account_slots: slots, ..more })
}

/// The same, while runs of another tree hold all slots of the account.
fn full(slots: u32, more: Limits) -> World {
    let mut world = tree(slots, more);
    let first = world.spawn_piece();
    world.others_change_in(pool("test"), 0, slots);
    world.finish(first);
    world.others_change_in(pool("test"), slots, slots);
    world
}

#[test]
fn a_run_that_has_no_room_any_more_leaves_its_slot_to_a_deeper_one_in_line() {
    let mut world = full(1, Limits { host_slots: 2, per_level: Some(1), ..Limits::default() });
    let parent = world.program_of(RunIndex::ROOT);
    let deeper = world.child_of(parent);
    let program = world.program_of(parent);
    assert_eq!(world.holding(), [parent, program], "the other child waits for the account");
    let runs = vec![world.id(program)];
    world.wait_for(parent, runs, WaitMode::All, None);
    world.others_change(1, 1);
    let late = world.spawn_piece();
    world.others_change_in(pool("test"), 0, 0);
    let now = (world.holding(), world.kept());
    assert_eq!(now, (vec![program], 1), "the piece has room, and waits for the host");
    world.finish(program);
    assert_eq!(world.holding(), [parent], "the level of the piece is full");
    world.others_change(0, 0);
    assert_eq!(world.holding(), [parent, deeper]);
    world.finish(deeper);
    world.finish(parent);
    assert_eq!(world.holding(), [late]);
}

#[test]
fn a_run_that_its_breaker_holds_back_leaves_its_slot_to_the_next_in_line() {
    let mut world = tree(1, Limits { breaker_failures: 1, ..Limits::default() });
    let fails = world.spawn_agent(RunIndex::ROOT, "a");
    let [held_back, next] = ["a", "b"].map(|agent| world.spawn_agent(RunIndex::ROOT, agent));
    assert_eq!(world.holding(), [fails]);
    world.finish_because(fails, Reason::CannotStart { message: "no such file".into() });
    assert_eq!(world.holding(), [next]);
    world.advance(5_000);
    world.finish(next);
    assert_eq!(world.holding(), [held_back]);
}

#[test]
fn a_run_whose_slot_has_gone_to_another_tree_is_the_next_all_the_same() {
    let mut world = full(1, Limits { host_slots: 1, ..Limits::default() });
    world.others_change(1, 1);
    let [first, second] = [(); 2].map(|()| world.spawn_piece());
    world.others_change_in(pool("test"), 0, 0);
    assert_eq!((world.holding(), world.kept()), (vec![], 1), "the first waits for the host");
    world.pause(true);
    world.others_change_in(pool("test"), 1, 1);
    world.pause(false);
    world.others_change(0, 0);
    assert_eq!(world.holding(), [], "both wait for the account");
    world.others_change_in(pool("test"), 0, 0);
    assert_eq!(world.holding(), [first]);
    world.finish(first);
    assert_eq!(world.holding(), [second]);
}

#[test]
fn a_tree_in_which_nothing_may_start_keeps_no_slot() {
    let mut world = tree(1, Limits::default());
    let [first, second] = [(); 2].map(|()| world.spawn_piece());
    world.step(Input::Hold(true));
    world.finish(first);
    assert_eq!((world.holding(), world.kept()), (vec![], 0));
    world.step(Input::Hold(false));
    assert_eq!(world.holding(), [second]);
}

#[test]
fn a_tree_of_which_a_run_works_keeps_no_slot_for_which_another_one_waits() {
    let mut world = tree(2, Limits { host_slots: 1, ..Limits::default() });
    let [works, waits] = [(); 2].map(|()| world.spawn_piece());
    assert_eq!((world.holding(), world.kept()), (vec![works], 2), "one waits for the host alone");
    world.others_change_in(pool("test"), 0, 1);
    assert_eq!((world.holding(), world.kept()), (vec![works], 1));
    world.finish(works);
    assert_eq!(world.holding(), [waits], "one is due to the tree");
}

#[test]
fn a_slot_that_a_run_holds_is_not_kept_from_others() {
    let mut world = tree(1, Limits { max_concurrent: 1, ..Limits::default() });
    let works = world.spawn_piece();
    world.others_change_in(pool("test"), 0, 1);
    world.advance(600_000);
    world.spawn_piece();
    let busy = world.other_piece();
    world.finish(works);
    world.others_change_in(pool("test"), 1, 1);
    assert_eq!(world.holding(), [busy], "the account is full");
    let told = |world: &World| (world.times("account_full"), world.times("account_free"));
    assert_eq!(told(&world), (1, 0));
    world.others_change_in(pool("test"), 0, 0);
    assert_eq!(told(&world), (1, 1), "the run waits for the tree alone");
    world.others_change_in(pool("test"), 0, 1);
    world.advance(59_999);
    assert_eq!(world.kept(), 1, "for a minute from here on");
    world.advance(1);
    assert_eq!(world.kept(), 0);
}

#[test]
fn while_the_pool_of_budget_holds_up_the_next_piece_one_slot_is_claimed() {
    let limits = Limits { budget_tokens: Some(1_000), pools: true, ..Limits::default() };
    let mut world = full(3, limits);
    let pieces = [(); 4].map(|()| world.spawn_piece());
    world.others_change_in(pool("test"), 2, 2);
    let wants = |world: &World| world.hosts[&pool("test")].wants();
    assert_eq!((world.holding(), wants(&world)), (vec![pieces[0]], 4), "three stand in its line");
    let last = world.spawn_piece();
    assert_eq!(wants(&world), 2, "the last one has asked for budget, and there is none");
    world.use_tokens(pieces[0], 10);
    world.finish(pieces[0]);
    world.others_change_in(pool("test"), 0, 0);
    assert_eq!(world.holding().len(), 3, "two have ended, so four might work at once");
    assert!(world.machine.queued() == 1 && world.status(last).is_none());
}

#[test]
fn a_run_in_line_starts_once_memory_is_short_for_no_other_one() {
    let mut world = tree(1, Limits { memory_percent: 30, ..Limits::default() });
    world.available = Some(100);
    let [first, second] = [(); 2].map(|()| world.spawn_piece());
    world.available = Some(35);
    world.advance(60_000);
    let other = world.other_piece();
    assert_eq!(world.holding(), [first], "one waits for its account, the other one for memory");
    world.cancel(other, Reach::Subtree, CancelledBy::Operator);
    world.finish(first);
    assert_eq!(world.holding(), [second]);
}

/// Before it is known how many slots an account has, as many runs stand in its line as could start, and the others in the queue of the tree.
#[test]
fn until_the_first_grant_no_more_runs_stand_in_the_line_than_could_start() {
    let limits = Limits { account_slots: 4, max_concurrent: 3, ..Limits::default() };
    let mut world = World::quiet(limits);
    world.claims = Some(Vec::new());
    let pieces = [(); 6].map(|()| world.spawn_piece());
    assert_eq!((world.holding(), world.machine.queued()), (Vec::new(), 6));
    assert_eq!(world.machine.account_slots.in_line_count(), 3);
    let (of, claim) = world.claims.iter().flatten().last().cloned().expect("it has claimed some");
    assert_eq!(claim.wants, 3);
    world.step(Input::PoolGives(of, HostGrant { more: 3, due: 4, claim: claim.number }));
    assert_eq!((world.holding(), world.machine.queued()), (pieces[..3].to_vec(), 3));
    assert_eq!(world.machine.account_slots.in_line_count(), 0);
    for next in 3..6 {
        world.finish(pieces[next - 3]);
        assert_eq!(world.holding(), pieces[next - 2..=next], "in the order in which they came");
    }
    world.crash();
}
