//! The result of a run.

use offshoot_model::{
    AgentId, Changes, Cost, Envelope, EnvelopeError, JsonText, Payload, RunId, RunStatus,
    SessionKey, Usage,
};
use serde::{Deserialize, Serialize};

use super::Word;

/// The envelope of a run, as a reader of any version sees it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireEnvelope {
    /// The status of the run. Nothing but `completed` is success.
    pub status: Word<RunStatus>,
    /// The answer of the run, whatever the ending: text as a JSON string, everything else as itself. Where it is large, `{"ref":
    /// …, "path": …, "head": …, "tail": …}`: its beginning, its end, and the file that holds it.
    pub data: Option<JsonText>,
    /// The name by which `context.get` has the whole answer, where `data` is a part of it.
    pub name: Option<String>,
    /// The reason why the run is not a success.
    pub error: Option<EnvelopeError>,
    /// True if `data` is only what there was when the run failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The changes that it made, where it worked in a folder of its own: the patch is a value of the store.
    pub changes: Option<Box<Changes>>,
    /// The session.
    pub session_key: SessionKey,
    /// The run.
    pub run_id: RunId,
    /// The agent.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The usage of the run itself.
    pub usage: Usage,
    /// The cost of the run itself.
    pub cost: Cost,
    /// From start to end.
    pub execution_time_ms: u64,
}

impl WireEnvelope {
    /// The answer as text, where it is text.
    pub fn text(&self) -> Option<String> {
        serde_json::from_str(self.data.as_ref()?.as_str()).ok()
    }
}

impl From<&Envelope> for WireEnvelope {
    fn from(envelope: &Envelope) -> Self {
        Self {
            status: envelope.status.into(),
            data: envelope.data.as_ref().map(Payload::to_json),
            name: None,
            error: envelope.error.clone(),
            partial: envelope.partial,
            changes: envelope.changes.clone(),
            session_key: envelope.session_key.clone(),
            run_id: envelope.run_id,
            agent: envelope.agent.clone(),
            depth: envelope.depth,
            usage: envelope.usage,
            cost: envelope.cost,
            execution_time_ms: envelope.execution_time_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{ContentHash, Ending, Reason, ValueKind, VariableRef};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_envelope_reads_the_same_here_and_there() {
        let stored = VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Text };
        let failed = Ending {
            output: Some(Payload::text("half of it")),
            diagnostics: Some("no space".into()),
            ..Ending::of(Reason::ExitCode { code: 7 })
        };
        for ending in [
            Ending::completed(Payload::text("four\nlines")),
            Ending::completed(Payload::json("{\"b\": 1, \"a\": [2]}".into()).unwrap()),
            Ending::completed(Payload::Stored(stored)),
            Ending::of(Reason::Timeout { seconds: 3 }),
            failed,
        ] {
            let key = SessionKey::parse("agent:main:subagent:a").unwrap();
            let run = RunId::from_uuid(Uuid::nil());
            let envelope = Envelope::of(&ending, key, run, AgentId::parse("main").unwrap(), 1);
            let here = serde_json::to_string(&WireEnvelope::from(&envelope)).unwrap();
            assert_eq!(here, serde_json::to_string(&envelope).unwrap());
        }
    }
}
