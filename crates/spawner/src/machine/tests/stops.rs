//! The end of a root that holds pieces when everything is stopped.

use offshoot_model::{
    CancelledBy, Ending, EventKind, Origin, Reason, RefusalCode, RunStatus, SpawnRequest,
};

use super::super::{Input, Outcome, Reach, RunIndex};
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
    assert_eq!(world.machine.runs[RunIndex::ROOT].status(), expected, "{what}");
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

/// Ends a run with these diagnostics and last words, and returns the diagnostics that are on record.
fn said(reason: Reason, is_stopped: bool, diagnostics: Option<&str>) -> Option<String> {
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    if is_stopped {
        world.cancel(run, Reach::Subtree, CancelledBy::Operator);
    }
    let ending = Ending { diagnostics: diagnostics.map(str::to_owned), ..Ending::of(reason) };
    let last_words = Some("half is done".to_owned());
    let outcome = Outcome { last_words, ..Outcome::from(ending) };
    world.actors.remove(&run).expect("it runs");
    world.step(Input::Finished { run, outcome: Box::new(outcome) });
    let said = world.record.iter().rev().find_map(|event| match &event.kind {
        EventKind::Ended(ending) => Some(ending.diagnostics.clone()),
        _ => None,
    });
    said.expect("it has ended")
}

#[test]
fn what_a_run_said_last_is_kept_where_something_else_ended_it() {
    let check = |reason: Reason, is_stopped, diagnostics, expected: Option<&str>| {
        let found = said(reason.clone(), is_stopped, diagnostics);
        assert_eq!(found.as_deref(), expected, "{reason}, stopped: {is_stopped}");
    };
    let (term, own) = (Reason::Signal { signal: 15 }, Reason::ExitCode { code: 1 });
    check(term.clone(), true, None, Some("half is done"));
    check(own.clone(), true, Some("a\nb"), Some("a\nb\nhalf is done"));
    check(term.clone(), true, Some("a\nhalf is done"), Some("a\nhalf is done"));
    check(term, false, None, Some("half is done"));
    check(own, false, Some("a"), Some("a"));
    check(Reason::Completed { exit_code: None }, true, None, None);
}

#[test]
fn a_run_that_is_to_stop_asks_for_nothing_more() {
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    world.cancel(run, Reach::Only, CancelledBy::Operator);
    assert_eq!(world.ask(run), Err(RefusalCode::CallerEnded));
    // One that is to stop together with the whole tree neither.
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    world.stop_all(false);
    assert_eq!(world.ask(run), Err(RefusalCode::CallerEnded));
}

#[test]
fn a_child_that_will_not_stand_in_line_is_admitted_where_its_own_level_has_room() {
    let mut world = World::quiet(Limits { per_level: Some(1), ..Limits::default() });
    let parent = world.spawn_piece();
    let at_once = SpawnRequest { no_queue: true, ..SpawnRequest::default() };
    let child = world.spawn(parent, Origin::Agent, at_once.clone()).expect("its level is empty");
    assert_eq!(world.holding(), [parent, child]);
    let refused = world.spawn(parent, Origin::Agent, at_once);
    assert_eq!(refused, Err(RefusalCode::Busy), "and full now");
}

#[test]
fn a_tree_that_is_held_starts_nothing() {
    let mut world = World::one_slot();
    world.step(Input::Hold(true));
    let (first, second) = (world.spawn_piece(), world.spawn_piece());
    assert!(world.holding().is_empty());
    world.step(Input::Hold(false));
    assert_eq!(world.holding(), [first]);
    world.step(Input::Hold(true));
    world.finish(first);
    assert!(world.holding().is_empty(), "what runs goes on, and nothing follows it");
    world.step(Input::Hold(false));
    assert_eq!(world.holding(), [second]);
}
