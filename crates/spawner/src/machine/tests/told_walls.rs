//! Walls of quotas that other trees of the user have met.

use std::time::Duration;

use offshoot_model::Account;

use super::super::RunIndex;
use super::limits::Limits;
use super::world::World;

/// A tree with this many pieces.
fn tree(pieces: usize) -> (World, Vec<RunIndex>) {
    let mut world = World::quiet(Limits { resumes: true, ..Limits::default() });
    let runs = (0..pieces).map(|_| world.spawn_piece()).collect();
    (world, runs)
}

/// Another tree has met a wall of so many seconds.
fn told(world: &mut World, seconds: u64) {
    let until = world.now.plus(Duration::from_secs(seconds));
    world.hear_of_wall(Account::clone(&world.facts.account), until);
}

#[test]
fn a_wall_that_is_over_before_a_run_wants_to_start_is_none() {
    let (mut world, _) = tree(0);
    told(&mut world, 30);
    world.advance(30_000);
    let run = world.spawn_piece();
    assert_eq!((world.times("parked"), world.holding()), (0, vec![run]));
}

#[test]
fn the_own_wall_of_a_tree_counts_as_long_as_it_stands() {
    let (mut world, runs) = tree(1);
    let until = world.now.plus(Duration::from_secs(60));
    world.meet_wall(runs[0], until);
    told(&mut world, 600);
    world.spawn_piece();
    assert_eq!((world.times("parked"), world.holding()), (1, Vec::new()));
    // No run probes an account of which another tree knows better.
    world.advance(72_000);
    assert_eq!((world.times("parked"), world.holding()), (2, Vec::new()));
    world.advance(600_000);
    assert_eq!(world.holding().len(), 1, "one probe");
}

#[test]
fn a_supervisor_that_is_told_of_a_wall_before_it_goes_on_starts_no_run_of_the_account() {
    let (mut world, _) = tree(2);
    let account = Account::clone(&world.facts.account);
    let until = world.now.plus(Duration::from_secs(60));
    world.ledger.hears_of_wall(&account);
    world.die_and(|recall| recall.machine_mut().hear_of_wall(account, None, until));
    while world.claim() {}
    assert_eq!((world.times("parked"), world.holding()), (1, Vec::new()));
    world.advance(72_000);
    assert_eq!(world.holding().len(), 1, "one probe");
}
