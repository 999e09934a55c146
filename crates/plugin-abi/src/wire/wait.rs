//! A wait for children, and what it brings: the operation `wait` of `RunHost`.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    AgentId, Cost, Envelope, EnvelopeError, JsonText, Payload, RunId, RunStatus, SaidError,
    SessionKey, Usage, VariableRef,
};
use offshoot_runtime::{WaitAnswer, WaitFor, WaitMode};
use serde::{Deserialize, Serialize};

use super::word::{self, Word};
use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// The document of a wait.
pub fn encode(wait: WaitFor) -> String {
    let document = Document {
        v: Version,
        must: Must,
        runs: wait.runs,
        mode: wait.mode,
        timeout_ms: wait
            .timeout
            .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
    };
    to_json(&document, "wait").expect("ids and numbers are always JSON")
}

/// The wait of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<WaitFor, AbiError> {
    let Document { runs, mode, timeout_ms, .. } = from_json(json, "wait")?;
    Ok(WaitFor { runs, mode, timeout: timeout_ms.map(Duration::from_millis) })
}

/// The document of what a wait brought.
///
/// # Errors
/// [`AbiError::INVALID`] where it cannot be written.
pub fn encode_answer(answer: WaitAnswer) -> Result<String, AbiError> {
    let WaitAnswer { ended, pending } = answer;
    let ended = ended.into_iter().map(Ended::from).collect();
    to_json(&AnswerDocument { v: Version, must: Must, ended, pending }, "answer to wait")
}

/// Reads what a wait brought.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_answer(json: &str) -> Result<WaitAnswer, AbiError> {
    let AnswerDocument { ended, pending, .. } = from_json(json, "answer to wait")?;
    Ok(WaitAnswer { ended: ended.into_iter().map(Envelope::from).collect(), pending })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(default)]
    runs: Vec<RunId>,
    #[serde(default)]
    mode: WaitMode,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct AnswerDocument {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    ended: Vec<Ended>,
    pending: Vec<RunId>,
}

/// An envelope that can be read again: its data says whether it is text, JSON or a reference.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    status: Word<RunStatus>,
    #[serde(default)]
    data: Option<Word<Data>>,
    #[serde(default)]
    error: Option<Fault>,
    #[serde(default)]
    partial: bool,
    session_key: SessionKey,
    run_id: RunId,
    agent: AgentId,
    depth: u32,
    usage: Usage,
    cost: Cost,
    execution_time_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Data {
    Text(Arc<str>),
    Json(JsonText),
    Stored(#[serde(with = "word::Reference")] VariableRef),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fault {
    code: String,
    message: String,
    #[serde(default)]
    recovery_suggestion: Option<String>,
    parent_can_retry: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    said: Option<Box<SaidError>>,
}

impl From<Payload> for Data {
    fn from(payload: Payload) -> Self {
        match payload {
            Payload::Text(text) => Self::Text(text),
            Payload::Json(json) => Self::Json(json),
            Payload::Stored(reference) => Self::Stored(reference),
        }
    }
}

impl From<Data> for Payload {
    fn from(data: Data) -> Self {
        match data {
            Data::Text(text) => Self::Text(text),
            Data::Json(json) => Self::Json(json),
            Data::Stored(reference) => Self::Stored(reference),
        }
    }
}

impl From<Fault> for EnvelopeError {
    fn from(fault: Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            recovery_suggestion: fault.recovery_suggestion,
            parent_can_retry: fault.parent_can_retry,
            said: fault.said,
        }
    }
}

impl From<Envelope> for Ended {
    fn from(envelope: Envelope) -> Self {
        Self {
            status: Word::Known(envelope.status),
            data: envelope.data.map(|data| Word::Known(data.into())),
            error: envelope.error.map(|error| Fault {
                code: error.code,
                message: error.message,
                recovery_suggestion: error.recovery_suggestion,
                parent_can_retry: error.parent_can_retry,
                said: error.said,
            }),
            partial: envelope.partial,
            session_key: envelope.session_key,
            run_id: envelope.run_id,
            agent: envelope.agent,
            depth: envelope.depth,
            usage: envelope.usage,
            cost: envelope.cost,
            execution_time_ms: envelope.execution_time_ms,
        }
    }
}

impl From<Ended> for Envelope {
    fn from(ended: Ended) -> Self {
        let mut error = ended.error.map(EnvelopeError::from);
        let mut unknown = |what: &str, word: String| {
            error.get_or_insert_with(|| EnvelopeError {
                message: format!("its {what} is `{word}`, which is not known here"),
                code: word,
                recovery_suggestion: None,
                parent_can_retry: false,
                said: None,
            });
        };
        let status = match ended.status {
            Word::Known(status) => status,
            Word::Other(word) => {
                unknown("status", word);
                RunStatus::Lost
            }
        };
        let data = match ended.data {
            Some(Word::Known(data)) => Some(data.into()),
            Some(Word::Other(word)) => {
                unknown("kind of answer", word);
                None
            }
            None => None,
        };
        Self {
            status,
            data,
            error,
            partial: ended.partial,
            changes: None,
            session_key: ended.session_key,
            run_id: ended.run_id,
            agent: ended.agent,
            depth: ended.depth,
            usage: ended.usage,
            cost: ended.cost,
            execution_time_ms: ended.execution_time_ms,
        }
    }
}
