//! Settings of a plugin against the schema that it has of them.

use offshoot_model::JsonText;
use serde_json::Value;

/// Problems that are told at once; a message is read by people.
const MOST: usize = 5;

/// Returns what is wrong with settings, each with its place. Fails if the schema is none.
pub(crate) fn problems(schema: &JsonText, settings: &JsonText) -> Result<Vec<String>, String> {
    let schema: Value = read(schema);
    // Without its features this fetches nothing: a schema stands for itself.
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    let settings: Value = read(settings);
    let told = validator.iter_errors(&settings).take(MOST).map(|error| {
        match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{place}: {error}"),
        }
    });
    Ok(told.collect())
}

fn read(json: &JsonText) -> Value {
    serde_json::from_str(json.as_str()).expect("JSON text is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_has_its_place() {
        let json = |text: &str| JsonText::parse(text.to_owned()).expect("JSON");
        let schema = json(
            r#"{"type":"object","properties":{"level":{"type":"integer"},"in":{"type":"object",
                "properties":{"a":{"type":"string"}}}},"required":["level"]}"#,
        );
        #[track_caller]
        fn check(found: Result<Vec<String>, String>, expected: &[&str]) {
            let found = found.expect("it is a schema");
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{found}");
            }
        }
        check(problems(&schema, &json(r#"{"level":3}"#)), &[]);
        check(problems(&schema, &json("{}")), &["\"level\" is a required property"]);
        let wrong = json(r#"{"level":"high","in":{"a":1}}"#);
        check(problems(&schema, &wrong), &["/level: \"high\" is not", "/in/a: 1 is not"]);
        problems(&json(r#"{"type":"nothing"}"#), &json("{}")).expect_err("no schema");
        // A schema that only leads back to itself says nothing, and a pattern that takes for ever is given up.
        check(problems(&json(r##"{"$ref":"#"}"##), &json("{}")), &[]);
        let slow = json(r#"{"properties":{"a":{"pattern":"^(a|a)*(?=b)$"}}}"#);
        let long = json(&format!(r#"{{"a":"{}"}}"#, "a".repeat(64)));
        check(problems(&slow, &long), &["/a: "]);
    }
}
