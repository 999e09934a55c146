//! The table of walls: what each event changes, and what a run that wants to start is told.

use super::*;

/// One thing that happens, at a second.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// A run is refused until this second.
    Meets(u8, u64),
    Starts(u8),
    /// A run gives a sign of success.
    Works(u8),
    /// A run ends without one.
    Ends(u8),
    /// Another supervisor takes the tree.
    Dies,
}

use Happens::{Dies, Ends, Meets, Starts, Works};

fn at(second: u64) -> Timestamp {
    Timestamp::from_micros(1_000_000 * second)
}

fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 16])
}

fn claude() -> Account {
    Account::of_runtime("claude")
}

fn after(happenings: &[(u64, Happens)]) -> Quotas {
    let (mut quotas, account) = (Quotas::default(), claude());
    for &(second, happens) in happenings {
        match happens {
            Meets(number, reset) => {
                let (times, no_chance) = ((at(reset), at(second)), (0.2, 0.0));
                if let Some(until) = quotas.meets(&account, run(number), times, no_chance) {
                    quotas.parked(&account, None, until, at(second));
                }
            }
            Starts(number) => {
                let gate = quotas.gate(&account, run(number), at(second));
                assert!(matches!(gate, Gate::Open | Gate::Probe), "{happenings:?}: {gate:?}");
                quotas.started(&account, run(number));
            }
            Works(number) => {
                if quotas.is_probe(&account, run(number)) {
                    quotas.unparked(&account);
                }
            }
            Ends(number) => drop(quotas.over(&account, run(number))),
            Dies => quotas.interrupt(at(second)),
        }
    }
    quotas
}

#[test]
fn a_wall_stands_until_its_reset_and_then_one_probe_decides() {
    let parked = |second| Gate::Parked { until: at(second) };
    let probing = |number| Gate::Probing { probe: run(number) };
    // What happened, when another run wants to start, and the answer.
    /// The moments at which something happens, the moment of the question, and its answer.
    type Row = (&'static [(u64, Happens)], u64, Gate);
    let table: &[Row] = &[
        (&[], 5, Gate::Open),
        (&[(1, Starts(1))], 5, Gate::Open),
        (&[(1, Meets(1, 60))], 1, parked(60)),
        (&[(1, Meets(1, 60))], 59, parked(60)),
        (&[(1, Meets(1, 60))], 60, Gate::Probe),
        // Others that were at work meet the same wall later: nothing new, and no less.
        (&[(1, Meets(1, 60)), (2, Meets(2, 60))], 59, parked(60)),
        (&[(1, Meets(1, 60)), (2, Meets(2, 50))], 59, parked(60)),
        (&[(1, Meets(1, 60)), (2, Meets(2, 90))], 60, parked(90)),
        // A run from before the wall ends well: that says nothing of what comes after it.
        (&[(1, Meets(1, 60)), (2, Works(2)), (3, Ends(2))], 59, parked(60)),
        (&[(1, Meets(1, 60)), (61, Starts(3))], 62, probing(3)),
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Works(3))], 62, Gate::Open),
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Works(2))], 62, probing(3)),
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Ends(3))], 62, Gate::Probe),
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Ends(2))], 62, probing(3)),
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Meets(3, 120))], 119, parked(120)),
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Meets(3, 120))], 120, Gate::Probe),
        // One that is told of the wall that it waited for is not told anything new, unless it is the probe.
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Meets(4, 60))], 62, probing(3)),
        // A reset that is over is no reset: there is a pause, and a longer one each time.
        (&[(10, Meets(1, 5))], 10, parked(11)),
        (&[(10, Meets(1, 5)), (11, Starts(1)), (11, Meets(1, 5))], 12, parked(13)),
        (
            &[
                (10, Meets(1, 5)),
                (11, Starts(1)),
                (11, Meets(1, 5)),
                (13, Starts(1)),
                (13, Meets(1, 5)),
            ],
            16,
            parked(17),
        ),
        (&[(10, Meets(1, 5)), (11, Starts(1)), (11, Works(1)), (12, Meets(1, 5))], 12, parked(13)),
        // A supervisor that dies loses its probe, and no wall.
        (&[(1, Meets(1, 60)), (2, Dies)], 59, parked(60)),
        (&[(1, Meets(1, 60)), (2, Dies)], 60, Gate::Probe),
        (&[(1, Meets(1, 60)), (61, Starts(3)), (62, Dies)], 63, Gate::Probe),
    ];
    for (happenings, second, expected) in table {
        let found = after(happenings).gate(&claude(), run(9), at(*second));
        assert_eq!(found, *expected, "{happenings:?} at {second}");
    }
}

#[test]
fn the_probe_may_start_again_where_it_has_not_ended() {
    let quotas = after(&[(1, Meets(1, 60)), (61, Starts(3))]);
    assert_eq!(quotas.gate(&claude(), run(3), at(62)), Gate::Probe);
}

