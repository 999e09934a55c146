//! Models behind a chat endpoint that are asked through the meter.

use std::fs;

use offshoot_fake_model_api::{Break, FakeModelApi, Reply, Rule};

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
