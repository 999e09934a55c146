//! The results of tools.

use offshoot_door::{ClientError, WireRefusal};
use offshoot_model::{JsonText, Refusal};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

/// The reason why a tool has no answer. For the model all of it is a result, with `isError`.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// The answer is no, by the door or because of the arguments.
    Refused(Box<WireRefusal>),
    /// The call could not be done.
    Failed { message: String, hint: Option<String> },
}

/// A result as structured content, and the same as text for clients that know only that.
pub(crate) fn answer(result: Result<JsonText, CallFailure>) -> CallToolResult {
    match result {
        Ok(json) => both(CallToolResult::structured, json),
        Err(failure) => both(CallToolResult::structured_error, failure.json()),
    }
}

/// A result as text alone: Claude Code takes the answer of its permission tool in no other form.
pub(crate) fn text(result: Result<JsonText, CallFailure>) -> CallToolResult {
    let mut answer = answer(result);
    answer.structured_content = None;
    answer
}

/// An answer of the door, as it is on the wire.
pub(crate) fn json(answer: &impl Serialize) -> JsonText {
    JsonText::of(answer).expect("answers are plain data")
}

impl CallFailure {
    /// A call that is wrong in itself.
    pub(crate) fn invalid(field: &str, message: impl ToString) -> Self {
        Self::Refused(Box::new(WireRefusal::from(&Refusal::invalid(field, message.to_string()))))
    }

    pub(crate) fn json(&self) -> JsonText {
        match self {
            Self::Refused(refused) => json(refused),
            // In the shape of a refusal.
            Self::Failed { message, hint } => {
                let mut failed =
                    serde_json::json!({ "status": "error", "code": "failed", "message": message });
                if let Some(hint) = hint {
                    failed["hint"] = hint.as_str().into();
                }
                json(&failed)
            }
        }
    }
}

impl From<ClientError> for CallFailure {
    fn from(error: ClientError) -> Self {
        let hint = error.hint().map(str::to_owned);
        match error {
            ClientError::Refused(refused) => Self::Refused(refused),
            ClientError::File { path, source } => {
                Self::invalid("path", format_args!("cannot read {}: {source}", path.display()))
            }
            other => Self::Failed { message: other.to_string(), hint },
        }
    }
}

/// The text is the JSON as it came: numbers that a tree of values would round stay whole in it.
fn both(result: fn(serde_json::Value) -> CallToolResult, json: JsonText) -> CallToolResult {
    let value = serde_json::from_str(json.as_str()).expect("a JSON text is JSON");
    let mut result = result(value);
    result.content = vec![ContentBlock::text(json.as_str())];
    result
}
