//! Budgets of a day, which all trees of a user share.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command};

use offshoot_fake_model_api::{FakeModelApi, Reply, Rule};
use offshoot_test_support::named_pipe;

use crate::command::{Outcome, Place};
use crate::openai;
use crate::walls::followed_until;

/// A user with these settings of the section `host`, in a project with a pipe.
fn user(host: &str) -> Place {
    let place = Place::new();
    place.file("home/.config/offshoot/config.toml", format!("[host]\n{host}\n"));
    place.file("in", "piece\n");
    named_pipe(place.path().join("pipe"));
    place
}

/// Another project of the same user.
fn neighbour(of: &Place) -> Place {
    let place = Place::new();
    let home = place.path().join("home");
    fs::remove_dir(&home).expect("it is empty");
    symlink(of.path().join("home"), home).expect("there is nothing else");
    place
}

/// A map whose only piece runs until the pipe is written to.
fn holds(place: &Place, budget: [&str; 2]) -> (Command, Child) {
    let words = ["-q", "map", "--split", "lines:1", "--merge", "concatenate"];
    let agent = ["in", "--", "sh", "-c", "read go < pipe"];
    let mut command = place.command(&[&words[..], &budget, &agent].concat());
    let child = command.spawn().expect("the program was built for this test");
    followed_until(place, "  started  ");
    (command, child)
}

/// Kills a supervisor, and waits until nothing that it held is held.
fn kill(place: &Place, mut supervisor: Child) {
    let pid = supervisor.id();
    supervisor.kill().expect("it was not waited for");
    supervisor.wait().expect("the child cannot be waited for");
    place.locks_of(pid).wait();
}

fn ends(place: &Place, (command, child): (Command, Child)) -> Outcome {
    fs::write(place.path().join("pipe"), "go\n").expect("it is read");
    place.finish(child, &command, &[]).expect_code(0)
}

fn run(place: &Place, budget: &[&str]) -> Outcome {
    place.run(&[&["-q", "run"], budget, &["x", "--", "echo", "hi"]].concat())
}

#[track_caller]
fn refused(outcome: Outcome, said: &str, hint: &str) {
    let outcome = outcome.expect_code(4);
    assert!(outcome.text().contains(said), "{}", outcome.text());
    assert!(outcome.text().contains(hint), "{}", outcome.text());
}

#[test]
fn trees_share_the_dollars_of_a_day() {
    let one = user("usdPerDay = 5");
    let other = neighbour(&one);
    let live = holds(&one, ["--budget-usd", "3"]);
    let said =
        "host.usdPerDay allows $5.00 a day, $3.00 of it spent or reserved: $3.00 more is too much";
    refused(
        run(&other, &["--budget-usd", "3"]),
        said,
        "ask for less with --budget-usd 2.00, or wait",
    );
    let doctor = other.run(&["doctor"]).text();
    assert!(
        doctor.contains("host.usdPerDay: $3.00 of $5.00 is spent today or reserved"),
        "{doctor}"
    );
    assert_eq!(run(&other, &["--budget-usd", "2"]).expect_code(0).stdout(), "hi\n");
    assert_eq!(other.run(&["list", "--json"]).json().as_array().map(Vec::len), Some(1));
    // A program of the operator's costs nothing, and what it could hand on is bounded by zero.
    assert_eq!(run(&other, &[]).expect_code(0).stdout(), "hi\n");
    ends(&one, live);
    // What was not spent is free again.
    assert_eq!(run(&other, &["--budget-usd", "5"]).expect_code(0).stdout(), "hi\n");
    refused(
        run(&other, &["--budget-usd", "5.01"]),
        "$0.00 of it spent or reserved",
        "--budget-usd 5.00",
    );
}

#[test]
fn tokens_of_a_day_are_shared_in_the_same_way() {
    let one = user("tokensPerDay = 1000");
    let other = neighbour(&one);
    let live = holds(&one, ["--budget-tokens", "600"]);
    let said = "host.tokensPerDay allows 1,000 tokens a day, 600 tokens of it spent or reserved: 500 tokens more is too much";
    refused(run(&other, &["--budget-tokens", "500"]), said, "--budget-tokens 400");
    ends(&one, live);
    run(&other, &["--budget-tokens", "1000"]).expect_code(0);
}

/// A model behind an endpoint, for a user with these settings of the section `host`.
fn paid(host: &str) -> (Place, FakeModelApi) {
    let rules = [Rule::always(Reply::text("hello"))];
    let (place, api) = openai::stage(rules, "");
    place.file("home/.config/offshoot/config.toml", format!("[host]\n{host}\n"));
    let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    let prices = "[prices.small]\ninputPerMillion = 3\noutputPerMillion = 15\n";
    place.file("c.toml", format!("{config}\n{prices}"));
    (place, api)
}

