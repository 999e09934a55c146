//! The end of a run: the answer of `outcome`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use abi_stable::std_types::RVec;
use offshoot_model::{Cost, JsonText, Reason, Usage, ValueKind, path_text};
use offshoot_runtime::{Finished, Output};
use serde::{Deserialize, Serialize};

use super::word::{self, Word};
use super::{Must, Version, from_json, to_json};
use crate::{AbiError, Outcome};

/// The outcome of a finished run. Its answer is copied once, as the bytes that it is.
///
/// # Errors
/// [`AbiError::INVALID`] where it cannot be written.
pub fn encode(finished: &Finished) -> Result<Outcome, AbiError> {
    let (output, body): (_, &[u8]) = match &finished.output {
        Output::None => (Body::None, &[]),
        Output::Text(text) => (Body::Text, text.as_bytes()),
        Output::Json(json) => (Body::Json, json.as_str().as_bytes()),
        Output::Bytes(bytes) => (Body::Bytes, bytes),
        Output::File { path, kind } => (Body::File { path: path.clone(), kind: *kind }, &[]),
    };
    let head = Head {
        v: Version,
        must: Must,
        reason: finished.reason.clone(),
        output: Word::Known(output),
        diagnostics: finished.diagnostics.clone(),
        usage: finished.usage,
        cost: finished.cost,
        retry_after_ms: finished
            .retry_after
            .map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
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
        Word::Known(Body::None) => Output::None,
        Word::Known(Body::Text) => Output::Text(text(&outcome.body)?),
        Word::Known(Body::Json) => {
            let text = String::from_utf8(outcome.body.into_vec())
                .map_err(|error| is_not("text", &error))?;
            Output::Json(JsonText::parse(text).map_err(|error| is_not("JSON", &error))?)
        }
        // The body is the answer, whatever a later version calls it. An answer that is not in the body says so by `must`.
        Word::Known(Body::Bytes) | Word::Other(_) => Output::Bytes(outcome.body.as_slice().into()),
        Word::Known(Body::File { path, kind }) => Output::File { path, kind },
    };
    let Head { reason, diagnostics, usage, cost, retry_after_ms, .. } = head;
    let retry_after = retry_after_ms.map(Duration::from_millis);
    Ok(Finished { reason, output, diagnostics, usage, cost, retry_after })
}

#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(deserialize_with = "word::reason")]
    reason: Reason,
    output: Word<Body>,
    diagnostics: Option<String>,
    /// The usage of the run. Where it is absent, the usage that the run told last holds.
    usage: Option<Usage>,
    cost: Option<Cost>,
    /// The time after which it may be tried again, where the party that refused it said so.
    retry_after_ms: Option<u64>,
}

/// The kind of the body.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Body {
    None,
    Text,
    Json,
    Bytes,
    File {
        #[serde(with = "path_text")]
        path: PathBuf,
        #[serde(deserialize_with = "word::kind")]
        kind: ValueKind,
    },
}
