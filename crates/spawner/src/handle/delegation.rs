//! A task that an agent hands on without naming the agent.

use offshoot_model::{Delegated, Refusal, RunId};

use super::agents::Agents;
use super::child::ChildRequest;

impl Agents {
    /// Hands a task on: to the agent that the request names, else to the preferred agent of the caller that the words of the task
    /// fit best. With `subagents.learnDelegation`, earlier tasks of its type decide too. Where none fits, two fit equally well, the
    /// type is better not handed on, or the caller may have no child at all, the answer is
    /// [`Delegated::ExecuteDirectly`]; of a task with a type that begins an observation. With `choose_only` nothing is started.
    ///
    /// # Errors
    ///
    /// The refusals of [`Agents::spawn`] that do not mean that the caller is to do it itself, such as `budget_exhausted`.
    pub async fn delegate(
        &self,
        caller: RunId,
        child: ChildRequest,
        choose_only: bool,
    ) -> Result<Delegated, Refusal> {
        let ChildRequest { request, folder, input } = child;
        let spawn = |request| self.spawn(caller, ChildRequest { request, folder, input });
        self.hand_on(caller, choose_only)?.delegate(request, spawn).await
    }

    /// Closes an observation: the caller is over with a task that it did itself.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over, `invalid_request` where the observation is not open: it never was, or its turn is
    /// over.
    pub async fn observed(&self, caller: RunId, number: u32, success: bool) -> Result<(), Refusal> {
        self.hand_on(caller, false)?.observed(number, success).await
    }
}
