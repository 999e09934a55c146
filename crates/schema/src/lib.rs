//! The form that an answer must have: a JSON Schema that is bounded, and answers against it.
//!
//! ```text
//!  schema ──▶ check_schema ──▶ Ok | SchemaError { path, message }      when a run is asked for
//!  answer ──▶ check_answer ──▶ Fit | SchemaError { path, message }     when a turn is over
//! ```
//!
//! Promise: both come back, whatever they are given. A schema comes from one agent and an answer from another, and either may be
//! made to take for ever: nothing is fetched, sizes and depths are bounded, and the steps of a check are counted before it.
//!
//! ```
//! use offshoot_model::JsonText;
//! use offshoot_schema::{check_answer, check_schema};
//!
//! let schema = JsonText::parse(r#"{"type": "object", "required": ["commit"]}"#.into())?;
//! check_schema(&schema)?;
//! assert!(check_answer(&schema, r#"{"commit": "abc123"}"#).is_ok());
//! let wrong = check_answer(&schema, "{}").expect_err("a field is missing");
//! assert_eq!(wrong.to_string(), "\"commit\" is a required property");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod graph;
mod steps;

use offshoot_model::JsonText;
use serde_json::Value;

pub use answer::{Fit, check_answer};

/// The largest schema, in bytes.
pub const SCHEMA_BYTES: usize = 64 * 1024;

/// The largest answer that is checked, in bytes.
pub const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// A fault of a schema, or of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", shown(path, message))]
pub struct SchemaError {
    /// A JSON pointer to the part that is wrong; empty for the whole.
    pub path: String,
    /// The fault, in one line.
    pub message: String,
}

/// Checks that answers can be compared with a schema.
///
/// # Errors
/// Names the part that is wrong, too large, or leads out of the document.
pub fn check_schema(schema: &JsonText) -> Result<(), SchemaError> {
    let size = schema.as_str().len();
    if size > SCHEMA_BYTES {
        return Err(SchemaError::whole(format!(
            "it has {size} bytes, and at most {SCHEMA_BYTES} are possible"
        )));
    }
    let value = read(schema)?;
    graph::check(&value)?;
    on_a_deep_stack(|| compile(&value).map(drop))
}

impl SchemaError {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    fn whole(message: impl Into<String>) -> Self {
        Self::new("", message)
    }

    /// The fault that the library names. Its text may hold all of a value.
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        const CHARS: usize = 300;
        let text = error.to_string();
        let mut message: String = text.chars().take(CHARS).collect();
        if message.len() < text.len() {
            message.push('…');
        }
        Self::new(error.instance_path().as_str(), message.replace(['\n', '\r'], " "))
    }
}

fn shown(path: &str, message: &str) -> String {
    if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") }
}

fn read(schema: &JsonText) -> Result<Value, SchemaError> {
    // Only nesting beyond what is read makes it fail.
    serde_json::from_str(schema.as_str()).map_err(|error| SchemaError::whole(error.to_string()))
}

fn compile(schema: &Value) -> Result<jsonschema::Validator, SchemaError> {
    let patterns = jsonschema::PatternOptions::regex();
    let options = jsonschema::options().with_pattern_options(patterns);
    // Without its features the library fetches nothing.
    options.build(schema).map_err(|error| SchemaError::of(&error))
}

/// Does work that calls itself as deep as values and schemas are nested.
fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    /// Only what is used of it takes memory.
    const STACK_BYTES: usize = 64 * 1024 * 1024;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread = thread.expect("a thread for a check cannot be started");
        match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests;
