//! The end of a root that holds pieces when everything is stopped.

use offshoot_model::{CancelledBy, Reason, RunStatus};

use super::super::{Reach, RunIndex};
use super::limits::Limits;
use super::world::World;

const CANCELLED: Reason = Reason::Cancelled { by: CancelledBy::Operator };

/// Two pieces of which one is done; then this happens, and the owner makes an answer of what there is.
#[track_caller]
fn check(what: &str, happens: impl FnOnce(&mut World, RunIndex), expected: RunStatus) {
    let mut world = World::quiet(Limits::default());
    let (done, other) = (world.spawn_piece(), world.spawn_piece());
    world.finish(done);
    happens(&mut world, other);
    world.close();
    assert_eq!(world.machine.runs[0].status(), expected, "{what}");
}

#[test]
fn a_root_is_cancelled_where_pieces_were_at_work() {
    let stopped = |world: &mut World, piece| {
        world.stop_all(false);
        world.finish_because(piece, CANCELLED);
    };
    check("Ctrl-C", stopped, RunStatus::Cancelled);
    let cancelled = |world: &mut World, piece| {
        world.cancel(RunIndex::ROOT, Reach::Subtree, CancelledBy::Operator);
        world.finish_because(piece, CANCELLED);
    };
    check("a cancel of the root", cancelled, RunStatus::Cancelled);
    let late = |world: &mut World, piece| {
        world.finish(piece);
        world.stop_all(false);
    };
    check("Ctrl-C when all was done", late, RunStatus::Completed);
    let spared = |world: &mut World, piece| {
        world.cancel(piece, Reach::Subtree, CancelledBy::EarlyAnswer);
        world.stop_all(false);
        world.finish_because(piece, CANCELLED);
    };
    check("Ctrl-C when the answer stood", spared, RunStatus::Completed);
}
