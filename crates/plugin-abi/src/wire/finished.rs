//! How a run ended: what `outcome` brings.

use std::path::PathBuf;
use std::sync::Arc;

use abi_stable::std_types::RVec;
use offshoot_model::{Cost, JsonText, Reason, Usage, ValueKind};
use offshoot_runtime::{Finished, Output};
use serde::{Deserialize, Serialize};

use super::{V, from_json, text_path, to_json, versioned};
use crate::{AbiError, Outcome};

/// The outcome of a finished run. Its answer is copied once, as the bytes that it is.
///
/// # Errors
/// [`AbiError::INVALID`] where the path of an output file is not UTF-8.
pub fn encode(finished: &Finished) -> Result<Outcome, AbiError> {
    if let Output::File { path, .. } = &finished.output {
        text_path("the answer", path)?;
    }
    let (output, body): (_, &[u8]) = match &finished.output {
        Output::None => (Body::None, &[]),
        Output::Text(text) => (Body::Text, text.as_bytes()),
        Output::Json(json) => (Body::Json, json.as_str().as_bytes()),
        Output::Bytes(bytes) => (Body::Bytes, bytes),
        Output::File { path, kind } => (Body::File { path: path.clone(), kind: *kind }, &[]),
    };
    let head = Head {
        v: V,
        reason: finished.reason.clone(),
        output,
        diagnostics: finished.diagnostics.clone(),
        usage: finished.usage,
        cost: finished.cost,
    };
    Ok(Outcome { head_json: to_json(&head, "outcome")?.into(), body: RVec::from(body) })
}

/// The finished run of an outcome.
///
/// # Errors
/// [`AbiError::INVALID`] where the head is none, or the body is not what the head says.
pub fn decode(outcome: Outcome) -> Result<Finished, AbiError> {
    let head: Head = from_json(&outcome.head_json, "outcome")?;
    let is_not = |what: &str, error: &dyn std::fmt::Display| {
        AbiError::new(AbiError::INVALID, format!("outcome: its answer is not {what}: {error}"))
    };
    let text = |body: &RVec<u8>| {
        std::str::from_utf8(body).map(Arc::<str>::from).map_err(|error| is_not("text", &error))
    };
    let output = match head.output {
        Body::None => Output::None,
        Body::Text => Output::Text(text(&outcome.body)?),
        Body::Json => {
            let text = String::from_utf8(outcome.body.into_vec())
                .map_err(|error| is_not("text", &error))?;
            Output::Json(JsonText::parse(text).map_err(|error| is_not("JSON", &error))?)
        }
        Body::Bytes => Output::Bytes(outcome.body.as_slice().into()),
        Body::File { path, kind } => Output::File { path, kind },
    };
    let Head { reason, diagnostics, usage, cost, .. } = head;
    Ok(Finished { output, diagnostics, usage, cost, ..Finished::of(reason) })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    v: u32,
    reason: Reason,
    output: Body,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diagnostics: Option<String>,
    /// Where it is absent, what the run told last holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

versioned!(Head);

/// What the body is.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Body {
    None,
    Text,
    Json,
    Bytes,
    File { path: PathBuf, kind: ValueKind },
}
