//! What a run tells: kind and payload of `event`.

use std::borrow::Cow;
use std::sync::Arc;

use offshoot_model::{Cost, ProcessIdentity, Usage};
use offshoot_runtime::RunEvent;
use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json};
use crate::{AbiError, event};

/// Kind and payload of an event.
pub fn encode(told: &RunEvent) -> (u32, Cow<'_, str>) {
    let json = |document: Result<String, AbiError>| {
        Cow::Owned(document.expect("numbers and words are always JSON"))
    };
    match told {
        RunEvent::Started(process) => {
            let status =
                Status { v: Version, must: Must, status: STARTED.into(), process: *process };
            (event::STATUS, json(to_json(&status, "status")))
        }
        RunEvent::Progress(text) => (event::TEXT, Cow::Borrowed(text)),
        // Only a host adopts what left its run, so a plugin has none to tell of. For people it is a line.
        RunEvent::StrayEnded { pid, name } => {
            (event::TEXT, Cow::Owned(format!("process {pid} ({name}) was ended")))
        }
        RunEvent::Used { usage, cost } => {
            let used = Used { v: Version, must: Must, usage: *usage, cost: *cost };
            (event::USAGE, json(to_json(&used, "usage")))
        }
    }
}

/// The event of a kind and a payload; none where it is of a kind that nobody here listens to. Tools and a vendor's own events
/// are lines for people, and signs of life.
///
/// # Errors
/// [`AbiError::INVALID`] where the payload is not what its kind asks for.
pub fn decode(kind: u32, payload: &str) -> Result<Option<RunEvent>, AbiError> {
    Ok(match kind {
        event::TEXT => Some(RunEvent::Progress(payload.into())),
        event::TOOL_START => {
            let Tool { v: Version, must: Must, name, .. } = from_json(payload, "tool start")?;
            Some(RunEvent::Progress(format!("uses {name}").into()))
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
            (status.status == STARTED).then_some(RunEvent::Started(status.process))
        }
        event::NOTE => {
            let Note { v: Version, must: Must, text } = from_json(payload, "note")?;
            Some(RunEvent::Progress(text))
        }
        event::RAW => {
            let Raw { v: Version, must: Must, source, event } =
                from_json(payload, "vendor's event")?;
            // Most vendors name the kind of an event so. All of it is for whoever reads the log.
            let kind = event.get("type").and_then(serde_json::Value::as_str);
            Some(RunEvent::Progress(match kind {
                Some(kind) => format!("{source}: {kind}").into(),
                None => source,
            }))
        }
        _ => None,
    })
}

const STARTED: &str = "started";

#[derive(Serialize, Deserialize)]
struct Status {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    status: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<ProcessIdentity>,
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    name: Arc<str>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Raw {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    source: Arc<str>,
    event: serde_json::Value,
}

#[derive(Deserialize)]
struct Note {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    text: Arc<str>,
}
