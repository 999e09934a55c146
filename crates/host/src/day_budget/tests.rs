//! Tests of the budgets of a day.

use std::time::Duration;

use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::RunId;
use offshoot_spawner::Session;

use super::local_day::until_midnight;
use super::*;

fn noon() -> Timestamp {
    Timestamp::from_micros(1_767_268_800_000_000)
}

fn budget(home: &Path) -> DayBudget {
    let text = "[host]\nusdPerDay = 5\n".to_owned();
    let source = Source::new(SourceKind::User, "c.toml", text);
    let config = Loader::new().file(source).load().expect("it is right");
    DayBudget::of_user(Some(home), config.host()).expect("a day is bounded")
}

fn reserve(of: &DayBudget, usd: u64, now: Timestamp) -> Result<DayShare, DayError> {
    of.reserve(None, self::usd(usd), (Usage::default(), Cost::NONE), now)
}

fn spent(usd: u64) -> (Usage, Cost) {
    (Usage::default(), Cost::known(MicroUsd::from_micros(usd * 1_000_000)))
}

fn usd(usd: u64) -> BudgetGrant {
    BudgetGrant { usd: Some(MicroUsd::from_micros(usd * 1_000_000)), tokens: None }
}

/// A tree that has so much reserved when its supervisor dies.
fn dies(of: &DayBudget, usd: u64) -> RootId {
    let root = RootId::new(RunId::from_bytes([1; 16]));
    reserve(of, usd, noon()).expect("it is left").opened(root);
    root
}

#[test]
fn a_new_day_begins_with_what_lives() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let over = reserve(&of, 3, noon()).expect("there are 5");
    let (usage, cost) = spent(2);
    over.settle(usage, cost, noon());
    drop(over);
    let lives = reserve(&of, 3, noon()).expect("there are 3");
    assert!(reserve(&of, 1, noon()).is_err());
    let tomorrow = noon().plus(DAY);
    assert!(reserve(&of, 3, tomorrow).is_err(), "what lives may be spent tomorrow");
    let _own = reserve(&of, 2, tomorrow).expect("what was spent yesterday is over");
    let files = || fs::read_dir(&of.folder).expect("it is there").count();
    assert_eq!(files(), 4, "the turn, two trees that live, and one of yesterday");
    assert!(reserve(&of, 1, noon().plus(2 * DAY)).is_err());
    assert_eq!(files(), 3, "what is older is removed");
    drop(lives);
}

#[test]
fn what_is_not_known_counts_as_all_that_was_reserved() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    reserve(&of, 3, noon()).expect("there are 5").settle(Usage::UNKNOWN, Cost::unknown(), noon());
    assert!(reserve(&of, 3, noon()).is_err());
    assert!(reserve(&of, 2, noon()).is_ok());
}

#[test]
fn a_tree_that_goes_on_counts_once() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    // When it has spent 1.
    let root = dies(&of, 4);
    assert!(reserve(&of, 2, noon()).is_err());
    let left = usd(3);
    let again = of.reserve(Some(root), left, spent(1), noon()).expect("it was reserved before");
    assert!(reserve(&of, 2, noon()).is_err(), "1 is spent and 3 are reserved");
    let (usage, cost) = spent(2);
    again.settle(usage, cost, noon());
    drop(again);
    assert!(reserve(&of, 4, noon()).is_err());
    assert!(reserve(&of, 3, noon()).is_ok(), "2 were spent in both lives");
}

#[test]
fn a_tree_that_is_cancelled_in_place_of_its_supervisor_counts_what_it_has_spent() {
    let (known, unknown) = (spent(1), (Usage::UNKNOWN, Cost::unknown()));
    for ((usage, cost), left) in [(known, 4), (unknown, 2)] {
        let home = tempfile::tempdir().expect("a folder");
        let of = budget(home.path());
        let root = dies(&of, 3);
        let share = of.left_by(root, noon()).expect("it can be read").expect("it is of this day");
        assert!(reserve(&of, 3, noon()).is_err(), "until its end all of it is reserved");
        share.settle(usage, cost, noon());
        drop(share);
        assert!(reserve(&of, left + 1, noon()).is_err());
        assert!(reserve(&of, left, noon()).is_ok());
    }
}

#[test]
fn what_does_not_count_is_not_settled() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let other = RootId::new(RunId::from_bytes([2; 16]));
    let is_there = |root, now| of.left_by(root, now).expect("it can be read").is_some();
    assert!(!is_there(other, noon()), "no tree was opened");
    let root = dies(&of, 3);
    assert!(!is_there(other, noon()));
    assert!(!is_there(root, noon().plus(DAY)), "it is of the day before");
    assert!(is_there(root, noon()));
}

#[test]
fn a_tree_that_did_not_go_on_leaves_what_it_had_spent() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let root = dies(&of, 4);
    for _ in 0..2 {
        let left = usd(3);
        let again = of.reserve(Some(root), left, spent(1), noon()).expect("it is reserved");
        let opened = DayShare::kept_by(Some(again), Err::<Session, _>("a full disk"));
        assert!(opened.is_err());
        assert!(reserve(&of, 2, noon()).is_err(), "1 is spent, and 3 are reserved");
    }
}

