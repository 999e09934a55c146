//! The n-th write, flush, rename, link, creation and removal of the real command fails, or the command dies there.

use offshoot_faults::{Ambush, Call, Expected, Failure, Place, Points};
use offshoot_test_support::skip;

/// How often each call is made where nothing fails, and what the answer is then.
fn undisturbed() -> Option<([u64; Call::ALL.len()], Expected)> {
    let place = Place::new();
    let Some(passed) = place.live(None) else {
        skip("faults below the command", "the kernel has no filter that tells");
        return None;
    };
    let expected = place.expected(&passed);
    Some((Call::ALL.map(|call| passed.count(call)), expected))
}

fn fail_each(failure: Failure, calls: &[Call], sample: u64) {
    let Some((counts, expected)) = undisturbed() else { return };
    let mut all = Vec::new();
    for &call in calls {
        let many = counts[call as usize];
        assert!(many > 0, "there is a {call:?}");
        let what = match (failure, call) {
            (Failure::Error, _) => format!("the n-th {call} of the command's files fails"),
            (Failure::Full, _) => format!("the disk is full from the command's n-th {call} on"),
            (Failure::Death, _) => format!("the command is killed at the n-th {call} of its files"),
        };
        let mut points = Points::of(what);
        for after in (0..many).filter(|point| Points::wants(*point, many, sample)) {
            let ambush = Ambush { call, after, failure };
            let place = Place::new();
            let passed = place.live(Some(ambush)).expect("there was a gate before");
            // Two runs are not equally fast, and a faster one has fewer calls.
            if passed.met.is_some() {
                let mut fate = None;
                points.try_one(|| fate = Some(place.check(&passed, ambush, &expected)));
                fate.inspect(|fate| points.went_on(fate));
            }
        }
        points.tell();
        assert!(points.tried() > 0, "none was met");
        all.push(points);
    }
    // Whatever was lost, the other kinds were tried too.
    all.iter().for_each(Points::check);
}

#[test]
fn a_command_survives_whatever_fails_below_it() {
    fail_each(Failure::Error, &Call::ALL, 2);
}

#[test]
fn a_command_survives_a_disk_that_is_full_from_any_moment_on() {
    fail_each(Failure::Full, &[Call::Write, Call::Create], 3);
}

#[test]
fn a_command_that_is_killed_anywhere_is_resumed() {
    fail_each(Failure::Death, &Call::ALL, 2);
}
