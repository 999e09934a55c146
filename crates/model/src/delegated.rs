//! The answer to a task that was handed on without naming an agent.

use offshoot_session_key::{AgentId, SessionKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LoweredLimit, RefusalCode, RunId};

/// The outcome of handing a task on.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Delegated {
    /// A child was admitted.
    Accepted {
        /// The child.
        run_id: RunId,
        /// The session key of the child.
        session_key: SessionKey,
        /// The agent that runs it.
        agent: AgentId,
        /// The limits of which it got less than was asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lowered: Vec<LoweredLimit>,
        /// The candidates that fit, the best first; empty where the agent was named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scores: Vec<FitScore>,
        /// The word of earlier tasks of the type, in a sentence with their numbers; where `subagents.learnDelegation` is on and the task
        /// has a type.
        learned: Option<String>,
    },
    /// The agent that fits; nothing was started, as was asked for.
    Chosen {
        /// The agent.
        agent: AgentId,
        /// The candidates that fit, the best first; empty where the agent was named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scores: Vec<FitScore>,
        /// The word of earlier tasks of the type, in a sentence with their numbers; where `subagents.learnDelegation` is on and the task
        /// has a type.
        learned: Option<String>,
    },
    /// The agent that asks does the task itself. No error.
    ExecuteDirectly {
        /// The reason, for programs.
        reason: Directly,
        /// The reason, for people and models.
        message: String,
        /// The number of the observation that was begun, where the task has a type: the agent closes it when the task is done. None
        /// where it begins too many at a time.
        observation: Option<u32>,
        /// The candidates that fit, the best first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scores: Vec<FitScore>,
        /// The word of earlier tasks of the type, in a sentence with their numbers; where `subagents.learnDelegation` is on and the task
        /// has a type.
        learned: Option<String>,
    },
}

/// The measure in which an agent fits a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitScore {
    /// The agent.
    #[schemars(with = "String")]
    pub agent: AgentId,
    /// Greater than 0, without an upper bound; comparable within one answer only.
    pub score: f32,
    /// The stems of words that it has in common with the task, in alphabetical order.
    pub words: Vec<String>,
}

/// The reason for which the agent that asks does a task itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directly {
    /// The agent stands at the deepest level already.
    DepthLimit,
    /// The agent may have no children: by its definition, or for lack of the right `spawn`.
    CannotDelegate,
    /// The agent is a sub-agent, and recursion is off.
    RecursionDisabled,
    /// The agent prefers no agent that it may start.
    NoPreferred,
    /// No preferred agent has a word in common with the task.
    NoMatch,
    /// Several fit equally well.
    Tie,
    /// Earlier tasks of the type went better where they were not handed on.
    Learned,
}

impl Directly {
    /// The reason behind a refusal that means that the agent does the task itself. None for the others.
    pub const fn of_refusal(code: RefusalCode) -> Option<Self> {
        match code {
            RefusalCode::DepthLimit => Some(Self::DepthLimit),
            RefusalCode::CannotDelegate => Some(Self::CannotDelegate),
            RefusalCode::RecursionDisabled => Some(Self::RecursionDisabled),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_object_with_its_status() {
        let scout = AgentId::parse("scout").expect("the text is no id");
        let check = |answer: Delegated, expected: &str| {
            let text = serde_json::to_string(&answer).expect("plain data");
            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<Delegated>(&text).expect("its own form"), answer);
        };
        let score = FitScore { agent: scout.clone(), score: 0.5, words: vec!["look".to_owned()] };
        check(
            Delegated::Chosen { agent: scout, scores: vec![score], learned: None },
            r#"{"status":"chosen","agent":"scout","scores":[{"agent":"scout","score":0.5,"words":["look"]}]}"#,
        );
        let message = "no preferred agent has a word in common with the task".to_owned();
        check(
            Delegated::ExecuteDirectly {
                reason: Directly::NoMatch,
                message,
                observation: Some(2),
                scores: Vec::new(),
                learned: None,
            },
            r#"{"status":"execute_directly","reason":"no_match","message":"no preferred agent has a word in common with the task","observation":2}"#,
        );
    }
}
