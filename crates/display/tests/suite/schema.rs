//! The printed JSON, checked against the schema.

use jsonschema::Validator;
use offshoot_display::json::write_event;
use offshoot_model::{Event, event_schema};
use offshoot_test_support::scenario;
use serde_json::{Value, json};

fn validator() -> Validator {
    jsonschema::validator_for(event_schema().as_value()).expect("the schema is a schema")
}

fn printed(event: &Event) -> Value {
    let mut line = Vec::new();
    write_event(event, &mut line).expect("memory takes everything");
    serde_json::from_slice(&line).expect("a line is JSON")
}

#[test]
fn every_event_is_as_the_schema_says() {
    let (validator, schema) = (validator(), event_schema().as_value().to_string());
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
    newer["kind"]["admitted"]["aFieldFromTheFuture"] = json!(1);
    assert!(validator.is_valid(&newer));
    for key in ["root", "seq", "at", "run", "kind"] {
        let mut less = whole.clone();
        less.as_object_mut().expect("an object").remove(key);
        assert!(!validator.is_valid(&less), "without {key}");
    }
    for (pointer, wrong) in [
        ("/root", json!("not a run")),
        ("/seq", json!(-1)),
        ("/at", json!("noon")),
        ("/kind", json!("unheard_of")),
        ("/kind/admitted/depth", json!("deep")),
        ("/kind/admitted/grant/budget/tokens", json!("many")),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(pointer).expect("it is missing") = wrong;
        assert!(!validator.is_valid(&changed), "{pointer}");
    }
}
