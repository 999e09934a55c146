//! Runs whose account has used up a quota.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Account, CancelledBy, Ending, EventKind, Reason, RequestEnding, RunStatus, Timestamp,
};
use offshoot_policy::RuntimeFacts;
use offshoot_runtime::RunEvent;

use super::super::{Effect, Input, Reach, RunIndex};
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::World;
use crate::model_request::WallReset;

fn world(limits: Limits) -> World {
    World::quiet(Limits { resumes: true, ..limits })
}

fn in_seconds(world: &World, seconds: u64) -> Timestamp {
    world.now.plus(Duration::from_secs(seconds))
}

/// A run meets a wall of so many seconds. The probe comes at most a fifth later.
fn wall(world: &mut World, run: RunIndex, seconds: u64) {
    let until = in_seconds(world, seconds);
    world.meet_wall(run, until);
}

fn attempts(world: &World) -> Vec<(u32, bool)> {
    let attempt = |kind: &EventKind| match kind {
        EventKind::Resumed { attempt, continues, .. } => Some((*attempt, *continues)),
        _ => None,
    };
    world.record.iter().filter_map(|event| attempt(&event.kind)).collect()
}

#[test]
fn runs_of_the_account_wait_for_the_reset_and_hold_no_slot() {
    let mut world = world(Limits { max_concurrent: 2, ..Limits::default() });
    let runs: Vec<RunIndex> = (0..4).map(|_| world.spawn_piece()).collect();
    wall(&mut world, runs[0], 60);
    assert_eq!(world.holding(), [runs[1]], "no other one takes the slot that came free");
    wall(&mut world, runs[1], 60);
    assert!(world.holding().is_empty());
    assert_eq!(world.times("parked"), 1, "it is the same wall");
    world.advance(59_999);
    assert!(world.holding().is_empty());
    world.advance(12_001);
    let [probe] = world.holding()[..] else { panic!("one probe at the reset") };
    world.progress(probe);
    assert_eq!(world.holding(), [probe], "what it says is no proof");
    world.use_tokens(probe, 7);
    assert_eq!(world.holding().len(), 2, "the others follow its first use");
    assert_eq!(world.times("unparked"), 1);
    for _ in 0..4 {
        let run = world.holding()[0];
        world.finish(run);
        assert_eq!(world.status(run), Some(RunStatus::Completed));
    }
}

#[test]
fn a_clock_that_jumps_at_a_reset_lets_one_probe_go() {
    let hour = Duration::from_secs(3_600);
    for jumps_back in [false, true] {
        let mut world = world(Limits { max_concurrent: 4, ..Limits::default() });
        let runs: Vec<RunIndex> = (0..4).map(|_| world.spawn_piece()).collect();
        runs.iter().for_each(|run| wall(&mut world, *run, 60));
        world.advance(59_999);
        assert!(world.holding().is_empty());
        if jumps_back {
            world.set_back(hour);
            assert!(world.holding().is_empty(), "the reset is a moment of the clock");
            world.advance(59_999);
            assert!(world.holding().is_empty());
            // The service measures by its own clock: as soon as this one shows the moment again, the tree goes on.
            world.advance(3_600_000 + 12_000);
        } else {
            world.jump(world.now.plus(hour));
        }
        let [probe] = world.holding()[..] else { panic!("one probe: {:?}", world.holding()) };
        world.advance(1_000);
        assert_eq!(world.holding(), [probe], "the others wait for it, however late it is");
        world.use_tokens(probe, 7);
        while let Some(&run) = world.holding().first() {
            world.finish(run);
        }
        assert!(runs.iter().all(|run| world.status(*run) == Some(RunStatus::Completed)));
        let found = offshoot_audit::Audit::of(&world.ledger.events);
        assert_eq!(found.breaches, [], "it jumps back: {jumps_back}");
    }
}

#[test]
fn a_wall_uses_up_no_attempt_and_opens_no_breaker() {
    let limits = Limits { max_concurrent: 1, breaker_failures: 1, ..Limits::default() };
    let mut world = world(Limits { retries: 1, ..limits });
    let run = world.spawn_piece();
    for _ in 0..5 {
        wall(&mut world, run, 30);
        world.advance(36_000);
        assert_eq!(world.holding(), [run]);
    }
    assert!(world.told_of_breakers().is_empty());
    world.finish_because(run, OVERLOADED);
    world.advance(2_400);
    assert_eq!(world.holding(), [run], "the one retry is still there");
    let expected: Vec<(u32, bool)> = (2..8).map(|attempt| (attempt, true)).collect();
    assert_eq!(attempts(&world), expected);
    world.finish(run);
}

