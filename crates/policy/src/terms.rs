//! The terms of one session, resolved over the chain of agents from the root down to it.
//!
//! ```text
//!  root agent ──▶ Terms ── child(b) ──▶ Terms ── child(c) ──▶ Terms
//!  own, else       a       strictest     a, b     strictest    a, b, c
//!  the defaults            of both                of all
//! ```
//!
//! The terms of a session bind its *children*: an agent that is being spawned lives under its caller's terms, and its
//! own values join the chain only below it. Where the chain sets nothing, the built-in value holds;
//! the first explicit value replaces that, whichever way, and from then on values only become stricter.

mod limits;

use std::sync::Arc;

use offshoot_config::{
    AgentDefinition, AgentId, AllowAgents, Config, OnInterrupt, SubagentSettings, Valued, built_in,
};
use offshoot_model::Origin;

use crate::rights::{Scope, ToolRule};
use crate::term::Term;

pub use limits::Limits;
pub use offshoot_config::Difference;

/// The terms under which one session spawns. Made once per admitted run and shared.
#[derive(Clone, Debug, PartialEq, derive_more::Deref)]
pub struct Terms {
    root: AgentId,
    agent: AgentId,
    /// The greater part of the terms, which read as if its fields stood here.
    #[deref]
    limits: Limits,
    pub(crate) rules: Vec<ToolRule>,
    pub(crate) allow_agents: Option<Term<AllowAgents>>,
    pub(crate) can_delegate: Option<Term<bool>>,
}

impl Terms {
    /// The terms of a root that runs this agent. A flag replaces the agent's own values.
    pub fn root(config: &Config, agent: &AgentId) -> Arc<Self> {
        let settings = config.root_settings(agent);
        let layer = Layer { agent, settings: &settings, definition: config.agent(agent) };
        Arc::new(Self {
            root: agent.clone(),
            agent: agent.clone(),
            limits: Limits::default().narrowed_by(&layer),
            rules: layer.tool_rules(),
            allow_agents: layer.allow_agents(),
            can_delegate: layer.can_delegate(),
        })
    }

    /// The terms of a child of this session that runs `target`: these, and the target's own values.
    ///
    /// An agent that follows itself adds nothing to the chain, so its terms are the same, shared.
    pub fn child(self: &Arc<Self>, config: &Config, target: &AgentId) -> Arc<Self> {
        if *target == self.agent {
            return Arc::clone(self);
        }
        let settings = self.settings(config, target);
        let layer = Layer { agent: target, settings: &settings, definition: config.agent(target) };
        let mut rules = self.rules.clone();
        for rule in layer.tool_rules() {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        Arc::new(Self {
            root: self.root.clone(),
            agent: target.clone(),
            limits: self.limits.narrowed_by(&layer),
            rules,
            allow_agents: layer.allow_agents(),
            can_delegate: layer.can_delegate(),
        })
    }

    /// Returns the settings that an agent brings to a chain of this tree: a value that a flag replaced for the root's agent stays replaced
    /// wherever that agent stands.
    pub(crate) fn settings(&self, config: &Config, target: &AgentId) -> SubagentSettings {
        if *target == self.root { config.root_settings(target) } else { config.settings(target) }
    }

    /// The agent at the end of the chain.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The agents that it may spawn, as far as their names go; none where it may not spawn at all.
    pub fn allowed_agents<'a>(&'a self, config: &'a Config) -> Vec<&'a AgentId> {
        if self.can_delegate.as_ref().is_some_and(|term| !term.value) {
            return Vec::new();
        }
        match self.allow_agents.as_ref().map(|term| &term.value) {
            // The caller's own agent exists, defined or not: it is running.
            None => vec![&self.agent],
            Some(AllowAgents::List(ids)) => {
                let exists = |id: &&AgentId| **id == self.agent || config.is_defined(id);
                ids.iter().filter(exists).collect()
            }
            Some(AllowAgents::Any) => {
                let defined = config.agents().map(AgentDefinition::id);
                let itself = std::iter::once(&self.agent).filter(|id| !config.is_defined(id));
                itself.chain(defined).collect()
            }
        }
    }

    /// Returns the treatment of a run of this origin whose supervisor died.
    pub fn on_interrupt(&self, origin: Origin) -> OnInterrupt {
        let built_in = match origin {
            Origin::Piece => built_in::ON_INTERRUPT_OF_PIECES,
            Origin::Root | Origin::Agent => built_in::ON_INTERRUPT,
        };
        self.on_interrupt.as_ref().map_or(built_in, |set| set.value)
    }
}

/// The settings that one agent brings to a chain.
pub(crate) struct Layer<'a> {
    agent: &'a AgentId,
    settings: &'a SubagentSettings,
    definition: Option<&'a AgentDefinition>,
}

impl Layer<'_> {
    /// One value, with the agent whose own it is.
    fn pick<T: Clone + PartialEq>(
        &self,
        select: impl Fn(&SubagentSettings) -> &Option<Valued<T>>,
    ) -> Option<Term<T>> {
        let value = select(self.settings).as_ref()?;
        let own = self.definition.and_then(|definition| select(&definition.subagents).as_ref());
        Some(Term::new(value.clone(), (own == Some(value)).then(|| self.agent.clone())))
    }

    fn allow_agents(&self) -> Option<Term<AllowAgents>> {
        let value = self.settings.allow_agents.as_ref()?;
        // Preferred agents have joined the list, so it is not compared with what the agent itself has said.
        let is_own = self.definition.is_some_and(|definition| {
            definition.subagents.allow_agents.is_some() || definition.preferred_subagents.is_some()
        });
        Some(Term::new(value.clone(), is_own.then(|| self.agent.clone())))
    }

    fn can_delegate(&self) -> Option<Term<bool>> {
        let value = self.definition?.can_delegate.as_ref()?;
        Some(Term::new(value.clone(), Some(self.agent.clone())))
    }

    fn tool_rules(&self) -> Vec<ToolRule> {
        let own = self.definition.and_then(ToolRule::of_definition);
        let tools = self.pick(|settings| &settings.tools);
        let below = tools.map(|tools| ToolRule::new(Scope::Below, tools));
        let definition = self.definition.map(|definition| &definition.subagents.tools_by_depth);
        let by_depth = self.settings.tools_by_depth.iter().map(|(depth, tools)| {
            let is_own = definition.and_then(|own| own.get(depth)) == Some(tools);
            let term = Term::new(tools.clone(), is_own.then(|| self.agent.clone()));
            ToolRule::new(Scope::Depth(*depth), term)
        });
        own.into_iter().chain(below).chain(by_depth).collect()
    }
}
