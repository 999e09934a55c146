//! The one form in which an ending is told to parents, to the command line and to models.

use offshoot_session_key::{AgentId, SessionKey};
use serde::{Deserialize, Serialize};

use crate::{Changes, Cost, Ending, Payload, RunId, RunStatus, SaidError, Usage};

/// The result of a run. `data` holds its answer or output, whatever the ending.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// The run's state; terminal, or that of a run whose wait ended early.
    pub status: RunStatus,
    /// The answer: in JSON the string or the value itself; `{"ref": …}` where it stays in the store.
    #[serde(serialize_with = "Payload::serialize_plain")]
    pub data: Option<Payload>,
    /// The reason why the run is not a success.
    pub error: Option<EnvelopeError>,
    /// True if `data` is only what there was when the run failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The changes that it made, where it worked in a folder of its own.
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
    /// From start to end; 0 where it never started.
    pub execution_time_ms: u64,
}

/// An ending that is no success, with what a decision about the next step needs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeError {
    /// The typed reason.
    pub code: String,
    /// The reason in words: a line with the cause, and below it the last words of the run where they are more than that line.
    pub message: String,
    /// Advice on what to do next.
    pub recovery_suggestion: Option<String>,
    /// True if the same request may succeed if made again.
    #[serde(default)]
    pub parent_can_retry: bool,
    /// The run's own account of its error. The fields above come from evidence, and do not depend on it.
    pub said: Option<Box<SaidError>>,
}

impl Envelope {
    /// The envelope of an ending. The same record always gives the same envelope.
    pub fn of(
        ending: &Ending,
        session_key: SessionKey,
        run_id: RunId,
        agent: AgentId,
        depth: u32,
    ) -> Self {
        let error = EnvelopeError::of(ending);
        Self {
            status: ending.status(),
            data: ending.output.clone(),
            partial: error.is_some() && ending.output.is_some(),
            error,
            changes: ending.changes.clone(),
            session_key,
            run_id,
            agent,
            depth,
            usage: ending.usage,
            cost: ending.cost,
            execution_time_ms: ending.execution_time_ms,
        }
    }

    /// Returns the answer of a run that completed, the empty one where it said nothing; else the envelope.
    pub fn into_result(self) -> Result<Payload, Box<Self>> {
        match self.status.is_success() {
            true => Ok(self.data.unwrap_or_else(|| Payload::text(""))),
            false => Err(Box::new(self)),
        }
    }
}

impl EnvelopeError {
    /// The error side of an ending; none for a success.
    pub fn of(ending: &Ending) -> Option<Self> {
        if ending.status().is_success() {
            return None;
        }
        let reason = &ending.reason;
        let more = ending.diagnostics.as_deref().filter(|said| said.trim().contains('\n'));
        let message = match more {
            Some(said) => format!("{}\n{said}", ending.why()),
            None => ending.why(),
        };
        Some(Self {
            code: reason.code().to_owned(),
            message,
            recovery_suggestion: ending.hint().map(str::to_owned),
            parent_can_retry: reason.recovery().parent_can_retry,
            said: ending.said.clone(),
        })
    }

    /// The reason with the cause, in one line.
    pub fn summary(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}