#[test]
fn a_probe_that_meets_the_wall_again_waits_with_the_others() {
    let mut world = world(Limits::default());
    let runs: Vec<RunIndex> = (0..3).map(|_| world.spawn_piece()).collect();
    runs.iter().for_each(|&run| wall(&mut world, run, 60));
    world.advance(72_000);
    let [probe] = world.holding()[..] else { panic!("one probe") };
    wall(&mut world, probe, 100);
    world.advance(99_999);
    assert!(world.holding().is_empty());
    world.advance(20_001);
    assert_eq!(world.holding().len(), 1, "one more probe");
}

#[test]
fn a_probe_that_proves_nothing_is_followed_by_another() {
    let mut world = world(Limits::default());
    let runs: Vec<RunIndex> = (0..3).map(|_| world.spawn_piece()).collect();
    runs.iter().for_each(|&run| wall(&mut world, run, 60));
    world.advance(72_000);
    let [probe] = world.holding()[..] else { panic!("one probe") };
    world.cancel(probe, Reach::Only, CancelledBy::Operator);
    world.finish_because(probe, Reason::Signal { signal: 15 });
    let [next] = world.holding()[..] else { panic!("the next probe") };
    assert_ne!(next, probe);
    world.finish(next);
    assert_eq!(world.holding().len(), 1, "its end is a sign");
    assert_eq!(world.times("unparked"), 1);
}

#[test]
fn a_probe_that_asks_for_a_child_does_not_wait_for_itself() {
    let mut world = world(Limits { max_concurrent: 1, ..Limits::default() });
    let run = world.spawn_piece();
    wall(&mut world, run, 60);
    world.advance(72_000);
    let child = world.child_of(run);
    world.wait(run);
    assert_eq!(world.holding(), [child]);
}

#[test]
fn what_cannot_go_on_fails_for_the_quota() {
    // A child of an agent is not repeated, and this runtime cannot continue it.
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    wall(&mut world, child, 60);
    assert_eq!(world.status(child), Some(RunStatus::Failed));
    let ended = world.record.iter().rev().find_map(|event| match &event.kind {
        EventKind::Ended(ending) => Some(ending.reason.code()),
        _ => None,
    });
    assert_eq!(ended, Some("quota"));
    // A piece is repeated, unless it has done something that a repetition would do again.
    let piece = world.spawn_piece();
    wall(&mut world, parent, 60);
    assert_eq!(world.status(parent), Some(RunStatus::Failed), "it has asked for a child");
    assert!(world.holding().is_empty() && world.status(piece).is_none());
    world.advance(72_000);
    assert_eq!(world.holding(), [piece]);
    wall(&mut world, piece, 60);
    assert_eq!(attempts(&world), [(2, false)]);
}

#[test]
fn a_refusal_without_a_reset_is_not_waited_for() {
    let mut world = world(Limits::default());
    let run = world.spawn_piece();
    world.finish_because(run, Reason::Quota { window: None, until: None });
    assert_eq!(world.status(run), Some(RunStatus::Failed));
    assert_eq!(world.times("parked"), 0);
}

#[test]
fn on_wall_fail_starts_nothing_and_fails_at_once() {
    let limits = Limits { max_concurrent: 1, fails_at_walls: true, ..Limits::default() };
    let mut world = world(limits);
    let runs: Vec<RunIndex> = (0..3).map(|_| world.spawn_piece()).collect();
    wall(&mut world, runs[0], 60);
    for run in runs {
        assert_eq!(world.status(run), Some(RunStatus::Failed));
    }
    assert_eq!(world.times("starting"), 1);
    assert_eq!(attempts(&world), []);
    let late = world.spawn_piece();
    assert_eq!(world.status(late), Some(RunStatus::Failed));
    world.advance(72_000);
    let after = world.spawn_piece();
    assert_eq!(world.holding(), [after]);
}

#[test]
fn other_accounts_go_on() {
    let mut world = world(Limits::default());
    let run = world.spawn_piece();
    wall(&mut world, run, 60);
    let account = Account { credential: Some("ab".into()), ..Account::of_runtime("another") };
    let (name, account) = ("another".into(), Arc::new(account));
    world.facts = Arc::new(RuntimeFacts { name, account, ..(*world.facts).clone() });
    let other = world.spawn_piece();
    assert_eq!(world.holding(), [other]);
}

