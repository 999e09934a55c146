//! The configuration, frozen.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use offshoot_model::MicroUsd;
use offshoot_session_key::AgentId;
use serde_json::Value;

use crate::agent::AgentDefinition;
use crate::audit::AuditSettings;
use crate::built_in;
use crate::document::Document;
use crate::field::{Field, Listing, Unset};
use crate::foreign;
use crate::host::HostSettings;
use crate::loader::{Ignored, Loader};
use crate::logs::LogSettings;
use crate::notify::NotifySettings;
use crate::origin::{Origin, Valued};
use crate::plugins::PluginSettings;
use crate::price::Price;
use crate::runtime::RuntimeSettings;
use crate::setting::{AllowAgents, FreeForm, ModelChoice, RuntimeFallback};
use crate::subagents::{BudgetSettings, SubagentSettings};

/// All layers as one. Frozen, and as cheap to clone as a pointer.
#[derive(Clone, Debug)]
pub struct Config {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    document: Document,
    /// The flags for the defaults: they replace a root's own values too.
    overrides: SubagentSettings,
    /// The budgets of each `[ceiling]`.
    ceilings: Vec<BudgetSettings>,
    foreign: Vec<Valued<String>>,
    ignored: Vec<Ignored>,
    default_agent: AgentId,
}

/// An agent that another one names as its child, and that is not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedChild {
    /// The agent whose definition names it.
    pub agent: AgentId,
    /// The key that names it.
    pub key: &'static str,
    /// The name that no agent has.
    pub child: AgentId,
    /// The place of the key.
    pub origin: Origin,
}

impl fmt::Display for UndefinedChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, key, child, origin } = self;
        write!(f, "{key} of the agent `{agent}` names `{child}`, which is not defined ({origin})")
    }
}

impl Config {
    pub(crate) fn new(
        document: Document,
        overrides: SubagentSettings,
        ceilings: Vec<BudgetSettings>,
        foreign: Vec<Valued<String>>,
        ignored: Vec<Ignored>,
    ) -> Self {
        let default_agent =
            AgentId::parse(built_in::DEFAULT_AGENT).expect("the built-in id is an id");
        Self {
            inner: Arc::new(Inner {
                document,
                overrides,
                ceilings,
                foreign,
                ignored,
                default_agent,
            }),
        }
    }

    #[cfg(feature = "config")]
    pub(crate) fn document(&self) -> &Document {
        &self.inner.document
    }

    /// The agent that runs where none is named: `main`.
    pub fn default_agent(&self) -> &AgentId {
        &self.inner.default_agent
    }

    /// The defined agents, in the order in which they were first mentioned.
    pub fn agents(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.inner.document.agents.list.0.values()
    }

    /// Returns the ids of the defined agents, and that of the default agent behind them.
    pub fn agent_ids(&self) -> impl Iterator<Item = &AgentId> {
        self.agents().map(AgentDefinition::id).chain([self.default_agent()])
    }

    /// One defined agent.
    pub fn agent(&self, id: &AgentId) -> Option<&AgentDefinition> {
        self.inner.document.agents.list.0.get(id)
    }

    /// True if there is such an agent. The default agent always exists.
    pub fn is_defined(&self, id: &AgentId) -> bool {
        self.agent(id).is_some() || id == self.default_agent()
    }

    /// The agent that was probably meant, where there is none of this name.
    pub fn nearest_agent(&self, id: &AgentId) -> Option<&AgentId> {
        let names: Vec<&str> = self.agent_ids().map(AgentId::as_str).collect();
        let nearest = foreign::nearest(id.as_str(), &names)?;
        self.agent_ids().find(|known| known.as_str() == nearest)
    }

