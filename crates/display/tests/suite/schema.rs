//! The printed JSON, checked against the schema.

use jsonschema::Validator;
use offshoot_display::json::{Format, event_schema, write_event};
use offshoot_model::{Ending, Event, EventKind, Payload, Reason, Timestamp};
use offshoot_test_support::scenario;
use proptest::prelude::*;
use serde_json::{Value, json};

fn validator() -> Validator {
    jsonschema::validator_for(&event_schema()).expect("the schema is a schema")
}

fn line(event: &Event, format: Format) -> String {
    let mut line = Vec::new();
    write_event(event, format, &mut line).expect("memory takes everything");
    String::from_utf8(line).expect("a line is text")
}

fn printed(event: &Event) -> Value {
    serde_json::from_str(&line(event, Format::V2)).expect("a line is JSON")
}

#[test]
fn every_event_is_as_the_schema_says() {
    let (validator, schema) = (validator(), event_schema().to_string());
    for event in scenario::everything() {
        let line = printed(&event);
        let errors: Vec<String> =
            validator.iter_errors(&line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
        assert!(schema.contains(&format!("\"{}\"", event.kind.name())), "{}", event.kind.name());
    }
}

#[test]
fn what_is_no_event_is_refused_and_what_is_new_is_not() {
    let validator = validator();
    let whole = printed(&scenario::everything()[0]);
    let mut newer = whole.clone();
    newer["kind"]["aFieldFromTheFuture"] = json!(1);
    assert!(validator.is_valid(&newer));
    for key in ["root", "seq", "at", "run", "kind"] {
        let mut less = whole.clone();
        less.as_object_mut().expect("an object").remove(key);
        assert!(!validator.is_valid(&less), "without {key}");
    }
    for (pointer, wrong) in [
        ("/root", json!("not a run")),
        ("/seq", json!(-1)),
        ("/at", json!(1_754_049_600_001_999_u64)),
        ("/kind", json!("admitted")),
        ("/kind/type", json!("unheard_of")),
        ("/kind/depth", json!("deep")),
        ("/kind/grant/budget/tokens", json!("many")),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(pointer).expect("it is missing") = wrong;
        assert!(!validator.is_valid(&changed), "{pointer}");
    }
}

/// The moment of a reset that an event has besides its own.
fn reset(event: &Event) -> Option<Timestamp> {
    match &event.kind {
        EventKind::BacksOff { until, .. }
        | EventKind::Parked { until, .. }
        | EventKind::QuotaSeen { until, .. } => Some(*until),
        EventKind::Ended(ending) => match ending.reason {
            Reason::Quota { until, .. } => until,
            _ => None,
        },
        _ => None,
    }
}

/// The line of version 1, made of that of version 2.
fn back(line: &str, event: &Event) -> String {
    let (name, micros) = (event.kind.name(), event.at.as_micros());
    let word = format!("\"kind\":{{\"type\":\"{name}\"");
    let (head, rest) = line.split_once(&word).expect("a kind has a type");
    let head = head.replace(&format!("\"at\":\"{}\"", event.at), &format!("\"at\":{micros}"));
    if rest == "}}\n" {
        return format!("{head}\"kind\":\"{name}\"}}\n");
    }
    let fields = rest.strip_prefix(',').unwrap_or(rest);
    let field = if name == "resumed" { "after" } else { "reason" };
    let [tagged, of_record] = ["type", "kind"].map(|tag| format!("\"{field}\":{{\"{tag}\":"));
    let mut fields = fields.replacen(&tagged, &of_record, 1);
    if let Some(until) = reset(event) {
        let written = format!("\"until\":\"{until}\"");
        fields = fields.replace(&written, &format!("\"until\":{}", until.as_micros()));
    }
    let end = fields.strip_suffix("}\n").expect("a line is an object");
    format!("{head}\"kind\":{{\"{name}\":{{{end}}}}}\n")
}

#[test]
fn the_second_version_has_all_of_the_first() {
    for event in scenario::everything() {
        let [first, second] = [Format::V1, Format::V2].map(|format| line(&event, format));
        assert_eq!(back(&second, &event), first);
        assert_eq!(serde_json::from_str::<Event>(&first).expect("it is the recorded form"), event);
        let kind = &printed(&event)["kind"];
        assert_eq!(kind["type"], event.kind.name(), "{kind}");
    }
}

/// JSON with the words of which events are made.
fn answer() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i64>().prop_map(Value::from), ".{0,9}".prop_map(Value::from)];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let name = prop::sample::select(vec!["kind", "type", "at", "reason", "after", "ended"]);
        let fields = prop::collection::vec((name, inner.clone()), 0..4);
        let object = |fields: Vec<(&str, Value)>| {
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(object)
        ]
    })
}

proptest! {
    #[test]
    fn no_byte_of_an_answer_changes(answer in answer()) {
        let answer = serde_json::to_string_pretty(&answer).expect("plain data");
        let ending = Ending::completed(Payload::json(answer.clone()).expect("it is JSON"));
        let kind = EventKind::Ended(Box::new(ending));
        let event = Event { kind, ..scenario::everything().remove(0) };
        let [first, second] = [Format::V1, Format::V2].map(|format| line(&event, format));
        prop_assert!(second.contains(&answer));
        prop_assert_eq!(back(&second, &event), first);
    }
}
