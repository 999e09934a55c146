//! Runs of an account whose service had too much to do, or answers again after the reset of a quota.

use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_model::{Account, CancelledBy, EventKind};

use super::super::{Input, Reach, RunIndex};
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::World;

/// A tree of so many pieces that may be interrupted and tried again.
fn world(max_concurrent: u32, pieces: usize) -> (World, Vec<RunIndex>) {
    let limits = Limits { max_concurrent, retries: 1, resumes: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let runs = (0..pieces).map(|_| world.spawn_piece()).collect();
    (world, runs)
}

fn bounds(world: &World) -> Vec<Option<u32>> {
    let bound = |kind: &EventKind| match kind {
        EventKind::Paced { most, .. } => Some(*most),
        _ => None,
    };
    world.record.iter().filter_map(|event| bound(&event.kind)).collect()
}

/// Ends all that is left, and checks that no bound is left, and that the record proves what was done.
fn end(mut world: World) {
    loop {
        while let Some(&run) = world.holding().first() {
            world.finish(run);
        }
        world.advance(60_000);
        if world.holding().is_empty() {
            break;
        }
    }
    assert!(matches!(bounds(&world).last(), None | Some(None)), "{:?}", bounds(&world));
    assert_eq!(Audit::of(&world.ledger.events).breaches, []);
}

#[test]
fn after_the_reset_of_a_quota_runs_follow_one_by_one() {
    let (mut world, runs) = world(6, 8);
    let until = world.now.plus(Duration::from_secs(60));
    runs[..6].iter().for_each(|&run| world.meet_wall(run, until));
    world.advance(72_000);
    let [probe] = world.holding()[..] else { panic!("one probe at the reset") };
    world.use_tokens(probe, 1);
    let mut at_once = vec![world.holding().len()];
    for answers in 2..7 {
        world.holding().into_iter().for_each(|run| world.use_tokens(run, answers));
        at_once.push(world.holding().len());
    }
    assert_eq!(at_once, [2, 3, 4, 5, 6, 6], "one more each time that all are answered");
    assert_eq!(bounds(&world), [Some(2), Some(3), Some(4), Some(5), None]);
    end(world);
}

#[test]
fn a_service_that_has_too_much_to_do_is_asked_by_half_as_many() {
    let (mut world, runs) = world(8, 16);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!((bounds(&world), world.holding().len()), (vec![Some(4)], 7));
    world.finish_because(runs[1], OVERLOADED);
    assert_eq!(bounds(&world).len(), 1, "it began before the bound");
    world.finish(runs[2]);
    world.finish(runs[3]);
    assert_eq!(world.holding(), runs[4..8], "none starts before fewer than four work");
    world.finish(runs[4]);
    let young = world.holding()[3];
    assert_eq!((world.holding().len(), young), (4, runs[8]));
    world.finish(runs[5]);
    assert_eq!((bounds(&world), world.holding().len()), (vec![Some(4), Some(5)], 5));
    // One that began under the bound.
    world.finish_because(young, OVERLOADED);
    assert_eq!(bounds(&world), [Some(4), Some(5), Some(2)]);
    end(world);
}

#[test]
fn a_fault_of_the_service_is_no_answer_whatever_was_used_before() {
    let (mut world, runs) = world(6, 9);
    world.finish_because(runs[0], OVERLOADED);
    world.finish(runs[1]);
    world.finish(runs[2]);
    assert_eq!((bounds(&world), world.holding().len()), (vec![Some(3)], 3));
    // What it has used is told with its end.
    world.actors.get_mut(&runs[3]).expect("it runs").used = 5;
    world.finish_because(runs[3], OVERLOADED);
    assert_eq!(bounds(&world), [Some(3)], "two of three were answered");
    world.finish(runs[4]);
    assert_eq!(bounds(&world), [Some(3), Some(4)]);
    end(world);
}

#[test]
fn a_run_alone_has_no_bound() {
    let (mut world, runs) = world(8, 1);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!(bounds(&world), []);
    world.advance(2_400);
    end(world);
    // Nor a tree that allows no more than two at once.
    let (mut world, runs) = world_of_two();
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!(bounds(&world), []);
    world.advance(2_400);
    end(world);
}

fn world_of_two() -> (World, Vec<RunIndex>) {
    world(2, 4)
}

#[test]
fn parents_do_not_keep_their_children_from_starting() {
    let (mut world, runs) = world(4, 5);
    world.finish_because(runs[3], OVERLOADED);
    assert_eq!((bounds(&world), world.holding()), (vec![Some(2)], runs[..3].to_vec()));
    let [first, second] = [runs[0], runs[1]].map(|run| world.ask(run).expect("it is admitted"));
    assert_eq!(world.holding(), [runs[0], runs[1], runs[2], first], "two work, of four that hold");
    world.finish(first);
    assert!(world.holding().contains(&second), "it follows: {:?}", world.holding());
    world.finish(second);
    end(world);
}

/// A child that waits for the pace counts among those for whose sake a silent parent lends its slot.
#[test]
fn silent_parents_lend_their_slots_to_children_that_wait_for_the_pace() {
    let (mut world, runs) = world(5, 6);
    world.finish_because(runs[4], OVERLOADED);
    assert_eq!((bounds(&world), world.holding()), (vec![Some(2)], runs[..4].to_vec()));
    // The requests show that the service answers: there is room for one more, and the child of the second still waits.
    let children = [0, 0, 1, 2].map(|at| world.ask(runs[at]).expect("it is admitted"));
    let holding = world.holding();
    assert_eq!(holding, [runs[0], runs[1], runs[2], runs[3], children[0]], "one has room");
    for parent in [runs[3], children[0]] {
        world.ask(parent).expect("it is admitted");
    }
    assert_eq!(world.holding(), holding, "all slots are taken by parents");
    assert!(world.machine.aside().any(|run| run == children[2]));
    world.advance(31_000);
    assert_eq!(world.times("stall_lent"), 1);
}

#[test]
fn a_bound_is_on_record_for_the_next_supervisor() {
    let (mut world, runs) = world(6, 8);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!((bounds(&world), world.holding().len()), (vec![Some(3)], 5));
    world.crash();
    assert_eq!(world.holding().len(), 3, "as many as the bound says");
    assert_eq!(bounds(&world).len(), 1);
    end(world);
}

#[test]
fn pressure_on_other_trees_halves_the_runs_of_this_one_once_for_all_that_is_met_together() {
    let (mut world, runs) = world(8, 16);
    let account = Account::of_runtime("test");
    let hears = |world: &mut World, seconds: u64| {
        let at = world.now;
        world.advance(seconds * 1_000);
        world.step(Input::PressureTold { account: account.clone(), at });
    };
    hears(&mut world, 10);
    assert_eq!(bounds(&world), [], "it was too long ago");
    hears(&mut world, 1);
    hears(&mut world, 9);
    assert_eq!((bounds(&world), world.holding().len()), (vec![Some(4)], 8), "what runs goes on");
    hears(&mut world, 1);
    assert_eq!(bounds(&world), [Some(4), Some(2)]);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!((world.told_pressure, bounds(&world).len()), (0, 2), "all trees know");
    world.advance(10_000);
    world.finish_because(runs[1], OVERLOADED);
    assert_eq!(world.told_pressure, 0, "it began before the bound");
    runs[2..8].iter().for_each(|&run| world.finish(run));
    let young = world.holding();
    assert!(young.len() > 1 && young.iter().all(|run| !runs[..8].contains(run)), "{young:?}");
    young[..2].iter().for_each(|&run| world.finish_because(run, OVERLOADED));
    assert_eq!(world.told_pressure, 1, "once for both");
    let other = Account::of_runtime("nothing of it runs here");
    let before = bounds(&world).len();
    world.step(Input::PressureTold { account: other, at: world.now });
    assert_eq!(bounds(&world).len(), before);
    end(world);
}

#[test]
fn pressure_of_a_moment_to_come_is_not_heard() {
    let (mut world, _) = world(8, 16);
    let account = Account::clone(&world.facts.account);
    let at = world.now.plus(Duration::from_micros(1));
    world.step(Input::PressureTold { account: account.clone(), at });
    assert_eq!(bounds(&world), [], "the clock was set back since");
    world.step(Input::PressureTold { account, at: world.now });
    assert_eq!(bounds(&world), [Some(4)]);
    end(world);
}

#[test]
fn pressure_that_another_tree_tells_of_bounds_nothing_where_none_is_at_work_or_none_in_line() {
    let hear = |world: &mut World| {
        let account = Account::clone(&world.facts.account);
        world.hear_of_pressure(account);
    };
    let (mut working, runs) = world(4, 4);
    hear(&mut working);
    assert_eq!((bounds(&working), working.holding()), (vec![], runs));
    let mut in_line = World::quiet(Limits { max_concurrent: 4, ..Limits::default() });
    in_line.pause(true);
    (0..2).for_each(|_| _ = in_line.spawn_piece());
    hear(&mut in_line);
    assert_eq!(bounds(&in_line), []);
}

#[test]
fn pressure_that_is_told_again_is_recorded_where_it_lowers_the_bound() {
    let (mut world, _) = world(4, 8);
    for _ in 0..4 {
        let account = Account::clone(&world.facts.account);
        world.hear_of_pressure(account);
        world.advance(10_000);
    }
    let lowered = bounds(&world);
    assert!(lowered.is_sorted_by(|before, after| before > after), "{lowered:?}");
    end(world);
}

#[test]
fn a_bound_ends_where_none_waits_for_it_any_more() {
    let (mut world, runs) = world(4, 6);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!(bounds(&world), [Some(2)]);
    for run in [runs[4], runs[5], runs[0]] {
        world.cancel(run, Reach::Subtree, CancelledBy::Operator);
    }
    assert_eq!(world.holding(), runs[1..4]);
    assert_eq!(bounds(&world), [Some(2), None]);
}

#[test]
fn after_a_reset_no_bound_is_set_where_none_is_in_line_or_the_tree_allows_no_more() {
    for (slots, pieces) in [(6, 1), (2, 4)] {
        let (mut world, _) = world(slots, pieces);
        let until = world.now.plus(Duration::from_secs(60));
        world.holding().into_iter().for_each(|run| world.meet_wall(run, until));
        world.advance(72_000);
        let [probe] = world.holding()[..] else { panic!("one probe at the reset") };
        world.use_tokens(probe, 1);
        assert_eq!((bounds(&world), world.holding().len()), (vec![], pieces.min(2)));
        end(world);
    }
}
