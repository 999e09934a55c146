//! What a run tells: kind and payload of `event`.

use std::borrow::Cow;
use std::sync::Arc;

use offshoot_model::{Cost, ProcessIdentity, Usage};
use offshoot_runtime::RunEvent;
use serde::{Deserialize, Serialize};

use super::{V, from_json, to_json, versioned};
use crate::{AbiError, event};

/// Kind and payload of an event.
pub fn encode(told: &RunEvent) -> (u32, Cow<'_, str>) {
    let json = |document: Result<String, AbiError>| {
        Cow::Owned(document.expect("numbers and words are always JSON"))
    };
    match told {
        RunEvent::Started(process) => {
            let status = Status { v: V, status: STARTED.into(), process: *process };
            (event::STATUS, json(to_json(&status, "status")))
        }
        RunEvent::Progress(text) => (event::TEXT, Cow::Borrowed(text)),
        RunEvent::Used { usage, cost } => {
            let used = Used { v: V, usage: *usage, cost: *cost };
            (event::USAGE, json(to_json(&used, "usage")))
        }
    }
}

/// The event of a kind and a payload; none where it is of a kind that nobody here listens to.
///
/// # Errors
/// [`AbiError::INVALID`] where the payload is not what its kind asks for.
pub fn decode(kind: u32, payload: &str) -> Result<Option<RunEvent>, AbiError> {
    Ok(match kind {
        event::TEXT => Some(RunEvent::Progress(payload.into())),
        event::TOOL_START => {
            let tool: Tool = from_json(payload, "tool start")?;
            Some(RunEvent::Progress(tool.name))
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
            let note: Note = from_json(payload, "note")?;
            Some(RunEvent::Progress(note.text))
        }
        _ => None,
    })
}

const STARTED: &str = "started";

#[derive(Serialize, Deserialize)]
struct Status {
    v: u32,
    status: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<ProcessIdentity>,
}

#[derive(Serialize, Deserialize)]
struct Used {
    v: u32,
    usage: Usage,
    #[serde(default = "Cost::unknown")]
    cost: Cost,
}

#[derive(Deserialize)]
struct Tool {
    v: u32,
    name: Arc<str>,
}

#[derive(Deserialize)]
struct Note {
    v: u32,
    text: Arc<str>,
}

versioned!(Status, Used, Tool, Note);
