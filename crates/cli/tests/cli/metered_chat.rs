//! Models behind a chat endpoint that are asked through the meter.

use std::fs;

use offshoot_fake_model_api::{ApiError, Break, Condition, FakeModelApi, Reply, Rule};

use crate::command::{Outcome, Place};
use crate::metered::{KEY, events, of_kind, prices};
use crate::openai;

/// Asks a model once through the meter.
fn ask(rule: Rule) -> (Place, FakeModelApi, Outcome) {
    let (place, api) = openai::stage([rule], "keyVariable = \"OPERATOR_KEY\"\n");
    let prices = prices().replace("priced-1", "small");
    let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    place.file("c.toml", format!("{config}\n[runtimes.openai]\nmeter = \"on\"\n\n{prices}"));
    let arguments =
        ["--config", "c.toml", "-q", "run", "--runtime", "openai", "--budget-usd", "1", "x"];
    let mut command = place.command(&arguments);
    command.env("OPERATOR_KEY", KEY);
    let outcome = place.outcome(command, &[]);
    (place, api, outcome)
}

#[test]
fn models_behind_a_chat_endpoint_are_metered() {
    let (place, api, outcome) = ask(Rule::always(Reply::text("hello")));
    assert_eq!(outcome.expect_code(0).stdout(), "hello\n");
    let shows = format!("Bearer {KEY}");
    assert!(api.requests().iter().all(|it| it.authorization.as_deref() == Some(&*shows)));
    let events = events(&place);
    let settled = of_kind(&events, "request_settled");
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0]["cost"]["meteredUsd"].as_f64(), Some(0.000105));
    place.run(&["audit", "last"]).expect_code(0);
}

/// The meter passes on what the service sends: the error does not name the address of the meter, which is not at fault.
#[test]
fn a_service_that_sends_garbage_is_told_apart_from_the_meter() {
    let (place, _api, outcome) = ask(Rule::always(Reply::Broken(Break::Garbage)));
    let said = "the service behind the meter sent what is no answer of a chat: \"{not json\"";
    let stderr = outcome.expect_code(1).stderr;
    assert!(stderr.contains(said) && !stderr.contains("127.0.0.1"), "{stderr}");
    place.run(&["audit", "last"]).expect_code(0);
}

/// The record names the model that has answered, and not the one that was asked for, which is not there.
#[test]
fn a_model_that_stands_in_is_on_record() {
    let missing = ApiError::new(404, "model_not_found", "no such model");
    let rules = [
        Rule::when(Condition::Model("small".into()), Reply::Error(missing)),
        Rule::always(Reply::text("hello")),
    ];
    for metered in [true, false] {
        let more = "keyVariable = \"OPERATOR_KEY\"\nfallbackModels = [\"large\"]\n";
        let (place, _api) = openai::stage(rules.clone(), more);
        let prices = ["small", "large"].map(|model| prices().replace("priced-1", model)).concat();
        let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
        let meter = if metered { "[runtimes.openai]\nmeter = \"on\"\n" } else { "" };
        place.file("c.toml", format!("{config}\n{meter}\n{prices}"));
        let words = ["--config", "c.toml", "-q", "run", "--runtime", "openai", "x"];
        let mut command = place.command(&words);
        command.env("OPERATOR_KEY", KEY);
        place.outcome(command, &[]).expect_code(0);
        let events = events(&place);
        let changes = of_kind(&events, "model_changed");
        assert_eq!(changes.len(), 1, "{metered}");
        assert_eq!(changes[0]["model"], "large", "{metered}");
        let shown = place.run(&["show", "last"]).expect_code(0);
        let shown = shown.stdout();
        let row = shown.lines().find_map(|line| line.strip_prefix("model  "));
        let expected = if metered { "small, large" } else { "large" };
        assert_eq!(row.map(str::trim), Some(expected), "{shown}");
        let stats = place.run(&["stats", "--json"]).expect_code(0).json();
        let of_large = &stats["models"]["large"];
        assert_eq!(of_large["usage"]["input"], 10, "{stats}");
        assert_eq!(of_large["usage"]["output"], 5, "{stats}");
        place.run(&["audit", "last"]).expect_code(0);
    }
}
