//! The capabilities of the agents of a configuration: which agent may delegate to which, how deep and with which tools, and
//! where delegations can come back.
//!
//! ```text
//!  Config ──▶ each agent as a root ── open ──▶ asks for each agent that it may name ── admit ──▶ Delegation
//!                                                            │
//!                                                            └─▶ the graph ──▶ its cycles, each asked for to the end
//! ```
//!
//! Every answer is one of admission itself, for a tree in which nothing has run yet and whose runtime can withhold every right.

mod cycles;

use std::sync::Arc;

use offshoot_config::{AgentDefinition, AgentId, Config};
use offshoot_model::{
    BudgetGrant, CostKnowledge, Origin, Refusal, RefusalCode, Rights, RunId, SpawnRequest,
    Timestamp,
};
use serde::Serialize;

use crate::{Admission, Books, Caller, Load, RuntimeFacts, admit, open};

/// All agents of a configuration, and the cycles that their delegations can form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// The agents, in the order of the configuration; `main` first where it is not defined.
    pub agents: Vec<Capability>,
    /// Of every delegation that can be part of a cycle the shortest such cycle, each cycle once.
    pub cycles: Vec<PossibleCycle>,
}

/// One agent as the root of a tree.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// The agent.
    pub agent: AgentId,
    /// The description in its definition.
    pub description: Option<String>,
    /// The rights and depth that it has; none where it cannot be a root.
    pub given: Option<Given>,
    /// The agents that it may name, in the order in which its settings name them; the agent itself where none does.
    pub delegates_to: Vec<Delegation>,
    /// The reason where it cannot be a root, or may have no children.
    pub refusal: Option<Refusal>,
}

/// The part of a grant that is about delegation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Given {
    /// True if the agent may have children.
    pub may_spawn: bool,
    /// The deepest level that anything below it may have.
    pub max_depth: u32,
    /// The rights that it holds.
    pub tools: Arc<Rights>,
}

/// One agent as the child of another.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// The child.
    pub agent: AgentId,
    /// The description in its definition.
    pub description: Option<String>,
    /// The reason for which the other one prefers it.
    pub why: Option<String>,
    /// The rights and depth that it gets; none where it is refused.
    pub given: Option<Given>,
    /// The reason where it is refused although it may be named.
    pub refusal: Option<Refusal>,
}

/// A chain of delegations that comes back to its first agent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PossibleCycle {
    /// The agents, from the one that the configuration mentions first; it stands at the end again.
    pub path: Vec<AgentId>,
    /// True if a tree with one of these agents as its root may go round once.
    pub allowed: bool,
    /// The reason where it may not.
    pub refusal: Option<Refusal>,
}

impl Capabilities {
    /// Asks admission about every pair of agents. Takes time in proportion to agents times delegations.
    pub fn of(config: &Config) -> Self {
        let default = config.default_agent();
        let built_in = std::iter::once(default).filter(|id| config.agent(id).is_none());
        let ids: Vec<&AgentId> = built_in.chain(config.agents().map(AgentDefinition::id)).collect();
        let agents: Vec<Capability> = ids.iter().map(|id| capability(config, id)).collect();
        let place = |id: &AgentId| ids.iter().position(|other| *other == id);
        let edges = |capability: &Capability| {
            let targets = capability.delegates_to.iter().filter_map(|to| place(&to.agent));
            targets.collect::<Vec<usize>>()
        };
        let graph: Vec<Vec<usize>> = agents.iter().map(edges).collect();
        let cycles = cycles::find(&graph).into_iter();
        let named = |cycle: Vec<usize>| cycle.into_iter().map(|at| ids[at].clone()).collect();
        let cycles = cycles.map(|cycle| judged(config, named(cycle))).collect();
        Self { agents, cycles }
    }
}

/// One agent as a root, with all that it may delegate.
fn capability(config: &Config, agent: &AgentId) -> Capability {
    let mut capability = Capability {
        agent: agent.clone(),
        description: description(config, agent),
        given: None,
        delegates_to: Vec::new(),
        refusal: None,
    };
    let chain = match Chain::open(config, agent) {
        Ok(chain) => chain,
        Err(refusal) => return Capability { refusal: Some(refusal), ..capability },
    };
    let given = Given::of(config, chain.last());
    if given.may_spawn {
        let preferred = config.agent(agent).and_then(|agent| agent.preferred_subagents.as_ref());
        let why = |target: &AgentId| {
            let mut reasons = preferred?.value.reasons();
            reasons.find(|(id, _)| *id == target).map(|(_, why)| why.to_owned())
        };
        let allowed = chain.last().terms.allowed_agents(config).into_iter();
        let ask = |target| delegation(config, target, why(target), chain.ask(target));
        capability.delegates_to = allowed.map(ask).collect();
    } else {
        // The question whether it may start itself is answered with the reason.
        capability.refusal = chain.ask(agent).err();
    }
    Capability { given: Some(given), ..capability }
}

