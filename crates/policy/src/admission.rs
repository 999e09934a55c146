//! The one question: may this session have that child?
//!
//! Checks are asked in the order of [`RefusalCode`](offshoot_model::RefusalCode); the first that fails answers. What
//! passes comes back with everything that was granted, and is reserved by [`Books::reserve`] in the same step.
//!
//! | file | asks |
//! |---|---|
//! | `request` | is the request right in itself? |
//! | `caller` | may this session spawn at all? |
//! | `target` | may it spawn this agent? |
//! | `chain` | does the chain go round in circles? |
//! | `counts` | are there too many already? |
//! | `tools` | which rights? |
//! | `reservation` | which share of the budget? |
//! | `moment` | is this the moment? |
//!
//! `lowered` tells afterwards what a request got less of than it asked for, and `fallback` whether another runtime may take over what was admitted.

mod caller;
mod chain;
mod counts;
mod fallback;
mod lowered;
mod moment;
mod request;
mod reservation;
mod target;
mod tools;

use std::sync::Arc;

use offshoot_config::{AgentDefinition, AgentId, Config};
use offshoot_model::{
    BudgetGrant, Grant, Origin, Pooled, Refusal, RefusalCode, Rights, RunId, SpawnRequest,
    Timestamp,
};

use crate::{Books, Lineage, RuntimeFacts, Terms};

use reservation::Reserved;

pub use chain::may_follow;
pub use fallback::check_fallback;
pub use lowered::lowered;
pub use request::{NAMES_OF_NEWEST, check_given_label, check_label, is_reserved_label};

/// The session that asks, as the record knows it. Nothing of this comes from the request.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The run of the session, which is also the name of its budget.
    pub run: RunId,
    /// Levels below the root.
    pub depth: u32,
    /// True if the session has ended.
    pub over: bool,
    /// True if the time for what is below it has passed, by a deadline of its own or of one above it.
    pub out_of_time: bool,
    /// Under which terms it spawns; they name the agent it runs.
    pub terms: &'a Arc<Terms>,
    /// Under which terms it lives: those of the session that asked for it, and a root's own.
    pub under: &'a Arc<Terms>,
    /// The grant of the session itself.
    pub grant: &'a Grant,
    /// The amounts that were added, since the tree began, to the budget that its terms say.
    pub raised: BudgetGrant,
    /// The chain of delegations above the session.
    pub lineage: &'a Arc<Lineage>,
    /// Children that are not over, queued ones included.
    pub live_children: u32,
    /// The last of its children: what would be the same for the next one is shared rather than made again.
    pub last_child: Option<&'a LastChild>,
}

/// A child that its caller has got already, as far as the next one may be like it.
#[derive(Clone, Debug)]
pub struct LastChild {
    /// The agent that it runs.
    pub agent: AgentId,
    /// The terms that it was granted.
    pub grant: Arc<Grant>,
    /// True if its request named tools.
    pub named_tools: bool,
}

/// The tree at this moment.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The books of the tree.
    pub books: &'a Books,
    /// The current time.
    pub now: Timestamp,
    /// True if a child that is admitted now gets a slot at once.
    pub slot_free: bool,
    /// True if the operator has stopped admission.
    pub paused: bool,
}

/// The answer yes, with everything that was granted.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The agent that runs, which is the caller's own where none was named.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The origin of the request.
    pub origin: Origin,
    /// The terms under which it spawns in turn.
    pub terms: Arc<Terms>,
    /// The terms under which it lives. Its budget is what has to be reserved.
    pub grant: Arc<Grant>,
    /// The session, and the chain above it.
    pub lineage: Arc<Lineage>,
}

/// Everything that one question is about.
struct Question<'a> {
    config: &'a Config,
    caller: &'a Caller<'a>,
    load: &'a Load<'a>,
    request: &'a SpawnRequest,
    origin: Origin,
    runtime: &'a RuntimeFacts,
    /// The agent that would run.
    target: &'a AgentId,
    definition: Option<&'a AgentDefinition>,
}

/// Decides if this session may have that child. Asking changes nothing.
///
/// Pieces of the operator's own map or fanout are not spawns of an agent: they are held to budgets and breakers, and
/// neither to what an agent may nor to what agents have had.
///
/// # Errors
///
/// The first rule that forbids it.
pub fn admit(
    config: &Config,
    caller: &Caller<'_>,
    load: &Load<'_>,
    request: &SpawnRequest,
    origin: Origin,
    runtime: &RuntimeFacts,
) -> Result<Admission, Refusal> {
    let target = request.agent.as_ref().unwrap_or(caller.terms.agent());
    let definition = config.agent(target);
    let question = Question { config, caller, load, request, origin, runtime, target, definition };
    request::check(request, origin)?;
    caller::check_alive(&question)?;
    let lineage = caller.lineage.child(target.clone(), request);
    if origin == Origin::Agent {
        caller::check_may_spawn(&question)?;
        target::check(&question)?;
        chain::check(&question, &lineage)?;
        counts::check(&question)?;
    }
    let rights = tools::check(&question)?;
    let terms = caller.terms.child(config, target);
    let max_depth = max_depth(caller, &terms, request);
    let may_spawn = may_spawn(&terms, max_depth, caller.depth + 1, &rights);
    let Reserved { budget, pooled, default_usd } =
        reservation::check(&question, &terms, may_spawn)?;
    moment::check(&question)?;

    let agents = may_name(config, &terms, may_spawn);
    let grant = Grant {
        agents,
        default_usd,
        pooled,
        max_depth,
        run_timeout_seconds: run_timeout_seconds(caller, request),
        ..grant(caller.terms, &terms, request, rights, budget, may_spawn)
    };
    Ok(Admission {
        agent: target.clone(),
        depth: caller.depth + 1,
        origin,
        terms,
        grant: share(grant, caller.last_child.map(|last| &last.grant)),
        lineage,
    })
}

