//! Walls of quotas.

use super::*;

#[test]
fn no_run_starts_between_a_wall_and_its_reset_but_one_probe() {
    // The first child meets the wall, and has another attempt at this second; a second child starts at that one.
    let waits = |again: u64, other: u64, between: fn(&mut Script)| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.child(2, 1, 0, "b", 1);
            script.starts(1, 1);
            script.parked(2, 60);
            script.waits(1, 2, 2);
            script.starts(1, again);
            between(script);
            script.starts(2, other);
        }
    };
    let nothing: fn(&mut Script) = |_| {};
    let works: fn(&mut Script) = |script| script.unparked(62);
    let ends: fn(&mut Script) = |script| {
        script.ends(1, 62, fault(false));
        script.deliver(1, 62);
    };
    let meets_it_again: fn(&mut Script) = |script| {
        script.parked(62, 120);
        script.waits(1, 62, 3);
    };
    let dies: fn(&mut Script) = |script| {
        script.at(0, 62, EventKind::Reopened);
    };
    tell("the probe works", said(), waits(60, 63, works), &[]);
    tell("the probe has ended", said(), waits(60, 63, ends), &[]);
    tell("too early", said(), waits(59, 63, works), &[Rule::Quota]);
    tell("beside the probe", said(), waits(60, 63, nothing), &[Rule::Quota]);
    tell("the next wall", said(), waits(60, 120, meets_it_again), &[]);
    tell("before the next reset", said(), waits(60, 119, meets_it_again), &[Rule::Quota]);
    tell("another supervisor", said(), waits(60, 63, dies), &[]);
}

#[test]
fn no_more_runs_of_an_account_work_at_once_than_its_pace_allows() {
    let three = |most: Option<u32>, between: fn(&mut Script)| {
        move |script: &mut Script| {
            for number in 1..4 {
                script.child(number, 1, 0, "b", 1);
            }
            script.starts(1, 1);
            script.starts(2, 1);
            let account = Account::of_runtime("exec");
            script.at(0, 2, EventKind::Paced { account: account.clone(), most: Some(2) });
            if most != Some(2) {
                script.at(0, 3, EventKind::Paced { account, most });
            }
            between(script);
            script.starts(3, 4);
        }
    };
    let nothing: fn(&mut Script) = |_| {};
    let ends: fn(&mut Script) = |script| {
        script.ends(1, 3, fault(false));
        script.deliver(1, 3);
    };
    let is_parent: fn(&mut Script) = |script| script.child(4, 3, 1, "b", 2);
    let dies: fn(&mut Script) = |script| script.at(0, 3, EventKind::Reopened);
    tell("a third", said(), three(Some(2), nothing), &[Rule::Quota]);
    tell("after one has ended", said(), three(Some(2), ends), &[]);
    tell("beside a parent", said(), three(Some(2), is_parent), &[]);
    tell("a wider bound", said(), three(Some(3), nothing), &[]);
    tell("no bound any more", said(), three(None, nothing), &[]);
    tell("another supervisor", said(), three(Some(2), dies), &[]);
}

#[test]
fn a_wall_uses_up_no_attempt_and_is_on_record() {
    let rules = Rules { retries: Some(1), ..Rules::default() };
    let attempts = |attempts: &'static [u32], is_told: bool, acts: bool| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.starts(1, 1);
            if acts {
                script.at(1, 1, EventKind::TurnEnded { answer: None, letters_taken: None });
            }
            for (second, attempt) in (2..).zip(attempts) {
                if is_told {
                    script.parked(second, second + 1);
                }
                script.waits(1, second, *attempt);
                script.starts(1, second + 1);
            }
        }
    };
    tell("as often as there is a wall", rules, attempts(&[2, 3, 4, 5], true, false), &[]);
    tell("one is missing", rules, attempts(&[3], true, false), &[Rule::Retries]);
    tell("no wall", rules, attempts(&[2], false, false), &[Rule::Retries]);
    tell("what it has done", rules, attempts(&[2], true, true), &[Rule::Retries]);
}

#[test]
fn a_deadline_may_spare_the_time_until_a_reset() {
    let begins = |until: u64, second: u64| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.parked(2, until);
            script.starts(1, second);
        }
    };
    let counts = Rules { deadline_seconds: Some(100), ..said() };
    let spares = Rules { deadline_spares_parked: Some(true), ..counts };
    tell("in time", counts, begins(60, 90), &[]);
    tell("too late", counts, begins(1000, 1001), &[Rule::Time]);
    tell("spared", spares, begins(1000, 1001), &[]);
    tell("too late after the reset", spares, begins(1000, 1200), &[Rule::Time]);
}