fn delegation(
    config: &Config,
    agent: &AgentId,
    why: Option<String>,
    answer: Result<Admission, Refusal>,
) -> Delegation {
    let (given, refusal) = match answer {
        Ok(child) => (Some(Given::of(config, &child)), None),
        Err(refusal) => (None, Some(refusal)),
    };
    let description = description(config, agent);
    Delegation { agent: agent.clone(), description, why, given, refusal }
}

impl Given {
    fn of(config: &Config, session: &Admission) -> Self {
        let grant = &session.grant;
        Self {
            // A list of agents may be empty.
            may_spawn: grant.may_spawn && !session.terms.allowed_agents(config).is_empty(),
            max_depth: grant.max_depth,
            tools: Arc::clone(&grant.tools),
        }
    }
}

fn description(config: &Config, agent: &AgentId) -> Option<String> {
    let description = config.agent(agent)?.description.as_ref()?;
    Some(description.value.clone())
}

/// Asks for a cycle to its end, with each of its agents as the root: settings of agents further down can switch recursion on. Of
/// several refusals the one that is about cycles is told.
fn judged(config: &Config, path: Vec<AgentId>) -> PossibleCycle {
    let round = &path[..path.len() - 1];
    let mut refusals = Vec::new();
    for start in 0..round.len() {
        let (before, from) = round.split_at(start);
        match go_round(config, &[from, before].concat()) {
            Ok(()) => return PossibleCycle { path, allowed: true, refusal: None },
            Err(refusal) => refusals.push(refusal),
        }
    }
    let about_cycles = refusals.iter().position(|refusal| refusal.code == RefusalCode::Cycle);
    let refusal = refusals.swap_remove(about_cycles.unwrap_or(0));
    PossibleCycle { path, allowed: false, refusal: Some(refusal) }
}

fn go_round(config: &Config, round: &[AgentId]) -> Result<(), Refusal> {
    let (root, rest) = round.split_first().expect("a cycle has agents");
    let mut chain = Chain::open(config, root)?;
    for agent in rest.iter().chain([root]) {
        chain.spawn(agent)?;
    }
    Ok(())
}

/// A root and one descendant below the other, in a tree that has nothing else.
struct Chain<'a> {
    config: &'a Config,
    books: Books,
    runtime: RuntimeFacts,
    sessions: Vec<Admission>,
}

impl<'a> Chain<'a> {
    fn open(config: &'a Config, root: &AgentId) -> Result<Self, Refusal> {
        // A run's tasks, costs and the rights that its runtime can withhold are not known before it is asked for.
        let runtime = RuntimeFacts {
            enforces: None,
            cost: CostKnowledge::None,
            ..RuntimeFacts::of_a_command("any")
        };
        let root = open(config, root, &request(0, None), Some(&runtime))?;
        let mut books = Books::default();
        books.reserve(run(0), None, &root, Timestamp::EPOCH);
        Ok(Self { config, books, runtime, sessions: vec![root] })
    }

    fn last(&self) -> &Admission {
        self.sessions.last().expect("a chain has its root")
    }

    /// Asks for a child of the last one.
    fn ask(&self, target: &AgentId) -> Result<Admission, Refusal> {
        let depth = self.sessions.len() - 1;
        let (caller, above) = (self.last(), &self.sessions[depth.saturating_sub(1)]);
        let caller = Caller {
            run: run(depth),
            depth: caller.depth,
            over: false,
            out_of_time: false,
            terms: &caller.terms,
            under: &above.terms,
            raised: BudgetGrant::default(),
            grant: &caller.grant,
            lineage: &caller.lineage,
            live_children: 0,
            last_child: None,
        };
        let load =
            Load { books: &self.books, now: Timestamp::EPOCH, slot_free: true, paused: false };
        let request = request(depth + 1, Some(target));
        admit(self.config, &caller, &load, &request, Origin::Agent, &self.runtime)
    }

    /// Asks, and goes one level deeper.
    fn spawn(&mut self, target: &AgentId) -> Result<(), Refusal> {
        let child = self.ask(target)?;
        let depth = self.sessions.len();
        self.books.reserve(run(depth), Some(run(depth - 1)), &child, Timestamp::EPOCH);
        self.sessions.push(child);
        Ok(())
    }
}

/// The request for the session at this depth. Each has a task of its own: repetition is another question.
fn request(depth: usize, agent: Option<&AgentId>) -> SpawnRequest {
    SpawnRequest {
        task: format!("part {depth}").into(),
        agent: agent.cloned(),
        ..SpawnRequest::default()
    }
}

fn run(depth: usize) -> RunId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(depth as u64).to_be_bytes());
    RunId::from_bytes(bytes)
}
