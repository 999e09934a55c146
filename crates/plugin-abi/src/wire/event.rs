//! The events of a run: kind and payload of `event`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{ContentHash, Cost, ProcessIdentity, ToolInput, ToolUse, Usage};
use offshoot_runtime::{RunEvent, Secrets};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Must, Version, from_json, to_json};
use crate::{AbiError, event};

/// Kind and payload of an event.
pub fn encode(told: &RunEvent) -> (u32, Cow<'_, str>) {
    let json = |document: Result<String, AbiError>| {
        Cow::Owned(document.expect("numbers and words are always JSON"))
    };
    match told {
        RunEvent::Started(process) => {
            let status = Status { process: *process, ..Status::of(STARTED) };
            (event::STATUS, json(to_json(&status, "status")))
        }
        RunEvent::Progress(text) => (event::TEXT, Cow::Borrowed(text)),
        RunEvent::ToolUsed(used) => {
            (event::TOOL_START, json(to_json(&Tool::from(used), "tool start")))
        }
        // Windows of quotas are for runtimes of the host; of a plugin it is a line.
        RunEvent::QuotaLeft { window, left, until } => {
            let percent = left / 10_000;
            let line = format!("{percent} % of the quota {window} are left until {until}");
            (event::TEXT, Cow::Owned(line))
        }
        // Only a host adopts what left its run, so a plugin has none to tell of. For people it is a line.
        RunEvent::StrayEnded { pid, name } => {
            (event::TEXT, Cow::Owned(format!("process {pid} ({name}) was ended")))
        }
        RunEvent::Answers => (event::STATUS, json(to_json(&Status::of(ANSWERS), "status"))),
        RunEvent::BacksOff { why, wait, is_pressure } => {
            let wait_ms = u64::try_from(wait.as_millis()).ok();
            let is_pressure = (!is_pressure).then_some(false);
            let why = Some(Arc::clone(why));
            let status = Status { why, wait_ms, is_pressure, ..Status::of(BACKS_OFF) };
            (event::STATUS, json(to_json(&status, "status")))
        }
        RunEvent::ModelChanged(model) => {
            let status = Status { model: Some(Arc::clone(model)), ..Status::of(MODEL_CHANGED) };
            (event::STATUS, json(to_json(&status, "status")))
        }
        RunEvent::Used { usage, cost } => {
            let used = Used { v: Version, must: Must, usage: *usage, cost: *cost };
            (event::USAGE, json(to_json(&used, "usage")))
        }
    }
}

/// The event of a kind and a payload; none where it is of a kind that is not known here. A vendor's own events and the answers of
/// tools are lines for people, and signs of life.
///
/// # Errors
/// [`AbiError::INVALID`] where the payload is not what its kind asks for.
pub fn decode(kind: u32, payload: &str) -> Result<Option<RunEvent>, AbiError> {
    decode_without(&Secrets::default(), kind, payload)
}

/// The event of a kind and a payload, as [`decode`] reads it. A tool that is used is told without these secrets.
///
/// # Errors
/// As with [`decode`].
pub fn decode_without(
    secrets: &Secrets,
    kind: u32,
    payload: &str,
) -> Result<Option<RunEvent>, AbiError> {
    Ok(match kind {
        event::TEXT => Some(RunEvent::Progress(payload.into())),
        event::TOOL_START => {
            Some(RunEvent::ToolUsed(from_json::<Tool>(payload, "tool start")?.used(secrets)))
        }
        event::TOOL_END => {
            let Tool { name, is_error, .. } = from_json(payload, "tool end")?;
            let how = if is_error { "has failed" } else { "has answered" };
            Some(RunEvent::Progress(format!("{name} {how}").into()))
        }
        event::USAGE => {
            let Used { usage, cost, .. } = from_json(payload, "usage")?;
            Some(RunEvent::Used { usage, cost })
        }
        event::STATUS => {
            let status: Status = from_json(payload, "status")?;
            match &*status.status {
                STARTED => Some(RunEvent::Started(status.process)),
                ANSWERS => Some(RunEvent::Answers),
                BACKS_OFF => {
                    let why = secrets.strike_out(status.why.as_deref().unwrap_or_default());
                    let wait = Duration::from_millis(status.wait_ms.unwrap_or(0));
                    let is_pressure = status.is_pressure.unwrap_or(true);
                    Some(RunEvent::BacksOff { why: why.into(), wait, is_pressure })
                }
                MODEL_CHANGED => status.model.map(|model| {
                    let model = secrets.strike_out(&model);
                    RunEvent::ModelChanged(
                        model.chars().take(MODEL_CHARS).collect::<String>().into(),
                    )
                }),
                _ => None,
            }
        }
        event::NOTE => {
            let Note { v: Version, must: Must, text } = from_json(payload, "note")?;
            Some(RunEvent::Progress(text))
        }
        event::RAW => {
            let Raw { v: Version, must: Must, source, event } =
                from_json(payload, "vendor's event")?;
            // Most vendors name the kind of an event so. All of it goes to the log.
            let kind = event.get("type").and_then(Value::as_str);
            Some(RunEvent::Progress(match kind {
                Some(kind) => format!("{source}: {kind}").into(),
                None => source,
            }))
        }
        _ => None,
    })
}

const STARTED: &str = "started";
const ANSWERS: &str = "answers";
const BACKS_OFF: &str = "backsOff";
const MODEL_CHANGED: &str = "modelChanged";
/// The most characters of the name of a model that are kept.
const MODEL_CHARS: usize = 200;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    status: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<ProcessIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_pressure: Option<bool>,
    /// The model that answers from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Arc<str>>,
}

impl Status {
    fn of(status: &'static str) -> Self {
        let status = status.into();
        Self {
            v: Version,
            must: Must,
            status,
            process: None,
            why: None,
            wait_ms: None,
            is_pressure: None,
            model: None,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Used {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    usage: Usage,
    #[serde(default = "Cost::unknown")]
    cost: Cost,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    name: Arc<str>,
    /// The input. Where size and digest are beside it, a text: the beginning of the input's JSON.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    input: Value,
    input_size: Option<u64>,
    input_digest: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

impl From<&ToolUse> for Tool {
    fn from(used: &ToolUse) -> Self {
        let name = Arc::clone(&used.name);
        let tool = Self {
            v: Version,
            must: Must,
            name,
            input: Value::Null,
            input_size: None,
            input_digest: None,
            is_error: false,
        };
        let Some(whole @ ToolInput { text, size, digest }) = &used.input else { return tool };
        match serde_json::from_str(text) {
            Ok(input) if whole.is_whole() => Self { input, ..tool },
            _ => Self {
                input: Value::String(text.to_string()),
                input_size: Some(*size),
                input_digest: Some(*digest),
                ..tool
            },
        }
    }
}

impl Tool {
    fn used(self, secrets: &Secrets) -> ToolUse {
        let Self { name, input, input_size, input_digest, .. } = self;
        match (input, input_size, input_digest) {
            (Value::Null, ..) => ToolUse::named(&secrets.strike_out(&name)),
            // It was cut on the other side, perhaps in the middle of a secret.
            (Value::String(text), Some(size), Some(digest)) => {
                let (name, text) = (secrets.strike_out(&name), secrets.strike_out(&text));
                ToolUse::named(&name).with_start(&text, size, digest)
            }
            (input, ..) => secrets.tool_use(&name, input),
        }
    }
}

#[derive(Deserialize)]
struct Raw {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    source: Arc<str>,
    event: Value,
}

#[derive(Deserialize)]
struct Note {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    text: Arc<str>,
}