    /// Agents that others name as their children and that are not defined: nothing is ever handed to them.
    pub fn undefined_children(&self) -> impl Iterator<Item = UndefinedChild> {
        self.agents().flat_map(|agent| {
            let preferred = agent.preferred_subagents.iter().flat_map(|preferred| {
                let named = preferred.value.agents();
                named.map(|id| ("preferredSubagents", id, &preferred.origin))
            });
            let allowed = agent.subagents.allow_agents.iter().flat_map(|allowed| {
                let named = match &allowed.value {
                    AllowAgents::List(named) => named.as_slice(),
                    AllowAgents::Any => &[],
                };
                named.iter().map(|id| ("subagents.allowAgents", id, &allowed.origin))
            });
            let undefined = preferred.chain(allowed).filter(|(_, id, _)| !self.is_defined(id));
            undefined.map(|(key, id, origin)| UndefinedChild {
                agent: agent.id().clone(),
                key,
                child: id.clone(),
                origin: origin.clone(),
            })
        })
    }

    /// An agent's explicit limits: its own, else those of the defaults. An agent that is not defined has those of the
    /// defaults.
    ///
    /// Its preferred agents have joined `allow_agents` here.
    pub fn settings(&self, agent: &AgentId) -> SubagentSettings {
        let mut settings = self.inner.document.agents.defaults.subagents.clone();
        let Some(definition) = self.agent(agent) else { return settings };
        settings.overlay(&definition.subagents);
        if let Some(preferred) = &definition.preferred_subagents {
            let allowed = settings.allow_agents.get_or_insert_with(|| {
                Valued::new(AllowAgents::List(vec![agent.clone()]), preferred.origin.clone())
            });
            allowed.value.join(preferred.value.agents());
        }
        settings
    }

    /// The same for an agent that is the root of a tree: a flag replaces its own values too.
    pub fn root_settings(&self, agent: &AgentId) -> SubagentSettings {
        let mut settings = self.settings(agent);
        settings.overlay(&self.inner.overrides);
        settings
    }

    /// Returns the most dollars to which the budget of a tree may be raised: the strictest `[ceiling]` of all layers. None where no ceiling
    /// says it.
    pub fn ceiling_usd(&self) -> Option<&Valued<MicroUsd>> {
        let set = self.inner.ceilings.iter().filter_map(|budget| budget.usd.as_ref());
        set.min_by_key(|usd| usd.value)
    }

    /// Returns the most tokens in the same way.
    pub fn ceiling_tokens(&self) -> Option<&Valued<u64>> {
        let set = self.inner.ceilings.iter().filter_map(|budget| budget.tokens.as_ref());
        set.min_by_key(|tokens| tokens.value)
    }

    /// Returns the other runtimes that may take over runs of an agent, in their order: those of its model, else those of its limits.
    pub fn runtime_fallbacks(&self, agent: &AgentId) -> Vec<RuntimeFallback> {
        let own = self.agent(agent).and_then(|agent| agent.model.clone());
        let below = self.settings(agent).model;
        let named = |model: Valued<ModelChoice>| model.value.runtimes().cloned().collect();
        let all: Vec<Vec<_>> = own.into_iter().chain(below).map(named).collect();
        all.into_iter().find(|fallbacks| !fallbacks.is_empty()).unwrap_or_default()
    }

    /// Returns the names of all runtimes that may take over runs of an agent.
    pub fn fallback_runtimes(&self) -> BTreeSet<String> {
        let all = self.agent_ids().flat_map(|agent| self.runtime_fallbacks(agent));
        all.map(|fallback| fallback.runtime).collect()
    }

    /// Settings of an agent for its runtime to compact its context by: its own, else those of the defaults.
    pub fn compaction(&self, agent: &AgentId) -> Option<&Valued<FreeForm>> {
        let own = self.agent(agent).and_then(|agent| agent.compaction.as_ref());
        own.or(self.inner.document.agents.defaults.compaction.as_ref())
    }

    /// Settings of an agent for its runtime to prune its context by: its own, else those of the defaults.
    pub fn context_pruning(&self, agent: &AgentId) -> Option<&Valued<FreeForm>> {
        let own = self.agent(agent).and_then(|agent| agent.context_pruning.as_ref());
        own.or(self.inner.document.agents.defaults.context_pruning.as_ref())
    }

