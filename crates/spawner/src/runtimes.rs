//! The runtimes of a spawner, by name.

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_config::{AgentDefinition, Config, RuntimeFallback};
use offshoot_model::{Account, AgentId, CostKnowledge};
use offshoot_policy::{Fallback, OtherRuntime, RuntimeFacts};
use offshoot_runtime::{Abilities, EXEC, Runtime};

/// A runtime, with what policy must know of it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) facts: Arc<RuntimeFacts>,
}

/// All of them. The first one is the default.
#[derive(Default)]
pub(crate) struct Runtimes {
    by_name: HashMap<Arc<str>, Known>,
    default: Option<Arc<str>>,
    /// The runtimes that may take over runs, by agent: those that are here, and the name of one that is not.
    fallbacks: HashMap<AgentId, Fallbacks>,
}

/// The runtimes that may take over runs of one agent.
struct Fallbacks {
    here: Arc<[Fallback]>,
    missing: Option<String>,
}

impl Runtimes {
    pub(crate) fn insert(&mut self, runtime: Arc<dyn Runtime>) {
        let name: Arc<str> = runtime.name().into();
        let facts = Arc::new(facts(&name, &*runtime));
        self.default.get_or_insert_with(|| Arc::clone(&name));
        self.by_name.insert(name, Known { runtime, facts });
    }

    /// Tells the accounts of one runtime apart, by fingerprints with this key.
    pub(crate) fn tell_accounts(&mut self, key: &[u8; 32]) {
        for (name, Known { runtime, facts }) in &mut self.by_name {
            if let Some(credential) = runtime.credential() {
                let account = Account::of_credential(Arc::clone(name), key, credential.bytes());
                Arc::make_mut(facts).account = Arc::new(account);
            }
        }
    }

    /// Returns what policy must know of a runtime, to be corrected.
    pub(crate) fn facts_mut(&mut self, name: &str) -> Option<&mut RuntimeFacts> {
        self.by_name.get_mut(name).map(|known| Arc::make_mut(&mut known.facts))
    }

    /// The meter counts what the runs of this runtime use, which may also ask a model elsewhere. Of a run that has asked nothing through the
    /// meter the cost is not known, unless the configuration says that runs of the runtime cost nothing.
    pub(crate) fn meter_if_asked(&mut self, name: &str, config: &Config) {
        if let Some(facts) = self.facts_mut(name) {
            let said = config.runtime(name).and_then(|settings| settings.cost.as_ref());
            let costs_nothing = said.is_some_and(|said| said.value == CostKnowledge::None);
            let unasked_cost =
                if costs_nothing { CostKnowledge::None } else { CostKnowledge::Unknown };
            (facts.cost, facts.unasked_cost) = (CostKnowledge::Metered, unasked_cost);
        }
    }

    /// Tells each runtime of the others, for the advice where one cannot keep a right from a session.
    pub(crate) fn tell_others(&mut self) {
        let other = |facts: &RuntimeFacts| OtherRuntime {
            name: Arc::clone(&facts.name),
            enforces: facts.enforces.clone(),
        };
        let mut all: Vec<OtherRuntime> = self.by_name.values().map(|it| other(&it.facts)).collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for Known { facts, .. } in self.by_name.values_mut() {
            let others = all.iter().filter(|other| other.name != facts.name).cloned().collect();
            Arc::make_mut(facts).others = others;
        }
    }

    /// Looks up the runtimes that the configuration names to take over runs.
    pub(crate) fn know_fallbacks(&mut self, config: &Config) {
        let agents = config.agents().map(AgentDefinition::id).chain([config.default_agent()]);
        for agent in agents {
            let (mut here, mut missing) = (Vec::new(), None);
            for RuntimeFallback { runtime, model } in config.runtime_fallbacks(agent) {
                // A program runs no model, and has a command that was written for its own task.
                match self.by_name.get(&*runtime).filter(|_| runtime != EXEC) {
                    Some(Known { facts, .. }) => here.push(Fallback {
                        facts: Arc::clone(facts),
                        model: model.as_deref().map(Into::into),
                    }),
                    None => missing = Some(runtime),
                }
            }
            if !here.is_empty() || missing.is_some() {
                let fallbacks = Fallbacks { here: here.into(), missing };
                self.fallbacks.insert(agent.clone(), fallbacks);
            }
        }
    }

    /// Returns the runtimes that may take over runs of an agent on this runtime; none for most agents.
    pub(crate) fn fallbacks(&self, agent: &AgentId, on: &str) -> Option<Arc<[Fallback]>> {
        Some(Arc::clone(&self.fallbacks_of(agent, on)?.here))
    }

    /// Returns the name of a runtime that is to take over runs of an agent on this runtime and cannot.
    pub(crate) fn missing_fallback(&self, agent: &AgentId, on: &str) -> Option<&str> {
        self.fallbacks_of(agent, on)?.missing.as_deref()
    }

    /// No model stands in for a program of the operator's.
    fn fallbacks_of(&self, agent: &AgentId, on: &str) -> Option<&Fallbacks> {
        self.fallbacks.get(agent).filter(|_| on != EXEC)
    }

    /// The one of this name, or the default one.
    pub(crate) fn get(&self, name: Option<&str>) -> Option<&Known> {
        self.by_name.get(name.or(self.default.as_deref())?)
    }

    /// Returns all names, for messages.
    pub(crate) fn names(&self) -> String {
        let mut names: Vec<&str> = self.by_name.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names.join(", ")
    }
}

/// A runtime as far as limits are concerned.
fn facts(name: &Arc<str>, runtime: &dyn Runtime) -> RuntimeFacts {
    let Abilities { cost, turns, resumes, enforces } = runtime.abilities();
    let account = Arc::new(Account::of_runtime(Arc::clone(name)));
    let prompt = runtime.shared_prompt();
    RuntimeFacts {
        name: Arc::clone(name),
        cost,
        unasked_cost: CostKnowledge::None,
        default_usd: None,
        is_free: false,
        enforces,
        turns,
        resumes,
        memory: runtime.memory(),
        own_prompt: prompt.map(|prompt| prompt.own_tokens),
        inline_bytes: prompt.map_or(0, |prompt| prompt.inline_bytes),
        account,
        others: Arc::default(),
    }
}
