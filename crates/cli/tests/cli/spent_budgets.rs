//! A map that ends without answers of some pieces because of its budget: what it says, and that what it advises to type goes on.

use offshoot_fake_model_api::{FakeModelApi, Reply, Rule, Usage};

use crate::command::{Outcome, Place};
use crate::openai::stage;

const PRICE: &str = "[prices.small]\ninputPerMillion = 1000\noutputPerMillion = 1000\n";
/// A request reserves 0.04 dollars or less, and costs 0.021.
const METERED: &str = "[runtimes.openai]\nmeter = \"on\"\n[prices.small]\ninputPerMillion = 10\noutputPerMillion = 10\nmaxOutputTokens = 200\ncontextWindowTokens = 10000\n";
const MAP: [&str; 8] =
    ["--config", "c.toml", "map", "--runtime", "openai", "--split", "lines:1", "--task"];

/// A service whose answers cost 0.27 dollars each, and an input of six pieces.
fn six_pieces(more: &str) -> (Place, FakeModelApi) {
    let used = Usage { input: 270, output: 0, ..Usage::default() };
    let (place, api) = stage([Rule::always(Reply::text("fruit")).usage(used)], more);
    place.file("in", (1..=6).map(|line| format!("{line}\n")).collect::<String>());
    (place, api)
}

#[track_caller]
fn says(outcome: &Outcome, texts: &[&str]) {
    for text in texts {
        assert!(outcome.stderr.contains(text), "`{text}` is not said: {}", outcome.stderr);
    }
}

#[test]
fn an_answer_without_the_pieces_that_a_budget_stopped_says_so() {
    let (place, api) = six_pieces(PRICE);
    let words = ["name a fruit", "--budget-usd", "0.54", "--on-failure", "skip", "in"];
    let outcome = place.run(&[&MAP[..], &words].concat()).expect_code(0);
    assert_eq!(outcome.stdout().matches("fruit").count(), 2);
    let (used_up, way_on) =
        ("the budget is used up: $0.54 of $0.54 are used", " --budget-usd 1.70` goes on with");
    says(&outcome, &["warning: ", used_up, way_on]);
    // The same end without an answer.
    let words = ["name a fruit", "--budget-usd", "0.54", "in"];
    let outcome = place.run(&[&MAP[..], &words].concat()).expect_code(4);
    says(&outcome, &["error: the budget is used up", used_up, way_on]);
    let resumed = place.run(&["resume", "last", "--budget-usd", "1.7"]).expect_code(0);
    assert_eq!(resumed.stdout().matches("fruit").count(), 6);
    assert_eq!(api.requests().len(), 8, "no piece is paid for twice");
    assert!(!resumed.stderr.contains("used up"), "{}", resumed.stderr);
    place.run(&["audit", "last"]).expect_code(0);
}

/// A ceiling bounds what a tree is given later as it bounds what it is opened with.
#[test]
fn no_ceiling_is_passed_by_a_tree_that_goes_on() {
    let (place, api) = six_pieces(PRICE);
    let ceiling = "[ceiling]\nbudget.usd = 1.0\nbudget.tokens = 5000\ndeadlineSeconds = 60\n";
    place.file("home/.config/offshoot/config.toml", ceiling);
    let words = ["name a fruit", "--budget-usd", "0.54", "in"];
    place.run(&[&MAP[..], &words].concat()).expect_code(4);
    for (given, key) in [
        (["--budget-usd", "1.01", "--deadline", "60s"], "budget.usd"),
        (["--budget-usd", "1", "--budget-tokens", "5001"], "budget.tokens"),
        (["--budget-usd", "1", "--deadline", "61s"], "deadlineSeconds"),
    ] {
        let refused = place.run(&[&["resume", "last"], &given[..]].concat()).expect_code(2);
        says(&refused, &[key, "ceiling"]);
    }
    assert_eq!(api.requests().len(), 2, "nothing of it has run");
    let within = place.run(&["resume", "last", "--budget-usd", "1"]).expect_code(4);
    says(&within, &["3 of 6 pieces completed"]);
}

/// The budget of a tree that goes on is that of all its lives, and so is the one that the day would allow.
#[test]
fn what_the_day_has_left_is_advised_with_what_the_tree_has_used() {
    let (place, _api) = six_pieces(PRICE);
    place.file("home/.config/offshoot/config.toml", "[host]\nusdPerDay = 1.0\n");
    let words = ["name a fruit", "--budget-usd", "0.54", "in"];
    place.run(&[&MAP[..], &words].concat()).expect_code(4);
    let refused = place.run(&["resume", "last", "--budget-usd", "1.7"]).expect_code(4);
    says(&refused, &["host.usdPerDay", "ask for less with --budget-usd 1.00"]);
    let within = place.run(&["resume", "last", "--budget-usd", "1"]).expect_code(4);
    says(&within, &["3 of 6 pieces completed"]);
}