    /// Returns the settings of a tree with this root: every limit with its origin, built-in values included, null where there is
    /// none. Keys are dotted: `budget.share`.
    pub fn resolve(&self, agent: &AgentId) -> impl Iterator<Item = (String, Valued<Value>)> {
        Listing::of(&self.root_settings(agent), "", Unset::All).into_iter()
    }

    /// Settings of a runtime, where a layer has any.
    pub fn runtime(&self, name: &str) -> Option<&RuntimeSettings> {
        self.inner.document.runtimes.get(name)
    }

    /// Returns the names of the runtimes for which a layer has settings.
    pub fn runtimes(&self) -> impl Iterator<Item = &str> {
        self.inner.document.runtimes.keys().map(|name| &**name)
    }

    /// Returns the folders of plugins, and their settings.
    pub fn plugins(&self) -> &PluginSettings {
        &self.inner.document.plugins
    }

    /// Returns the settings of the audit.
    pub fn audit(&self) -> &AuditSettings {
        &self.inner.document.audit
    }

    /// Returns the bounds of what is kept of the output of agents.
    pub fn logs(&self) -> &LogSettings {
        &self.inner.document.logs
    }

    /// Returns the command that is told what happens in trees.
    pub fn notify(&self) -> &NotifySettings {
        &self.inner.document.notify
    }

    /// Returns the bounds of the computer.
    pub fn host(&self) -> &HostSettings {
        &self.inner.document.host.0
    }

    /// Returns true if the memory of some runs is bounded.
    pub fn bounds_memory(&self) -> bool {
        let most = |agent: &AgentId| self.root_settings(agent).max_memory_bytes();
        self.agent_ids().filter_map(most).any(|bytes| bytes > 0)
    }

    /// Returns the prices of models, by name.
    pub fn prices(&self) -> &IndexMap<String, Price> {
        &self.inner.document.prices
    }

    /// Every key that has a value, with its origin: what was set, and the built-in values of the defaults. Keys are
    /// dotted, agents are named: `agents.list[scout].subagents.maxDepth`.
    pub fn values(&self) -> impl Iterator<Item = (String, Valued<Value>)> {
        let document = &self.inner.document;
        let defaults = Listing::of(&document.agents.defaults, "agents.defaults", Unset::BuiltIn);
        let mut rest = document.clone();
        rest.agents.defaults = Default::default();
        defaults.into_iter().chain(Listing::of(&rest, "", Unset::Omitted))
    }

    /// Returns the bounds of the computer, which hold for all agents and trees of the user: those that are set, and those with a built-in value.
    pub fn host_values(&self) -> impl Iterator<Item = (String, Valued<Value>)> {
        Listing::of(&self.inner.document.host.0, "host", Unset::BuiltIn).into_iter()
    }

    /// Returns the words of all keys that may name files which act for the user: programs, their arguments, and files that are
    /// read.
    pub fn trusted_words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        self.inner.document.trusted_words(&mut words);
        words
    }

    /// Keys that belong to another system and were accepted without effect.
    pub fn foreign(&self) -> &[Valued<String>] {
        &self.inner.foreign
    }

    /// Files that were there and took no effect.
    pub fn ignored(&self) -> &[Ignored] {
        &self.inner.ignored
    }

    /// A hash of the values that hold, in hexadecimal: the same for the same values, whichever layers set them and in whichever
    /// order.
    pub fn digest(&self) -> String {
        let mut values: Vec<(String, Value)> =
            self.values().map(|(key, valued)| (key, valued.value)).collect();
        values.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut hasher = blake3::Hasher::new();
        for (key, mut value) in values {
            value.sort_all_objects();
            // Neither JSON text nor a key contains a line end, so lines keep them apart.
            hasher.update(format!("{}\n{value}\n", Value::String(key)).as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl Default for Config {
    /// The built-in values.
    fn default() -> Self {
        Loader::new().load().expect("nothing cannot be wrong")
    }
}