#[test]
fn what_a_tree_of_yesterday_spends_after_midnight_counts_today() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let tomorrow = noon().plus(DAY);
    let [ends, dies, raised] = [1, 1, 1].map(|usd| reserve(&of, usd, noon()).expect("of 5"));
    let (usage, cost) = spent(1);
    ends.settle(usage, cost, tomorrow);
    dies.lives_on(tomorrow);
    let more = usd(1);
    raised.reserve_more(more, tomorrow).expect("4 of 5");
    drop((ends, dies, raised));
    assert!(reserve(&of, 2, tomorrow).is_err(), "1 spent, 1 of one that died, 2 of another");
    assert!(reserve(&of, 1, tomorrow).is_ok());
    assert!(reserve(&of, 5, tomorrow.plus(DAY)).is_ok());
}

#[test]
fn what_is_not_known_of_a_tree_that_goes_on_is_not_forgotten() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let root = dies(&of, 3);
    let unknown = (Usage::UNKNOWN, Cost::unknown());
    let again = of.reserve(Some(root), usd(3), unknown, noon());
    assert!(matches!(again, Err(DayError::Over { .. })), "3 may be spent, and 2 are left");
    let again = of.reserve(Some(root), usd(2), unknown, noon());
    drop(again.expect("2 are left"));
    assert!(reserve(&of, 1, noon()).is_err());
}

#[test]
fn two_files_of_one_tree_both_count() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let root = RootId::new(RunId::from_bytes([1; 16]));
    let first = reserve(&of, 2, noon()).expect("there are 5");
    first.opened(root);
    let (usage, cost) = spent(2);
    first.settle(usage, cost, noon());
    // Its supervisor is over and not gone yet, and the next one goes on.
    let left = usd(1);
    let second = of.reserve(Some(root), left, spent(2), noon()).expect("3 are left");
    let (usage, cost) = spent(3);
    second.settle(usage, cost, noon());
    drop((first, second));
    let too_much = of.reserve(Some(root), usd(3), spent(3), noon());
    assert!(too_much.is_err(), "its supervisors have spent 3 of 5, in a file each");
    let third = of.reserve(Some(root), left, spent(3), noon()).expect("2 are left");
    assert!(reserve(&of, 2, noon()).is_err(), "3 are spent, and 1 is reserved");
    drop(third);
}

#[test]
fn a_raise_in_the_morning_does_not_count_what_was_spent_yesterday() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let root = dies(&of, 4);
    let left = usd(1);
    let again = of.reserve(Some(root), left, spent(3), noon()).expect("it was reserved");
    // Its computer has slept since: no event has told the new day.
    let more = usd(4);
    again.reserve_more(more, noon().plus(DAY)).expect("1 is reserved today");
    assert!(reserve(&of, 1, noon().plus(DAY)).is_err());
}

#[test]
fn a_clock_that_is_set_back_or_another_time_zone_forgets_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let (usage, cost) = spent(3);
    reserve(&of, 3, noon()).expect("there are 5").settle(usage, cost, noon());
    for now in [earlier(noon(), DAY), earlier(noon(), 9 * DAY), noon().plus(DAY)] {
        reserve(&of, 1, now).expect("there are 2").release();
    }
    assert!(reserve(&of, 3, earlier(noon(), DAY)).is_err());
    assert!(reserve(&of, 3, noon()).is_err());
}

#[test]
fn a_raise_that_is_refused_is_given_back() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let share = reserve(&of, 2, noon()).expect("there are 5");
    let more = usd(2);
    share.reserve_more(more, noon()).expect("there are 3");
    assert!(reserve(&of, 2, noon()).is_err());
    share.give_back(more);
    reserve(&of, 3, noon()).expect("they are free again").release();
    let (usage, cost) = spent(1);
    share.settle(usage, cost, noon());
    // Too late: the tree is over, and nothing is reserved for it.
    share.reserve_more(more, noon()).expect("nothing is asked of the day");
    share.give_back(more);
    assert!(reserve(&of, 4, noon()).is_ok());
}

#[test]
fn a_raise_and_an_end_at_the_same_time_both_come_through() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    let share = reserve(&of, 1, noon()).expect("there are 5");
    let more = BudgetGrant { usd: Some(MicroUsd::from_micros(1)), tokens: None };
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| (0..500).for_each(|_| drop(share.reserve_more(more, noon()))));
            threads.spawn(|| (0..500).for_each(|_| share.give_back(more)));
        }
        threads.spawn(|| {
            let (usage, cost) = spent(2);
            share.settle(usage, cost, noon());
        });
    });
    drop(share);
    // Whatever came before or after the end: 2 are spent, and nothing is reserved.
    assert!(reserve(&of, 4, noon()).is_err());
    assert!(reserve(&of, 3, noon()).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_opens_no_tree() {
    let home = tempfile::tempdir().expect("a folder");
    let of = budget(home.path());
    reserve(&of, 1, noon()).expect("there are 5").release();
    let circle = of.folder.join("circle.budget");
    std::os::unix::fs::symlink(&circle, &circle).expect("a link");
    assert!(matches!(reserve(&of, 1, noon()), Err(DayError::Folder { .. })));
}

#[test]
fn midnight_is_at_most_25_hours_away() {
    let left = until_midnight(noon());
    assert!(left > Duration::ZERO && left <= Duration::from_secs(25 * 60 * 60), "{left:?}");
    assert!(local_day(noon().plus(left)) > local_day(noon()));
    assert_eq!(local_day(earlier(noon().plus(left), Duration::from_micros(1))), local_day(noon()));
}
