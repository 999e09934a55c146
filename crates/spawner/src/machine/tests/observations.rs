//! Tasks that runs do themselves.

use super::super::Input;
use super::limits::Limits;
use super::world::World;

impl World {
    /// A run begins with a task itself, if it may.
    fn observe(&mut self, run: super::super::RunIndex) -> Option<u32> {
        let number = self.machine.next_observation(run)?;
        let task_type = "sum".parse().expect("a type");
        self.step(Input::Observes { run, number, task_type });
        Some(number)
    }
}

#[test]
fn an_observation_is_open_until_it_is_closed_or_its_turn_is_over() {
    let mut world = World::quiet(Limits { resumes: true, ..Limits::default() });
    let run = world.spawn_piece();
    let numbers = [(); 3].map(|()| world.observe(run));
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
    world.step(Input::Observed { run, number: 2, success: false });
    let open = |world: &World| {
        (0..5).filter(|&number| world.machine.is_observing(run, number)).collect::<Vec<_>>()
    };
    assert_eq!(open(&world), [1, 3]);
    let child = world.child_of(run);
    world.end_turn(run);
    assert!(open(&world).is_empty(), "the turn is over");
    world.finish(child);
    assert_eq!(world.observe(run), Some(4), "numbers are given once");
    assert_eq!(open(&world), [4]);
    world.crash();
    assert!(open(&world).is_empty(), "the attempt that had it in its hands is gone");
    assert_eq!(world.observe(run), Some(5));
    world.finish(run);
    assert_eq!(world.observe(run), None, "it is over");
    assert_eq!((world.times("observation_opened"), world.times("observation_closed")), (5, 1));
}

#[test]
fn a_run_that_loses_count_opens_no_more() {
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    let opened = (0..1000).filter(|_| world.observe(run).is_some()).count();
    assert_eq!(opened, 100);
    world.advance(5_000);
    assert_eq!(world.observe(run), None, "so many are open");
    for number in 1..=100 {
        world.step(Input::Observed { run, number, success: true });
    }
    let more = (0..1000).filter(|_| {
        let number = world.observe(run);
        number.map(|number| world.step(Input::Observed { run, number, success: true })).is_some()
    });
    assert_eq!(more.count(), 5, "as many as a record should grow by in that time");
}

#[test]
fn a_task_that_a_run_begins_or_ends_itself_is_a_sign_of_life() {
    let mut world = World::quiet(Limits { idle_timeout_seconds: 10, ..Limits::default() });
    let run = world.spawn_piece();
    world.advance(8_000);
    let number = world.observe(run).expect("it runs");
    world.advance(8_000);
    world.step(Input::Observed { run, number, success: true });
    world.advance(9_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [run]);
}
