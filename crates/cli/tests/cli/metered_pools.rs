//! Pieces that share a budget and ask their models through the meter.

use std::process::{Command, Stdio};

use offshoot_fake_model_api::{Break, FakeModelApi, Reply, Rule, Script, Usage};

use crate::command::Place;
use crate::metered::{KEY, events, of_kind, prices};
use crate::walls::followed_until;

/// The price of one answer of the service, in millionths of a dollar: 1,000 tokens read.
const ANSWER: u64 = 3_000;

const MAP: [&str; 10] = [
    "--config",
    "c.toml",
    "map",
    "--runtime",
    "openai",
    "--split",
    "lines:1",
    "--task",
    "greet",
    "in",
];

fn stage(more: &str) -> (Place, FakeModelApi) {
    stage_with([], "request = { max_tokens = 100 }\n", more)
}

/// A service that answers by these rules first.
fn stage_with(
    first: impl IntoIterator<Item = Rule>,
    option: &str,
    more: &str,
) -> (Place, FakeModelApi) {
    let used = Usage { input: 1_000, output: 0, ..Usage::default() };
    let rule = Rule::always(Reply::text("hello")).usage(used);
    let rules = first.into_iter().chain([rule]);
    let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
    let place = Place::new();
    let options = format!("baseUrl = \"{}/v1\"\nmodel = \"priced-1\"\n{option}", api.url());
    let runtime =
        format!("[runtimes.openai]\nmeter = \"on\"\n[runtimes.openai.options]\n{options}");
    place.file("c.toml", format!("{runtime}{}\n{more}", prices()));
    (place, api)
}

fn command(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command(words);
    command.env("OPENAI_API_KEY", KEY);
    command
}

