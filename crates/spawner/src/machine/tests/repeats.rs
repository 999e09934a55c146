//! One tool, used with the same input again and again.

use offshoot_model::{EventKind, Reason, RunStatus, ToolUse};
use offshoot_runtime::RunEvent;

use super::assert_proven;
use super::limits::Limits;
use super::world::World;

/// The warnings on record.
fn warnings(world: &World) -> Vec<(String, u32)> {
    let of = |kind: &EventKind| match kind {
        EventKind::Repeats { tool, times } => Some((tool.to_string(), *times)),
        _ => None,
    };
    world.ledger.events.iter().filter_map(|event| of(&event.kind)).collect()
}

#[test]
fn a_tool_used_ten_times_in_a_row_is_named_once_and_stops_where_it_is_to() {
    for stops_repeats in [false, true] {
        let mut world = World::quiet(Limits { stops_repeats, ..Limits::default() });
        let (run, neighbour) = (world.spawn_piece(), world.spawn_piece());
        for _ in 0..9 {
            world.use_tool(run);
            world.use_tool(neighbour);
        }
        assert_eq!(warnings(&world), []);
        world.use_tool(run);
        assert_eq!(warnings(&world), [("Read".to_owned(), 10)]);
        assert_eq!(world.asked_to_stop(), if stops_repeats { vec![run] } else { vec![] });
        world.use_tool(run);
        assert_eq!(warnings(&world).len(), 1, "as long as it uses no other, once");
        world.finish(neighbour);
        assert_eq!(world.status(neighbour), Some(RunStatus::Completed), "it has stopped before");
        match stops_repeats {
            true => {
                world.finish_because(run, Reason::Signal { signal: 15 });
                assert_eq!(world.status(run), Some(RunStatus::Failed));
                let reason = Reason::Repeated { tool: "Read".into(), times: 10 };
                let ended =
                    |kind: &EventKind| matches!(kind, EventKind::Ended(it) if it.reason == reason);
                assert!(world.ledger.events.iter().any(|event| ended(&event.kind)));
            }
            false => world.finish(run),
        }
        world.close();
        assert_proven(&world, 0);
    }
}

#[test]
fn another_input_another_tool_and_one_that_is_not_known_begin_anew() {
    let mut world = World::quiet(Limits { stops_repeats: true, ..Limits::default() });
    let run = world.spawn_piece();
    for other in [ToolUse::new("Read", &"b"), ToolUse::new("Grep", &"a"), ToolUse::named("Read")] {
        (0..9).for_each(|_| world.use_tool(run));
        world.tells(run, RunEvent::ToolUsed(other));
    }
    (0..50).for_each(|_| world.tells(run, RunEvent::ToolUsed(ToolUse::named("Read"))));
    (0..9).for_each(|_| world.use_tool(run));
    assert_eq!(warnings(&world), []);
    world.use_tool(run);
    assert_eq!(warnings(&world).len(), 1);
    world.finish(run);
    world.close();
    assert_proven(&world, 0);
}

#[test]
fn another_attempt_begins_anew() {
    let limits = Limits { stops_repeats: true, retries: 1, resumes: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    (0..9).for_each(|_| world.use_tool(run));
    world.finish_because(run, Reason::RuntimeError { message: "gone".into(), retryable: true });
    world.advance(10_000);
    (0..9).for_each(|_| world.use_tool(run));
    assert_eq!(warnings(&world), []);
    world.finish(run);
    world.close();
    assert_proven(&world, 0);
}