/// The terms of a root, which only the operator asks for. `runtime` is `None` for a root that only holds pieces.
///
/// An agent that is not defined has the terms of the defaults. A root lives under its own values: no run stands above
/// it whose values could bind it.
///
/// # Errors
///
/// A request that is wrong in itself, rights that its runtime cannot keep from it, and a budget it cannot run under.
pub fn open(
    config: &Config,
    agent: &AgentId,
    request: &SpawnRequest,
    runtime: Option<&RuntimeFacts>,
) -> Result<Admission, Refusal> {
    let terms = Terms::root(config, agent);
    let definition = config.agent(agent);
    // What only holds pieces needs no task.
    request::check(request, if runtime.is_some() { Origin::Root } else { Origin::Piece })?;
    let rights = tools::of_root(&terms, definition, request, runtime)?;
    let budget = reservation::of_root(&terms, request, runtime)?;
    let may_spawn = may_spawn(&terms, terms.max_depth(), 0, &rights);
    let agents = may_name(config, &terms, may_spawn);
    let grant = Grant { agents, ..grant(&terms, &terms, request, rights, budget, may_spawn) };
    Ok(Admission {
        agent: agent.clone(),
        depth: 0,
        origin: Origin::Root,
        terms,
        grant: Arc::new(grant),
        lineage: Lineage::root(agent.clone(), request),
    })
}

/// True if a session may ever ask for a child, so that it is shown how to.
fn may_spawn(terms: &Terms, max_depth: u32, depth: u32, rights: &Rights) -> bool {
    let delegates = terms.can_delegate.as_ref().is_none_or(|may| may.value);
    let recursion = depth == 0 || terms.allow_recursive_spawn();
    delegates && recursion && depth < max_depth && rights.permits(crate::rights::SPAWN)
}

/// The agents that a session may name. Where no list is set, it can have only its own, and need not name that.
fn may_name(config: &Config, terms: &Terms, may_spawn: bool) -> Vec<AgentId> {
    if !may_spawn || terms.allow_agents.is_none() {
        return Vec::new();
    }
    terms.allowed_agents(config).into_iter().cloned().collect()
}

/// A child lives under its caller's terms; its own bind what it spawns.
fn grant(
    over: &Terms,
    own: &Terms,
    request: &SpawnRequest,
    tools: Arc<Rights>,
    budget: BudgetGrant,
    may_spawn: bool,
) -> Grant {
    Grant {
        max_depth: own.max_depth(),
        may_spawn,
        agents: Vec::new(),
        tools,
        budget,
        default_usd: None,
        pooled: Pooled::default(),
        run_timeout_seconds: shorter(over.run_timeout_seconds(), request.run_timeout_seconds),
        idle_timeout_seconds: over.idle_timeout_seconds(),
        grace_seconds: over.grace_seconds(),
        max_output_bytes: over.max_output_bytes(),
        max_memory_bytes: over.max_memory_bytes().unwrap_or(0),
        max_open_files: over.max_open_files().unwrap_or(0),
        max_cpu_seconds: over.max_cpu_seconds().unwrap_or(0),
    }
}

/// Returns the seconds that a child may run. The requester of the caller may have given it less time than its terms: then it
/// has no more to give. What is built in can be raised by the agents below, so what the caller has by that binds nothing.
fn run_timeout_seconds(caller: &Caller<'_>, request: &SpawnRequest) -> u64 {
    let allowed = caller.terms.run_timeout_seconds();
    let given = caller.grant.run_timeout_seconds;
    let was_shortened = given != caller.under.run_timeout_seconds();
    shorter(shorter(allowed, was_shortened.then_some(given)), request.run_timeout_seconds)
}

/// Returns the deepest level below a child. As with time, what the caller was given binds what it gives where that is less than
/// its terms allow.
fn max_depth(caller: &Caller<'_>, own: &Terms, request: &SpawnRequest) -> u32 {
    let given = Some(caller.grant.max_depth).filter(|&given| given < caller.terms.max_depth());
    given.into_iter().chain(request.max_depth).fold(own.max_depth(), u32::min)
}

/// A request can only shorten a limit; 0 is none.
fn shorter(allowed: u64, asked: Option<u64>) -> u64 {
    match asked {
        None | Some(0) => allowed,
        Some(asked) if allowed == 0 => asked,
        Some(asked) => asked.min(allowed),
    }
}

fn share(grant: Grant, last: Option<&Arc<Grant>>) -> Arc<Grant> {
    match last {
        Some(last) if **last == grant => Arc::clone(last),
        _ => Arc::new(grant),
    }
}

impl Question<'_> {
    /// Refuses, with advice and with the setting of the caller's chain behind it.
    fn refuse(
        &self,
        code: RefusalCode,
        message: impl Into<String>,
        hint: impl Into<String>,
        key: &str,
    ) -> Result<(), Refusal> {
        let setting = self.caller.terms.governing(key);
        Err(Refusal::new(code, message).with_hint(hint).governed_by(setting))
    }
}

/// True if the command is one that the operator chose: written into the agent's definition, or given by hand.
fn is_operators_command(
    definition: Option<&AgentDefinition>,
    request: &SpawnRequest,
    origin: Origin,
) -> bool {
    match &request.command {
        Some(_) => origin != Origin::Agent,
        None => definition.is_some_and(|definition| definition.command.is_some()),
    }
}
