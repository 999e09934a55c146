//! A wait for children, and what it brings: the operation `wait` of `RunHost`.

use std::time::Duration;

use offshoot_model::{
    AgentId, Cost, Envelope, EnvelopeError, Payload, RunId, RunStatus, SessionKey, Usage,
};
use offshoot_runtime::{WaitAnswer, WaitFor, WaitMode};
use serde::{Deserialize, Serialize};

use super::{V, from_json, to_json, versioned};
use crate::AbiError;

/// The document of a wait.
pub fn encode(wait: WaitFor) -> String {
    let document = Document {
        v: V,
        runs: wait.runs,
        mode: match wait.mode {
            WaitMode::All => Mode::All,
            WaitMode::Any => Mode::Any,
        },
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
    let mode = match mode {
        Mode::All => WaitMode::All,
        Mode::Any => WaitMode::Any,
    };
    Ok(WaitFor { runs, mode, timeout: timeout_ms.map(Duration::from_millis) })
}

/// The document of what a wait brought.
///
/// # Errors
/// [`AbiError::INVALID`] where it cannot be written.
pub fn encode_answer(answer: WaitAnswer) -> Result<String, AbiError> {
    let WaitAnswer { ended, pending } = answer;
    let ended = ended.into_iter().map(Ended::from).collect();
    to_json(&AnswerDocument { v: V, ended, pending }, "answer to wait")
}

/// What a wait brought, of its document.
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
    v: u32,
    #[serde(default)]
    runs: Vec<RunId>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    #[default]
    All,
    Any,
}

#[derive(Serialize, Deserialize)]
struct AnswerDocument {
    v: u32,
    ended: Vec<Ended>,
    pending: Vec<RunId>,
}

versioned!(Document, AnswerDocument);

/// An envelope that can be read again: its data says whether it is text, JSON or a reference.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    status: RunStatus,
    #[serde(default)]
    data: Option<Payload>,
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
struct Fault {
    code: String,
    message: String,
    #[serde(default)]
    recovery_suggestion: Option<String>,
    parent_can_retry: bool,
}

impl From<Envelope> for Ended {
    fn from(envelope: Envelope) -> Self {
        Self {
            status: envelope.status,
            data: envelope.data,
            error: envelope.error.map(|error| Fault {
                code: error.code,
                message: error.message,
                recovery_suggestion: error.recovery_suggestion,
                parent_can_retry: error.parent_can_retry,
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
        Self {
            status: ended.status,
            data: ended.data,
            error: ended.error.map(|error| EnvelopeError {
                code: error.code,
                message: error.message,
                recovery_suggestion: error.recovery_suggestion,
                parent_can_retry: error.parent_can_retry,
            }),
            partial: ended.partial,
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
