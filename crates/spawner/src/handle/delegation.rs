//! A task that an agent hands on without naming the agent.

use offshoot_delegation::{Candidate, Decision, choose};
use offshoot_model::{AgentSummary, Delegated, Directly, FitScore, Refusal, RunId, TaskType};
use offshoot_policy::Terms;

use super::agents::{Accepted, Agents, ChildRequest, allowed_agents};
use crate::message::{Asking, Message};

impl Agents {
    /// Hands a task on: to the agent that the request names, else to the preferred agent of the caller that the words of the task
    /// fit best. Where none fits, two fit equally well, or the caller may have no child at all, the answer is
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
        let task_type = child.request.task_type.clone().filter(|_| !choose_only);
        let mut delegated = self.hand_on(caller, child, choose_only).await?;
        if let (Delegated::ExecuteDirectly { observation, .. }, Some(task_type)) =
            (&mut delegated, task_type)
        {
            *observation = self.observe(caller, task_type).await?;
        }
        Ok(delegated)
    }

    /// Closes an observation: the caller is over with a task that it did itself.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over, `invalid_request` where the observation is not open: it never was, or its turn is
    /// over.
    pub async fn observed(&self, caller: RunId, number: u32, success: bool) -> Result<(), Refusal> {
        // What the task has used belongs to it.
        self.session(caller).await?.settle_up().await;
        self.ask(|reply| Message::Observed { run: caller, number, success, reply }).await?
    }

    async fn observe(&self, caller: RunId, task_type: TaskType) -> Result<Option<u32>, Refusal> {
        // What was used before is not used for the task.
        self.session(caller).await?.settle_up().await;
        self.ask(|reply| Message::Observe { run: caller, task_type, reply }).await
    }

    async fn hand_on(
        &self,
        caller: RunId,
        mut child: ChildRequest,
        choose_only: bool,
    ) -> Result<Delegated, Refusal> {
        if child.request.task.is_empty() {
            return Err(Refusal::invalid("task", "the task is empty"));
        }
        let (agent, scores) = match child.request.agent.clone() {
            Some(agent) => (agent, Vec::new()),
            None => {
                let asking = self.session(caller).await?;
                let (_, terms) = self.allowance(caller).await?;
                if let Some((reason, message)) = no_child(&asking, &terms) {
                    return Ok(directly(reason, message, Vec::new()));
                }
                let agents = allowed_agents(&terms, self.config());
                let Decision { choice, scores } = choose_among(&child.request.task, &agents);
                match choice.agent() {
                    Ok(agent) => (agent.clone(), scores),
                    Err((reason, message)) => {
                        return Ok(directly(reason, message, scores));
                    }
                }
            }
        };
        if choose_only {
            return Ok(Delegated::Chosen { agent, scores });
        }
        child.request.agent = Some(agent.clone());
        match self.spawn(caller, child).await {
            Ok(Accepted { run, key, lowered }) => {
                Ok(Delegated::Accepted { run_id: run, session_key: key, agent, lowered, scores })
            }
            Err(refusal) => match Directly::of_refusal(refusal.code) {
                Some(reason) => Ok(directly(reason, refusal.message, scores)),
                None => Err(refusal),
            },
        }
    }
}

fn directly(reason: Directly, message: String, scores: Vec<FitScore>) -> Delegated {
    Delegated::ExecuteDirectly { reason, message, observation: None, scores }
}

/// The reason for which a session can have no child whatever it asks for, in the order in which admission asks.
fn no_child(session: &Asking, terms: &Terms) -> Option<(Directly, String)> {
    let Asking { depth, agent, grant, .. } = session;
    if *depth > 0 && !terms.allow_recursive_spawn() {
        let message = "sub-agents may have no children here: allowRecursiveSpawn is off";
        return Some((Directly::RecursionDisabled, message.to_owned()));
    }
    if *depth >= grant.max_depth {
        let message = format!("depth {depth} is the deepest level that this session may reach");
        return Some((Directly::DepthLimit, message));
    }
    if !grant.may_spawn {
        return Some((
            Directly::CannotDelegate,
            format!("the agent `{agent}` may have no children"),
        ));
    }
    None
}

/// Chooses among the agents that are preferred for something.
pub fn choose_among(task: &str, agents: &[AgentSummary]) -> Decision {
    choose(
        task,
        agents.iter().filter_map(|AgentSummary { id, description, why }| {
            Some(Candidate { agent: id, description: description.as_deref(), why: why.as_deref()? })
        }),
    )
}
