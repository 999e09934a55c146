//! The place of a run in the chain of delegations that led to it.

use std::sync::Arc;

use offshoot_session_key::AgentId;
use serde::{Deserialize, Serialize};

use crate::RunId;

/// The number of characters of the root's task that a run below it is told.
const REQUEST_CHARACTERS: usize = 4096;

/// The context that a delegated task is given: the runs above it, and the request at the top. It informs, and grants nothing.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DelegationContext {
    /// Levels below the root.
    pub recursion_depth: u32,
    /// The agent that asked for the run; none at the root.
    pub parent_agent: Option<AgentId>,
    /// The run that asked for it; none at the root.
    pub parent_task_id: Option<RunId>,
    /// The task of the root, or its first 4,096 characters and `…`.
    pub root_user_request: Arc<str>,
    /// The runs from the root down to the run itself.
    pub trace: Vec<TraceStep>,
}

/// A run of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceStep {
    /// The agent that runs.
    pub agent: AgentId,
    /// The run itself.
    pub run_id: RunId,
}

impl DelegationContext {
    /// The context of the last run of this trace. The request is the task of the first one, as [`bounded_request`] cuts it.
    pub fn new(trace: Vec<TraceStep>, root_user_request: Arc<str>) -> Self {
        let above = trace.len().saturating_sub(1);
        let parent = above.checked_sub(1).map(|parent| &trace[parent]);
        Self {
            recursion_depth: u32::try_from(above).expect("a trace is as long as its tree is deep"),
            parent_agent: parent.map(|parent| parent.agent.clone()),
            parent_task_id: parent.map(|parent| parent.run_id),
            root_user_request,
            trace,
        }
    }

    /// The names of the agents from the root down: `main → scout`.
    pub fn path(&self) -> String {
        let names: Vec<&str> = self.trace.iter().map(|step| step.agent.as_str()).collect();
        names.join(" → ")
    }

    /// The context as JSON in one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }
}

/// Returns the part of a root's task that the runs below it are told.
pub fn bounded_request(task: &Arc<str>) -> Arc<str> {
    match task.char_indices().nth(REQUEST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &task[..end]).into(),
        None => Arc::clone(task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(agent: &str, run: u128) -> TraceStep {
        TraceStep {
            agent: AgentId::parse(agent).expect("the text is no id"),
            run_id: RunId::from_uuid(uuid::Uuid::from_u128(run)),
        }
    }

    #[test]
    fn the_parent_is_the_last_but_one() {
        let check = |agents: &[&str], depth, parent: Option<&str>, path: &str| {
            let trace = (1..).zip(agents).map(|(run, agent)| step(agent, run)).collect();
            let context = DelegationContext::new(trace, "do it".into());
            assert_eq!(context.recursion_depth, depth);
            assert_eq!(context.parent_agent.as_ref().map(AgentId::as_str), parent);
            assert_eq!(context.path(), path);
            let read: DelegationContext =
                serde_json::from_str(&context.to_json()).expect("it was written so");
            assert_eq!(read, context);
        };
        check(&["main"], 0, None, "main");
        check(&["main", "flow"], 1, Some("main"), "main → flow");
        check(&["main", "flow", "git"], 2, Some("flow"), "main → flow → git");
    }

    #[test]
    fn a_long_request_is_cut_between_characters() {
        let long: Arc<str> = "ä".repeat(REQUEST_CHARACTERS + 1).into();
        let cut = bounded_request(&long);
        assert_eq!(cut.chars().count(), REQUEST_CHARACTERS + 1);
        assert!(cut.ends_with("ä…"));
        let short: Arc<str> = "ä".repeat(REQUEST_CHARACTERS).into();
        assert_eq!(bounded_request(&short), short);
    }
}