#[test]
fn a_tree_that_waits_for_too_long_is_stopped() {
    let mut world = world(Limits { max_park_seconds: 30, ..Limits::default() });
    let (run, queued) = (world.spawn_piece(), world.spawn_piece());
    wall(&mut world, run, 60);
    world.finish(queued);
    world.advance(29_999);
    assert_eq!(world.status(run), None);
    world.advance(1);
    assert_eq!(world.status(run), Some(RunStatus::TimedOut));
    world.close();
    assert_eq!(world.machine.live(), 0);
}

#[test]
fn each_wall_is_waited_for_as_long_as_a_tree_may() {
    let mut world = world(Limits { max_park_seconds: 100, ..Limits::default() });
    let run = world.spawn_piece();
    wall(&mut world, run, 50);
    world.advance(60_000);
    world.use_tokens(run, 1);
    world.advance(20_000);
    wall(&mut world, run, 1_000);
    world.advance(99_999);
    assert_eq!(world.status(run), None, "the first wall is over");
    world.advance(1);
    assert_eq!(world.status(run), Some(RunStatus::TimedOut));
}

#[test]
fn a_reset_that_comes_in_time_stops_nothing() {
    let mut world = world(Limits { max_park_seconds: 100, ..Limits::default() });
    let run = world.spawn_piece();
    wall(&mut world, run, 60);
    world.advance(72_000);
    world.use_tokens(run, 1);
    world.advance(100_000);
    assert_eq!(world.holding(), [run]);
    assert!(world.asked_to_stop().is_empty());
}

#[test]
fn deadlines_count_the_wait_unless_they_spare_it_and_times_of_runs_never_do() {
    let limits = Limits { deadline_seconds: 100, run_timeout_seconds: 20, ..Limits::default() };
    let mut counting = world(limits);
    let run = counting.spawn_piece();
    counting.advance(10_000);
    wall(&mut counting, run, 1_000);
    counting.advance(90_000);
    assert_eq!(counting.status(run), Some(RunStatus::TimedOut));

    let mut sparing = world(Limits { spares_parked: true, ..limits });
    let run = sparing.spawn_piece();
    sparing.advance(10_000);
    wall(&mut sparing, run, 1_000);
    sparing.advance(1_030_000);
    assert_eq!(sparing.holding(), [run], "neither deadline nor time limit has passed");
    sparing.advance(9_999);
    assert!(sparing.asked_to_stop().is_empty());
    sparing.advance(1);
    assert_eq!(sparing.asked_to_stop(), [run], "ten seconds of its twenty were left");
}

#[test]
fn a_new_supervisor_knows_the_wall() {
    let mut world = world(Limits::default());
    let runs: Vec<RunIndex> = (0..3).map(|_| world.spawn_piece()).collect();
    wall(&mut world, runs[0], 60);
    world.crash();
    assert!(world.holding().is_empty(), "also those that had not met it are held back");
    world.advance(59_999);
    assert!(world.holding().is_empty());
    world.advance(12_001);
    let [probe] = world.holding()[..] else { panic!("one probe") };
    world.crash();
    assert_eq!(world.holding().len(), 1, "a probe that was lost has told nothing");
    let again = world.holding()[0];
    world.use_tokens(again, 1);
    assert_eq!(world.holding().len(), 2, "the others follow one by one");
    world.finish(again);
    assert_eq!(world.holding().len(), 2);
    assert!(runs.contains(&probe));
}

#[test]
fn time_without_a_supervisor_does_not_count_as_waiting() {
    let mut world = world(Limits { max_park_seconds: 30, ..Limits::default() });
    let run = world.spawn_piece();
    wall(&mut world, run, 3_600);
    world.advance(20_000);
    world.die(Duration::from_secs(600));
    while world.claim() {}
    world.advance(29_999);
    assert_eq!(world.status(run), None);
    world.advance(1);
    assert_eq!(world.status(run), Some(RunStatus::TimedOut));
}

#[test]
fn another_login_lifts_the_wall() {
    let mut world = world(Limits::default());
    let run = world.spawn_piece();
    wall(&mut world, run, 3_600);
    let account = Account { credential: Some("ab".into()), ..(*world.facts.account).clone() };
    let account = Arc::new(account);
    let facts = Arc::new(RuntimeFacts { account, ..(*world.facts).clone() });
    world.die_and_find(facts);
    while world.claim() {}
    assert_eq!(world.holding(), [run]);
    assert_eq!(world.times("unparked"), 1);
}

