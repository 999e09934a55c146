//! A task that a run hands on without naming the agent, and what came of it: the operations `delegate` and `observed` of `RunHost`.

use offshoot_model::{
    AgentId, Delegated, Directly, FitScore, LoweredLimit, RunId, SessionKey, SpawnRequest,
};
use serde::{Deserialize, Serialize};

use super::word::Word;
use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// The document of a request; with `choose_only` nothing is started.
pub fn encode(request: SpawnRequest, choose_only: bool) -> String {
    to_json(&Document { v: Version, must: Must, request, choose_only }, "delegate")
        .expect("a request is text and numbers")
}

/// The request of a document, and whether nothing is to be started.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<(SpawnRequest, bool), AbiError> {
    let Document { request, choose_only, .. } = from_json(json, "delegate")?;
    Ok((request, choose_only))
}

/// The document of an answer: `{ "v", "status", … }`.
pub fn encode_answer(answer: Delegated) -> String {
    to_json(&AnswerDocument::from(answer), WHAT).expect("an answer is text and numbers")
}

/// The answer of a document. One of a status that is not known here is read as that of a task that the run does itself, with the word in
/// its message.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_answer(json: &str) -> Result<Delegated, AbiError> {
    from_json::<AnswerDocument>(json, WHAT)?.read()
}

/// The document that a run is over with a task that it did itself.
pub fn encode_observed(observation: u32, success: bool) -> String {
    let document = ObservedDocument { v: Version, must: Must, observation, success };
    to_json(&document, "observed").expect("numbers are always JSON")
}

/// The number of the observation, and whether the task is done.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_observed(json: &str) -> Result<(u32, bool), AbiError> {
    let ObservedDocument { observation, success, .. } = from_json(json, "observed")?;
    Ok((observation, success))
}

const WHAT: &str = "answer to delegate";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    request: SpawnRequest,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    choose_only: bool,
}

#[derive(Serialize, Deserialize)]
struct ObservedDocument {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    observation: u32,
    success: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Accepted,
    Chosen,
    ExecuteDirectly,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerDocument {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    status: Word<Status>,
    run: Option<RunId>,
    session_key: Option<SessionKey>,
    agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lowered: Vec<LoweredLimit>,
    reason: Option<Word<Directly>>,
    message: Option<String>,
    observation: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scores: Vec<FitScore>,
    learned: Option<String>,
}

impl From<Delegated> for AnswerDocument {
    fn from(answer: Delegated) -> Self {
        let blank = |status, scores, learned| Self {
            v: Version,
            must: Must,
            status: Word::Known(status),
            run: None,
            session_key: None,
            agent: None,
            lowered: Vec::new(),
            reason: None,
            message: None,
            observation: None,
            scores,
            learned,
        };
        match answer {
            Delegated::Accepted { run_id, session_key, agent, lowered, scores, learned } => Self {
                run: Some(run_id),
                session_key: Some(session_key),
                agent: Some(agent),
                lowered,
                ..blank(Status::Accepted, scores, learned)
            },
            Delegated::Chosen { agent, scores, learned } => {
                Self { agent: Some(agent), ..blank(Status::Chosen, scores, learned) }
            }
            Delegated::ExecuteDirectly { reason, message, observation, scores, learned } => Self {
                reason: Some(Word::Known(reason)),
                message: Some(message),
                observation,
                ..blank(Status::ExecuteDirectly, scores, learned)
            },
        }
    }
}

impl AnswerDocument {
    fn read(self) -> Result<Delegated, AbiError> {
        let missing =
            |field: &str| AbiError::new(AbiError::INVALID, format!("{WHAT}: no `{field}`"));
        let Self { scores, learned, message, .. } = self;
        let message = message.unwrap_or_default();
        let unknown = |what: &str, word: &str| format!("{message} (its {what} is `{word}`)");
        Ok(match self.status {
            Word::Known(Status::Accepted) => Delegated::Accepted {
                run_id: self.run.ok_or_else(|| missing("run"))?,
                session_key: self.session_key.ok_or_else(|| missing("sessionKey"))?,
                agent: self.agent.ok_or_else(|| missing("agent"))?,
                lowered: self.lowered,
                scores,
                learned,
            },
            Word::Known(Status::Chosen) => {
                let agent = self.agent.ok_or_else(|| missing("agent"))?;
                Delegated::Chosen { agent, scores, learned }
            }
            Word::Known(Status::ExecuteDirectly) => {
                let (reason, message) = match self.reason {
                    Some(Word::Known(reason)) => (reason, message),
                    Some(Word::Other(word)) => (Directly::NoMatch, unknown("reason", &word)),
                    None => return Err(missing("reason")),
                };
                let observation = self.observation;
                Delegated::ExecuteDirectly { reason, message, observation, scores, learned }
            }
            Word::Other(word) => Delegated::ExecuteDirectly {
                reason: Directly::NoMatch,
                message: unknown("status", &word),
                observation: self.observation,
                scores,
                learned,
            },
        })
    }
}
