//! A task that a session hands on without naming the agent: the choice, and what follows from it.

use std::sync::Arc;

use offshoot_config::Config;
use offshoot_delegation::{Candidate, Decision, TypeSummary, choose};
use offshoot_model::{
    AgentSummary, Delegated, Directly, FitScore, LoweredLimit, Refusal, RunId, SessionKey,
    SpawnRequest, TaskType,
};
use offshoot_policy::{Terms, may_follow};

use super::link::Link;
use super::{Asking, Message, over};
use crate::blocking::blocking;
use crate::tree_context::summary;

/// A child that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The run.
    pub run: RunId,
    /// The session key of the run.
    pub key: SessionKey,
    /// The limits of which it got less than was asked for.
    pub lowered: Vec<LoweredLimit>,
    /// The terms that are not as those of its parent, a line each.
    pub changed: Vec<String>,
}

/// A session that hands a task on.
pub(crate) struct HandOn {
    pub(crate) link: Link,
    pub(crate) caller: RunId,
    /// True: nothing is started.
    pub(crate) choose_only: bool,
}

impl HandOn {
    /// Chooses, and lets `spawn` ask for the child.
    pub(crate) async fn delegate<F>(
        &self,
        mut request: SpawnRequest,
        spawn: impl FnOnce(SpawnRequest) -> F,
    ) -> Result<Delegated, Refusal>
    where
        F: Future<Output = Result<Accepted, Refusal>>,
    {
        if request.task.is_empty() {
            return Err(Refusal::invalid("task", "the task is empty"));
        }
        let task_type = request.task_type.clone().filter(|_| !self.choose_only);
        let mut delegated = match self.choose(&request).await? {
            Delegated::Chosen { agent, scores, learned } if !self.choose_only => {
                request.agent = Some(agent.clone());
                let of_it = scores.iter().find(|score| score.agent == agent);
                request.chosen_by =
                    of_it.map_or_else(Arc::default, |score| score.words.clone().into());
                match spawn(request).await {
                    Ok(Accepted { run: run_id, key: session_key, lowered, .. }) => {
                        Delegated::Accepted { run_id, session_key, agent, lowered, scores, learned }
                    }
                    Err(refusal) => match Directly::of_refusal(refusal.code) {
                        Some(reason) => directly(reason, refusal.message, scores, learned),
                        None => return Err(refusal),
                    },
                }
            }
            answer => answer,
        };
        if let (Delegated::ExecuteDirectly { observation, .. }, Some(task_type)) =
            (&mut delegated, task_type)
        {
            *observation = self.observe(task_type).await?;
        }
        Ok(delegated)
    }

    /// Closes an observation.
    pub(crate) async fn observed(&self, number: u32, success: bool) -> Result<(), Refusal> {
        // What the task has used belongs to it.
        self.session().await?.settle_up().await;
        let run = self.caller;
        self.link.ask(|reply| Message::Observed { run, number, success, reply }).await?
    }

    async fn observe(&self, task_type: TaskType) -> Result<Option<u32>, Refusal> {
        // What was used before is not used for the task.
        self.session().await?.settle_up().await;
        let run = self.caller;
        self.link.ask(|reply| Message::Observe { run, task_type, reply }).await
    }

    /// Chooses the agent that gets a task, or says why the session does it itself.
    async fn choose(&self, request: &SpawnRequest) -> Result<Delegated, Refusal> {
        if let Some(agent) = request.agent.clone() {
            return Ok(Delegated::Chosen { agent, scores: Vec::new(), learned: None });
        }
        let (link, run) = (&self.link, self.caller);
        let asking = self.session().await?;
        let allowance = link.ask(|reply| Message::Allowance { run, reply }).await?;
        let (_, terms) = allowance.ok_or_else(over)?;
        if let Some((reason, message)) = no_child(&asking, &terms) {
            return Ok(directly(reason, message, Vec::new(), None));
        }
        let lineage = link.ask(|reply| Message::Lineage { run, reply }).await?.ok_or_else(over)?;
        let mut agents = allowed_agents(&terms, &link.tree.config);
        // One that stands above, and may not come again, would be refused.
        agents.retain(|agent| may_follow(&terms, &lineage, &agent.id));
        let past = match &request.task_type {
            Some(task_type) if terms.learn_delegation() => {
                Some(self.past_tasks(task_type.clone()).await)
            }
            Some(_) | None => None,
        };
        let Decision { choice, scores, learned } =
            choose_among(&request.task, &agents, past.as_ref());
        Ok(match choice.agent() {
            Ok(agent) => Delegated::Chosen { agent: agent.clone(), scores, learned },
            Err((reason, message)) => directly(reason, message, scores, learned),
        })
    }

    /// Returns the numbers of earlier tasks of a type.
    async fn past_tasks(&self, task_type: TaskType) -> TypeSummary {
        let tree = Arc::clone(&self.link.tree);
        let read = move || tree.past_tasks.of_type(&tree.store, tree.root, &task_type);
        blocking(read).await
    }

    async fn session(&self) -> Result<Asking, Refusal> {
        let run = self.caller;
        self.link.ask(|reply| Message::Find { run, reply }).await?.ok_or_else(over)
    }
}

fn directly(
    reason: Directly,
    message: String,
    scores: Vec<FitScore>,
    learned: Option<String>,
) -> Delegated {
    Delegated::ExecuteDirectly { reason, message, observation: None, scores, learned }
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

/// The agents that may be started under these terms, with what is known of each.
pub fn allowed_agents(terms: &Terms, config: &Config) -> Vec<AgentSummary> {
    let allowed = terms.allowed_agents(config);
    allowed.into_iter().map(|id| summary(id, terms.agent(), config)).collect()
}

/// Chooses among the agents that are preferred for something: by the words of the task, and by `past` tasks of its type where these are
/// to decide too.
pub fn choose_among(task: &str, agents: &[AgentSummary], past: Option<&TypeSummary>) -> Decision {
    let candidates = || {
        agents.iter().filter_map(|AgentSummary { id, description, why }| {
            Some(Candidate { agent: id, description: description.as_deref(), why: why.as_deref()? })
        })
    };
    let decision = choose(task, candidates());
    match past {
        Some(past) => decision.learn(past, candidates().map(|candidate| candidate.agent)),
        None => decision,
    }
}