/// No larger budget of the tree helps a task that names its own.
#[test]
fn a_task_whose_own_budget_is_too_small_does_not_ask_for_a_larger_one_of_the_tree() {
    let used = Usage { input: 2_000, output: 100, ..Usage::default() };
    let (place, _api) = stage([Rule::always(Reply::text("fruit")).usage(used)], METERED);
    place.file("tasks", "{\"task\":\"a\",\"budget\":{\"usd\":0.01}}\n{\"task\":\"b\"}\n");
    let words = ["--config", "c.toml", "fanout", "--runtime", "openai", "--tasks", "tasks"];
    let outcome = place.run(&[&words[..], &["--budget-usd", "0.4"]].concat()).expect_code(4);
    says(&outcome, &["1 of 2 pieces completed", "`offshoot resume "]);
    assert!(!outcome.stderr.contains("--budget-usd"), "{}", outcome.stderr);
}

/// A request reserves more than it costs, and the last one needs room for that.
#[test]
fn what_is_advised_is_enough_under_the_meter() {
    let used = Usage { input: 2_000, output: 100, ..Usage::default() };
    for budget in ["0.08", "0.06", "0.05"] {
        let (place, _api) = stage([Rule::always(Reply::text("fruit")).usage(used)], METERED);
        place.file("in", (1..=8).map(|line| format!("{line}\n")).collect::<String>());
        let words = ["name a fruit", "--budget-usd", budget, "in"];
        let stderr = place.run(&[&MAP[..], &words].concat()).expect_code(4).stderr;
        let (_, typed) = stderr.split_once("`offshoot resume ").expect("a way on");
        let (typed, _) = typed.split_once('`').expect("it is quoted");
        let words: Vec<&str> = typed.split(' ').collect();
        let resumed = place.run(&[&["resume"], &words[..]].concat()).expect_code(0);
        assert_eq!(resumed.stdout().matches("fruit").count(), 8, "{budget}: {typed}");
    }
}

#[test]
fn pieces_that_are_refused_for_one_reason_are_told_in_one_line() {
    let (place, api) = six_pieces("");
    let words = ["name a fruit", "--budget-usd", "1", "in"];
    let outcome = place.run(&[&MAP[..], &words].concat()).expect_code(3);
    says(&outcome, &["error: 6 pieces: there is a budget in usd", "hint: use a runtime"]);
    // All would be refused again.
    assert!(!outcome.stderr.contains("offshoot resume"), "{}", outcome.stderr);
    assert_eq!(api.requests().len(), 0);
}

/// A piece that was never started because of the budget is recorded as failed, so `--failed` runs it too.
#[test]
fn what_was_not_started_for_want_of_budget_is_among_what_failed() {
    for choice in [&[][..], &["--failed"], &["--cancelled"]] {
        let (place, api) = six_pieces(PRICE);
        let words = ["name a fruit", "--budget-usd", "0.60", "in"];
        place.run(&[&MAP[..], &words].concat()).expect_code(4);
        assert_eq!(api.requests().len(), 2, "{choice:?}");
        let resume = [&["resume", "last", "--budget-usd", "2"][..], choice].concat();
        place.run(&resume).expect_code(0);
        assert_eq!(api.requests().len(), 6, "{choice:?}");
        place.run(&["audit", "last"]).expect_code(0);
    }
}

#[test]
fn where_no_piece_has_an_answer_none_can_be_left_out() {
    let (place, _api) = six_pieces("");
    let words = ["map", "--split", "lines:1", "in", "--"];
    let failed = |command: &[&str]| place.run(&[&words[..], command].concat()).expect_code(1);
    let none = failed(&["false"]);
    says(&none, &["6 of 6 pieces did not complete", " --failed` goes on with the rest"]);
    assert!(!none.stderr.contains("--on-failure skip"), "{}", none.stderr);
    says(&failed(&["grep", "1"]), &["5 of 6 pieces did not complete", "--on-failure skip"]);
}

/// An answer that is under way when a budget is reached is paid for. Where the run completes with it, that is said.
#[test]
fn a_run_that_used_more_than_its_budget_says_so() {
    let (place, _api) = six_pieces(PRICE);
    let run = ["--config", "c.toml", "run", "--runtime", "openai", "--budget-usd"];
    let outcome = place.run(&[&run[..], &["0.20", "name a fruit"]].concat());
    says(&outcome, &["warning: it used $0.07 more than its budget"]);
    let enough = place.run(&[&run[..], &["0.30", "name a fruit"]].concat()).expect_code(0);
    assert!(!enough.stderr.contains("more than its budget"), "{}", enough.stderr);
}

/// A budget counts nothing of a program that is not metered, which a person who gives one would not guess.
#[test]
fn a_budget_of_a_program_says_what_it_counts() {
    let place = Place::new();
    let note = "nothing counts what this program itself asks of models";
    let run = |words: &[&str]| place.run(&[words, &["x", "--", "true"]].concat()).expect_code(0);
    assert!(run(&["run", "--budget-usd", "1"]).stderr.contains(note));
    assert!(run(&["run", "--budget-tokens", "100"]).stderr.contains(note));
    assert!(!run(&["run"]).stderr.contains(note), "no budget is given");
    assert!(!run(&["-q", "run", "--budget-usd", "1"]).stderr.contains(note));
    place.file("free.toml", "[runtimes.exec]\ncost = \"none\"\n");
    let free = run(&["--config", "free.toml", "run", "--budget-usd", "1"]);
    assert!(!free.stderr.contains(note), "the configuration says it: {}", free.stderr);
}