/// The wall that another tree has met is one of this one from its next start on, and of no account that this tree does not use.
#[test]
fn a_wall_of_another_tree_is_recorded_when_a_run_wants_to_start() {
    let mut world = world(Limits::default());
    let account = Account::clone(&world.facts.account);
    let told = |world: &mut World, account: Account, seconds: u64| {
        let until = in_seconds(world, seconds);
        world.hear_of_wall(account, until);
    };
    let parked =
        |world: &World| world.record.iter().filter(|event| event.kind.name() == "parked").count();
    let first = world.spawn_piece();
    told(&mut world, Account::of_runtime("elsewhere"), 60);
    told(&mut world, account.clone(), 60);
    told(&mut world, account, 30);
    assert_eq!((parked(&world), world.holding()), (0, vec![first]), "what runs goes on");
    let second = world.spawn_piece();
    assert_eq!((parked(&world), world.holding()), (1, vec![first]), "the later reset counts");
    world.advance(59_000);
    assert_eq!(world.holding(), [first]);
    world.crash();
    assert!(world.holding().is_empty() || world.holding() == [first]);
    world.advance(40_000);
    assert!(world.holding().contains(&second), "the probe");
}

/// The service of a run says that so many percent of a quota are left until then.
fn left(world: &mut World, run: RunIndex, percent: u32, seconds: u64) {
    let until = in_seconds(world, seconds);
    let left = percent * 10_000;
    world.tells(run, RunEvent::QuotaLeft { window: "five_hour".into(), left, until });
}

#[test]
fn what_is_kept_of_a_quota_is_left_alone() {
    let limits = Limits { max_concurrent: 1, keeps_percent: 10, ..Limits::default() };
    let mut world = world(limits);
    let runs: Vec<RunIndex> = (0..3).map(|_| world.spawn_piece()).collect();
    left(&mut world, runs[0], 10, 60);
    assert_eq!(world.times("parked"), 0, "as much as is kept is left");
    left(&mut world, runs[0], 9, 60);
    left(&mut world, runs[0], 8, 60);
    assert_eq!(world.times("parked"), 1);
    assert_eq!(world.holding(), [runs[0]], "what runs goes on");
    world.finish(runs[0]);
    assert_eq!(world.status(runs[0]), Some(RunStatus::Completed));
    assert!(world.holding().is_empty(), "no other one starts");
    world.crash();
    world.advance(59_999);
    assert!(world.holding().is_empty());
    world.advance(12_001);
    assert_eq!(world.holding().len(), 1, "one probe at the reset");
    // The window began anew.
    let probe = world.holding()[0];
    left(&mut world, probe, 95, 18_000);
    world.finish(probe);
    assert_eq!(world.times("unparked"), 1);
    let last = world.holding()[0];
    world.finish(last);
}

#[test]
fn what_is_left_of_a_quota_is_recorded_in_steps() {
    let mut world = world(Limits::default());
    let run = world.spawn_piece();
    for (percent, expected) in [(50, 1), (50, 1), (20, 2), (20, 2)] {
        left(&mut world, run, percent, 3_600);
        assert_eq!(world.times("quota_seen"), expected);
    }
}

/// Other trees are told of a wall by the one that has met it, and of what is kept by none.
#[test]
fn a_wall_is_told_to_other_trees_by_the_one_that_has_met_it() {
    let told = |world: &mut World, input: Input| {
        let mut effects = Vec::new();
        world.machine.step(world.now, input, &mut effects);
        effects.iter().filter(|effect| matches!(effect, Effect::TellWall { .. })).count()
    };
    let limits = Limits { keeps_percent: 10, ..Limits::default() };
    let mut met = world(limits);
    let run = met.spawn_piece();
    let until = Some(in_seconds(&met, 60));
    let ending = Ending::of(Reason::Quota { window: None, until });
    let refused = Input::Finished { run, outcome: Box::new(ending.into()) };
    assert_eq!(told(&mut met, refused), 1);
    let mut kept = world(limits);
    let run = kept.spawn_piece();
    let until = in_seconds(&kept, 60);
    let event = RunEvent::QuotaLeft { window: "five_hour".into(), left: 50_000, until };
    assert_eq!(told(&mut kept, Input::RunEvent { run, attempt: 1, event }), 0);
}