#[test]
fn before_the_reset_an_account_is_parked_whichever_run_has_started() {
    let mut quotas = after(&[(1, Meets(1, 60))]);
    quotas.started(&claude(), run(3));
    for asks in [3, 9] {
        assert_eq!(quotas.gate(&claude(), run(asks), at(59)), Gate::Parked { until: at(60) });
    }
    assert_eq!(quotas.gate(&claude(), run(9), at(60)), Gate::Probing { probe: run(3) });
}

#[test]
fn a_wall_tells_whether_a_run_probes_it() {
    let check = |happenings: &[(u64, Happens)], expected: Option<bool>| {
        let quotas = after(happenings);
        assert_eq!(quotas.wall(&claude()).map(Wall::has_probe), expected, "{happenings:?}");
        assert_eq!(quotas.is_empty(), expected.is_none(), "{happenings:?}");
    };
    check(&[], None);
    check(&[(1, Meets(1, 60))], Some(false));
    check(&[(1, Meets(1, 60)), (61, Starts(3))], Some(true));
    check(&[(1, Meets(1, 60)), (61, Starts(3)), (62, Ends(3))], Some(false));
    check(&[(1, Meets(1, 60)), (61, Starts(3)), (62, Works(3))], None);
}

#[test]
fn accounts_are_apart() {
    let quotas = after(&[(1, Meets(1, 60))]);
    let other = Account { credential: Some("ab".into()), ..claude() };
    assert_eq!(quotas.gate(&other, run(9), at(2)), Gate::Open);
    assert_eq!(quotas.gate(&Account::of_runtime("openai"), run(9), at(2)), Gate::Open);
    assert_eq!(quotas.replaced_by(&other), [claude()], "the login is another one");
    assert_eq!(quotas.replaced_by(&claude()), []);
    assert_eq!(quotas.replaced_by(&Account::of_runtime("openai")), []);
}

#[test]
fn what_is_left_of_a_window_is_news_in_steps() {
    let mut quotas = Quotas::default();
    let window: Arc<str> = "five_hour".into();
    let mut tells = |left, reset, now| {
        let is_news = quotas.is_news(&claude(), &window, (left, at(reset)), at(now));
        if is_news {
            quotas.saw(&claude(), &window, left, at(reset));
        }
        is_news
    };
    // What is left, the reset, the moment, and whether it is recorded.
    let table = [
        (990_000, 60, 0, false),
        (990_000, 18_000, 0, true),
        (951_000, 18_001, 20, false),
        (949_999, 18_002, 30, true),
        (960_000, 18_002, 40, false),
        (100_000, 18_002, 17_900, true),
        (0, 18_002, 17_950, true),
        // It begins anew.
        (1_000_000, 36_002, 18_010, true),
    ];
    for row @ (left, reset, now, expected) in table {
        assert_eq!(tells(left, reset, now), expected, "{row:?}");
    }
}

#[test]
fn a_reset_that_is_a_minute_later_is_that_of_another_window() {
    let window: Arc<str> = "five_hour".into();
    for (reset, expected) in [(18_059, false), (18_060, true)] {
        let mut quotas = Quotas::default();
        quotas.saw(&claude(), &window, 500_000, at(18_000));
        let is_news = quotas.is_news(&claude(), &window, (500_000, at(reset)), at(10));
        assert_eq!(is_news, expected, "{reset}");
    }
}

#[test]
fn a_probe_is_moved_by_chance_and_never_before_the_reset() {
    let meets = |reset, chance| {
        let times = (at(reset), at(0));
        Quotas::default().meets(&claude(), run(1), times, (0.2, chance))
    };
    assert_eq!(meets(100, 0.0), Some(at(100)));
    assert_eq!(meets(100, 0.5), Some(at(110)));
    assert_eq!(meets(100, 1.0), Some(at(120)));
    assert_eq!(meets(100, 7.0), Some(at(120)));
    assert_eq!(meets(18_000, 1.0), Some(at(18_030)), "no more than half a minute");
    let day = 24 * 3_600;
    assert_eq!(
        [30, 31, 32, 400].map(|days| meets(days * day, 0.0)),
        [30, 31, 31, 31].map(|days| Some(at(days * day)))
    );
}

#[test]
fn the_longest_wait_is_known() {
    let mut quotas = after(&[(3, Meets(1, 60))]);
    let other = Account::of_runtime("openai");
    quotas.parked(&other, None, at(30), at(7));
    assert_eq!((quotas.since(), quotas.until()), (Some(at(3)), Some(at(60))));
    quotas.parked(&claude(), None, at(90), at(61));
    assert_eq!(quotas.since(), Some(at(3)), "it waits on, since the first wall");
    quotas.interrupt(at(70));
    assert_eq!(quotas.since(), Some(at(70)), "time without a supervisor does not count");
    quotas.unparked(&claude());
    quotas.unparked(&other);
    assert_eq!((quotas.since(), quotas.until()), (None, None));
}
