//! One task of a fanout.

use std::sync::Arc;

use offshoot_model::{AgentId, SpawnRequest};
use offshoot_spawner::Piece;
use serde::{Deserialize, Serialize};

use super::plan::Plan;

/// One task; the form of a line of `--tasks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    pub(crate) task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentId>,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,
}

impl Task {
    /// Returns the name in the answer; the place from 1, where it has none.
    pub(crate) fn name(&self, place: u32) -> String {
        self.label.clone().unwrap_or_else(|| place.to_string())
    }
}

/// The pieces of a planned fanout.
pub(crate) fn pieces(plan: &Plan) -> Vec<Piece> {
    let piece = |(place, task): (u32, &Task)| {
        let key: Arc<str> = task.name(place).into();
        Piece {
            request: SpawnRequest {
                task: task.task.as_str().into(),
                agent: Some(task.agent.as_ref().unwrap_or(&plan.agent).clone()),
                label: task.label.as_deref().map(Into::into),
                context: plan.context.clone(),
                run_timeout_seconds: task.timeout,
                ..SpawnRequest::default()
            },
            input: None,
            key: Some(key),
        }
    };
    (1..).zip(&plan.tasks).map(piece).collect()
}