/// A run whose own runtime fails does not go over to one that has to wait for its quota.
#[test]
fn a_fallback_whose_account_is_parked_is_passed_over() {
    let limits = Limits { max_concurrent: 2, falls_back: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let runs = [(); 2].map(|()| world.spawn_piece());
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!(world.times("fell_back"), 1);
    assert_eq!(world.holding(), runs, "it goes on with the other runtime");
    wall(&mut world, runs[0], 60);
    assert_eq!(world.holding(), runs[1..], "there is no third runtime");
    world.finish_because(runs[1], OVERLOADED);
    assert_eq!((world.times("fell_back"), world.status(runs[1])), (1, Some(RunStatus::Failed)));
    // Once the account is free again it may take over.
    world.advance(72_000);
    world.use_tokens(runs[0], 1);
    let late = world.spawn_piece();
    world.finish_because(late, OVERLOADED);
    assert_eq!((world.times("fell_back"), world.holding()), (2, vec![runs[0], late]));
    [runs[0], late].iter().for_each(|run| world.finish(*run));
}

#[test]
fn where_walls_end_runs_no_other_runtime_takes_them_over() {
    let limits = Limits { falls_back: true, fails_at_walls: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    wall(&mut world, run, 60);
    assert_eq!((world.times("fell_back"), world.status(run)), (0, Some(RunStatus::Failed)));
}

#[test]
fn a_run_in_line_that_was_written_to_waits_for_its_own_runtime() {
    let limits = Limits { max_concurrent: 1, falls_back: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let [first, fresh, written_to] = [(); 3].map(|()| world.spawn_piece());
    world.write(written_to).expect("it reads letters");
    wall(&mut world, first, 60);
    assert_eq!(
        world.times("fell_back"),
        2,
        "the first has met the wall, and the next stands in line"
    );
    for _ in 0..2 {
        let [run] = world.holding()[..] else { panic!("there is one slot") };
        world.finish(run);
    }
    assert!([first, fresh].iter().all(|run| world.status(*run).is_some()));
    assert_eq!(
        (world.times("fell_back"), world.holding()),
        (2, vec![]),
        "its letter would be lost"
    );
    world.advance(72_000);
    assert_eq!(world.holding(), [written_to]);
}

/// The last answer to a run said that its quota is used up.
#[test]
fn a_run_that_gives_up_behind_a_wall_failed_for_its_quota() {
    let limits = Limits { metered: true, max_concurrent: 2, ..Limits::default() };
    for is_answered_since in [false, true] {
        let mut world = World::quiet(limits);
        let [run, other, _] = [(); 3].map(|()| world.spawn_piece());
        let (window, reset) = (Some("hour".into()), WallReset::In(Duration::from_secs(60)));
        world.ledger.meets_wall(world.machine.id(run));
        world.step(Input::WallSeen { run, window, reset, left: None });
        world.finish(other);
        assert_eq!((world.times("parked"), world.holding()), (1, vec![run]), "none starts");
        if is_answered_since {
            world.ask_model(run, 10);
            let request = *world.requests.keys().next().expect("it is open");
            world.end_request(request, RequestEnding::Answered, 5);
        }
        world.finish_because(run, Reason::ExitCode { code: 1 });
        let failed = is_answered_since.then_some(RunStatus::Failed);
        assert_eq!(
            world.status(run),
            failed,
            "it is repeated after the reset, unless it was answered"
        );
    }
}

#[test]
fn of_the_walls_that_other_trees_tell_of_the_latest_counts() {
    let mut world = world(Limits::default());
    for seconds in [30, 300, 30] {
        let (account, until) = (Account::clone(&world.facts.account), in_seconds(&world, seconds));
        world.hear_of_wall(account, until);
    }
    let run = world.spawn_piece();
    world.advance(299_000);
    assert!(world.holding().is_empty());
    world.advance(61_000);
    assert_eq!(world.holding(), [run]);
}

#[test]
fn a_window_that_begins_anew_at_this_moment_parks_nothing() {
    let mut world = world(Limits { keeps_percent: 10, ..Limits::default() });
    let run = world.spawn_piece();
    left(&mut world, run, 0, 0);
    assert_eq!(world.times("parked"), 0);
}

#[test]
fn what_a_probe_has_used_by_its_end_is_a_sign_of_success_whatever_ended_it() {
    for (used, unparked) in [(0, 0), (30, 1)] {
        let mut world = world(Limits::default());
        let runs = [(); 2].map(|()| world.spawn_piece());
        runs.into_iter().for_each(|run| wall(&mut world, run, 60));
        world.advance(72_000);
        let [probe] = world.holding()[..] else { panic!("one probe") };
        world.actors.get_mut(&probe).expect("it runs").used = used;
        world.finish_because(probe, Reason::Signal { signal: 9 });
        assert_eq!(world.times("unparked"), unparked);
    }
}

#[test]
fn of_a_tree_whose_root_is_over_no_quota_is_recorded() {
    let mut world = world(Limits { keeps_percent: 10, ..Limits::default() });
    let run = world.spawn_piece();
    world.close();
    left(&mut world, run, 5, 3_600);
    assert_eq!((world.times("quota_seen"), world.times("parked")), (0, 0));
    world.finish(run);
    world.assert_ended();
}