/// After the first end each piece takes what that one used, which is less than one request may cost: it gives back what it has while it waits.
#[test]
fn pieces_of_a_pool_do_not_wait_for_each_other_at_the_meter() {
    let (place, api) = stage("");
    place.file("in", "1\n");
    let outcome = place.outcome(command(&place, &[&MAP[..], &["--budget-usd", "1"]].concat()), &[]);
    outcome.expect_code(0);
    let all = events(&place);
    let bound = of_kind(&all, "request_reserved")[0]["micro_usd"].as_u64().expect("it is priced");
    assert!(bound > 3 * ANSWER, "{bound}");
    // The first answer, and a half of what the second piece takes: enough for one more request, where the third gives back what it has.
    place.file("in", "1\n2\n3\n");
    let budget = format!("0.{:06}", bound + ANSWER + ANSWER / 2);
    let words = [&MAP[..], &["--budget-usd", &budget]].concat();
    let outcome = place.outcome(command(&place, &words), &[]).expect_code(4);
    assert_eq!(api.conversations().len(), 1 + 2, "{}", outcome.stderr);
    let (_, more) = outcome.stderr.split_once(" --failed --budget-usd ").expect("what to type");
    let (more, _) = more.split_once("` goes on with the rest").expect("what it does");
    let why = "out of budget (usd): its next request to a model may cost $";
    assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    let all = events(&place);
    let held = of_kind(&all, "request_held");
    assert!(!held.is_empty() && held.iter().all(|held| held["for_others"] == true), "{held:?}");
    let list = place.run(&["list", "--tree", "last", "--all", "--json"]).json();
    let pieces = list.as_array().expect("a list").iter().filter(|run| run["depth"] == 1);
    let mut ends: Vec<&str> = pieces
        .filter_map(|run| run["reason"]["type"].as_str().or(run["status"].as_str()))
        .collect();
    ends.sort_unstable();
    assert_eq!(ends, ["budget", "completed", "completed"], "its budget, and no fault: {list}");
    place.run(&["audit", "last"]).expect_code(0);
    // A tree of which nothing goes on without an option says the same, with the same exit code.
    let resume = ["--config", "c.toml", "resume", "last"];
    let again = place.outcome(command(&place, &resume), &[]).expect_code(4).stderr;
    assert!(again.contains(&format!(" --failed --budget-usd {more}` runs it again")), "{again}");
    assert_eq!(again.matches("--failed").count(), 1, "{again}");
    let words = ["--config", "c.toml", "resume", "last", "--failed", "--budget-usd", more];
    place.outcome(command(&place, &words), &[]).expect_code(0);
    assert_eq!(api.conversations().len(), 1 + 3, "no piece is paid for twice");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_request_that_was_held_and_cancelled_costs_nothing() {
    let (place, api) = stage("[agents.defaults.subagents.budget]\nonCap = \"pause\"\n");
    place.file("in", "1\n");
    let words = [&MAP[..], &["--budget-tokens", "500"]].concat();
    let mut command = command(&place, &words);
    let child = command.spawn().expect("the program was built for this test");
    followed_until(&place, "  request_held  ");
    place.run(&["cancel", "last"]).expect_code(0);
    place.finish(child, &command, &[]).expect_code(1);
    assert_eq!(api.conversations().len(), 0);
    let balance = place.run(&["budget", "last", "--json"]).json();
    let used: Vec<&serde_json::Value> =
        balance.as_array().expect("both units").iter().map(|account| &account["used"]).collect();
    assert_eq!(used, [0, 0], "{balance}");
    place.run(&["audit", "last"]).expect_code(0);
}

/// Returns the amounts that were reserved, in millionths of a dollar.
fn reserved(place: &Place) -> Vec<u64> {
    let all = events(place);
    let amount = |it: &serde_json::Value| it["micro_usd"].as_u64().expect("it is priced");
    of_kind(&all, "request_reserved").into_iter().map(amount).collect()
}

/// A request that names no limit may cost half of what is left. What an attempt before it was charged is not left any more.
#[test]
fn a_further_attempt_asks_for_half_of_what_is_left() {
    let broken = Rule::always(Reply::Broken(Break::Cut)).times(1);
    let (place, _api) = stage_with([broken], "", "");
    place.file("in", "1\n");
    let words = [&MAP[..], &["--retries", "1", "--budget-usd", "0.2"]].concat();
    place.outcome(command(&place, &words), &[]).expect_code(0);
    let [first, second] = reserved(&place)[..] else { panic!("it asked twice") };
    assert!(first >= 100_000 && second < 100_000, "half of 200,000, and less: {first} {second}");
    place.run(&["audit", "last"]).expect_code(0);
}

/// The same across the end of the supervisor: what was under way is charged at its bound.
#[test]
fn a_resumed_piece_asks_for_half_of_what_is_left() {
    let (place, api) = stage_with([Rule::always(Reply::Hang).times(1)], "", "");
    place.file("in", "1\n");
    let words = [&MAP[..], &["--budget-usd", "0.2"]].concat();
    let mut supervisor = command(&place, &words);
    let supervisor = supervisor.stdout(Stdio::null()).stderr(Stdio::null());
    let mut supervisor = supervisor.spawn().expect("the program was built for this test");
    followed_until(&place, "  request_reserved  ");
    let locks = place.locks_of(supervisor.id());
    supervisor.kill().expect("it is a child that was not waited for");
    supervisor.wait().expect("the child cannot be waited for");
    locks.wait();
    let resume = ["--config", "c.toml", "resume", "last"];
    place.outcome(command(&place, &resume), &[]).expect_code(0);
    let [first, second] = reserved(&place)[..] else { panic!("it asked twice") };
    // Of the first bound all but 100,000 is for what is read, and so much the less is left for the second answer.
    let read = first.checked_sub(100_000).expect("half of 200,000 is for the first answer");
    let expected = 50_000 + read / 2;
    assert!(second.abs_diff(expected) < 100, "{first} {second} {expected}");
    assert!(api.conversations().len() <= 2);
    place.run(&["audit", "last"]).expect_code(0);
}
