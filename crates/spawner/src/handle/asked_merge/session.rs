//! A running session asks for what a merge of its children's results has to know.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_merge::{Asked, Asking, MergeError};
use offshoot_model::{OutputFormat, Refusal, RunId, WaitMode};
use offshoot_runtime::WaitFor;

use super::{Asker, Outcome, Question, words};
use crate::handle::agents::Agents;
use crate::handle::child::ChildRequest;
use crate::message::hand_on::Accepted;

/// A session: what it asks for are its children.
pub(in crate::handle) struct Session {
    pub(in crate::handle) agents: Agents,
    pub(in crate::handle) caller: RunId,
}

impl Asker for Session {
    fn ask<'a>(
        &'a mut self,
        asking: &'a Asking,
        questions: Vec<Question>,
    ) -> BoxFuture<'a, Result<Vec<Outcome>, MergeError>> {
        Box::pin(self.outcomes(asking, questions))
    }
}

impl Session {
    /// Asks as children of the session, and waits for them.
    async fn outcomes(
        &self,
        asking: &Asking,
        questions: Vec<Question>,
    ) -> Result<Vec<Outcome>, MergeError> {
        let child = |question: Question| {
            let input = Some(question.input.clone());
            let mut request = question.request(asking);
            if let Asked::Command(line) = &asking.asked {
                request.command = Some(words(line));
                request.ok_exit = Some(Arc::from([0]));
                request.output = Some(OutputFormat::Text);
            }
            ChildRequest { input, ..request.into() }
        };
        let children: Vec<ChildRequest> = questions.into_iter().map(child).collect();
        let refused = |refusal: Refusal| MergeError::Elsewhere { message: refusal.message };
        let Self { agents, caller } = self;
        let accepted = agents.spawn_many(*caller, children).await.map_err(refused)?;
        let runs: Vec<RunId> = accepted.iter().flatten().map(|accepted| accepted.run).collect();
        let mut ended = HashMap::new();
        if !runs.is_empty() {
            let wait = WaitFor { runs, mode: WaitMode::All, timeout: None };
            let answer = agents.wait(*caller, wait).await.map_err(refused)?;
            ended.extend(answer.ended.into_iter().map(|envelope| (envelope.run_id, envelope)));
        }
        let outcome = |accepted: Result<Accepted, Refusal>| match accepted {
            Err(refusal) => Ok(Err(refusal)),
            Ok(accepted) => {
                let unread = || MergeError::Elsewhere {
                    message: format!("the result of the run {} cannot be read", accepted.run),
                };
                ended.remove(&accepted.run).map(Ok).ok_or_else(unread)
            }
        };
        accepted.into_iter().map(outcome).collect()
    }
}