fn ask(place: &Place, more: &[&str]) -> Outcome {
    let words = ["--config", "c.toml", "-q", "run", "--runtime", "openai"];
    place.run(&[&words[..], more, &["x"]].concat())
}

#[test]
fn what_was_spent_is_gone_for_the_day() {
    let (place, _api) = paid("usdPerDay = 1");
    ask(&place, &["--budget-usd", "1"]).expect_code(0);
    let spent = "$0.000105 of it spent or reserved: $1.00 more is too much";
    refused(ask(&place, &["--budget-usd", "1"]), spent, "--budget-usd 0.999895");
    ask(&place, &["--budget-usd", "0.999895"]).expect_code(0);
}

#[test]
fn a_tree_that_nothing_bounds_is_not_opened() {
    let (place, api) = paid("tokensPerDay = 100000");
    let outcome = ask(&place, &[]).expect_code(2);
    let said = "host.tokensPerDay is set, and the tree has no budget in tokens";
    assert!(outcome.text().contains(said), "{}", outcome.text());
    assert!(outcome.text().contains("give it one with --budget-tokens"), "{}", outcome.text());
    assert!(api.conversations().is_empty());
    ask(&place, &["--budget-tokens", "50000"]).expect_code(0);
}

#[test]
fn what_a_killed_tree_had_reserved_is_spent_until_it_goes_on() {
    let one = user("usdPerDay = 5");
    let other = neighbour(&one);
    let (_, child) = holds(&one, ["--budget-usd", "3"]);
    kill(&one, child);
    refused(run(&other, &["--budget-usd", "3"]), "$3.00 of it spent or reserved", "--budget-usd 2");
    run(&other, &["--budget-usd", "2"]).expect_code(0);
    let mut resume = one.command(&["-q", "resume", "last"]);
    let child = resume.spawn().expect("the program was built for this test");
    ends(&one, (resume, child));
    run(&other, &["--budget-usd", "5"]).expect_code(0);
}

/// The operator does not want it to go on: what was reserved for it is free again, and nothing of it has run.
#[test]
fn what_a_killed_tree_had_reserved_is_free_once_it_is_cancelled() {
    let one = user("usdPerDay = 5");
    let other = neighbour(&one);
    let (_, child) = holds(&one, ["--budget-usd", "3"]);
    kill(&one, child);
    refused(run(&other, &["--budget-usd", "3"]), "$3.00 of it spent or reserved", "");
    for _ in 0..2 {
        // The second time nothing changes.
        one.run(&["cancel", "last"]).expect_code(0);
        run(&other, &["--budget-usd", "5"]).expect_code(0);
    }
}

#[test]
fn a_budget_is_raised_by_what_the_day_has_left() {
    let place = user("usdPerDay = 5");
    let live = holds(&place, ["--budget-usd", "3"]);
    let raise = |add: &str| place.run(&["budget", "last", "--add", add]);
    let over = raise("2.5").expect_code(3);
    assert!(over.text().contains("$3.00 of it spent or reserved: $2.50 more"), "{}", over.text());
    assert!(over.text().contains("ask for less with --add 2.00"), "{}", over.text());
    raise("2").expect_code(0);
    refused(run(&neighbour(&place), &["--budget-usd", "0.5"]), "$5.00 of it spent or reserved", "");
    ends(&place, live);
}

/// A raise of a run is one of all runs above it, and so of what its tree may spend when it goes on.
#[test]
fn a_raise_of_a_piece_is_reserved_when_its_tree_goes_on() {
    let one = user("usdPerDay = 5");
    let other = neighbour(&one);
    let (_, child) = holds(&one, ["--budget-usd", "2"]);
    one.run(&["budget", "in:1", "--add", "1"]).expect_code(0);
    kill(&one, child);
    let mut resume = one.command(&["-q", "resume", "last"]);
    let child = resume.spawn().expect("the program was built for this test");
    followed_until(&one, "  reopened  ");
    refused(run(&other, &["--budget-usd", "3"]), "$3.00 of it spent or reserved", "--budget-usd 2");
    ends(&one, (resume, child));
}

#[test]
fn a_project_does_not_decide_about_the_days_of_its_user() {
    let place = Place::new();
    place.file("offshoot.toml", "[host]\nusdPerDay = 1000\n");
    let outcome = place.run(&["--config", "offshoot.toml", "config", "show"]);
    let said = "`host` may only stand in the system or user file";
    assert!(outcome.text().contains(said), "{}", outcome.text());
}
