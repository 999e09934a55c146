//! An answer against a schema.

use std::borrow::Cow;

use offshoot_model::{JsonText, json_error};
use serde_json::Value;

use crate::{ANSWER_BYTES, SchemaError, compile, on_a_deep_stack, read, steps};

/// The way in which an answer has the form that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// As the JSON that it is.
    Json(String),
    /// As a text that is no JSON, where a string was asked for.
    Text,
}

/// Compares an answer with a schema. A fence of Markdown around JSON is no part of the answer, and an answer that is no JSON is a
/// string. Blocks while it computes.
///
/// # Errors
/// Names the part of the answer that is wrong.
pub fn check_answer(schema: &JsonText, answer: &str) -> Result<Fit, SchemaError> {
    if answer.len() > ANSWER_BYTES {
        let size = answer.len();
        return Err(SchemaError::whole(format!(
            "the answer has {size} bytes, and at most {ANSWER_BYTES} are compared with a schema"
        )));
    }
    let schema = read(schema)?;
    let bare = without_fence(answer);
    on_a_deep_stack(|| {
        let json = serde_json::from_str::<Value>(&bare);
        let wrong = match &json {
            Ok(value) => match fits(&schema, value) {
                Ok(()) => return Ok(Fit::Json(bare.into_owned())),
                Err(wrong) => wrong,
            },
            Err(error) => {
                let why = json_error(&bare, error);
                SchemaError::whole(format!("the answer is not JSON: {why}"))
            }
        };
        // A word, or digits, where a string was asked for.
        let is_bare = !bare.trim_start().starts_with(['{', '[', '"']);
        if !is_bare {
            return Err(wrong);
        }
        let text = Value::String(answer.trim().to_owned());
        match fits(&schema, &text) {
            Ok(()) => Ok(Fit::Text),
            // That it is no JSON is no fault where a string is asked for.
            Err(as_text) if json.is_err() && is_for_text(&schema) => Err(as_text),
            Err(_) => Err(wrong),
        }
    })
}

/// True if a schema asks for a string, and nothing else.
fn is_for_text(schema: &Value) -> bool {
    let of_type = |kind: &Value| kind == "string";
    let by_type = schema.get("type").is_some_and(of_type);
    let choices = schema.get("enum").and_then(Value::as_array);
    by_type || choices.is_some_and(|choices| choices.iter().all(Value::is_string))
}

fn fits(schema: &Value, value: &Value) -> Result<(), SchemaError> {
    steps::check(schema, value)?;
    let validator = compile(schema)?;
    validator.validate(value).map_err(|error| SchemaError::of(&error))
}

/// Returns the text between the fences, where the whole answer stands between two.
fn without_fence(answer: &str) -> Cow<'_, str> {
    let text = answer.trim();
    let inner = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let inner = inner.and_then(|text| text.split_once('\n')).filter(|(word, inner)| {
        word.trim().chars().all(char::is_alphanumeric) && !inner.contains("```")
    });
    Cow::Borrowed(inner.map_or(text, |(_, inner)| inner.trim()))
}
