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
        let text = Value::String(answer.trim().to_owned());
        match is_bare && fits(&schema, &text).is_ok() {
            true => Ok(Fit::Text),
            false => Err(wrong),
        }
    })
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
