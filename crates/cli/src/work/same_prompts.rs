//! Agents of a plan that send the same long prompt first: one begins, and the others read it from the cache of their service.

use std::sync::Arc;

use indexmap::IndexMap;
use offshoot_config::{AgentId, Config, PrimeCache};
use offshoot_display::number;
use offshoot_host::runtimes::{BuiltInRuntime, cache_saving};
use offshoot_model::MicroUsd;
use offshoot_policy::prefix::{Prefix, Prefixes, in_front};
use serde::Serialize;

use super::dry_run::PlannedAgent;
use super::input_tokens::model;
use super::plan::Plan;

/// A prompt that several agents send first.
#[serde_with::skip_serializing_none]
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SamePrompt {
    agent: AgentId,
    runtime: Arc<str>,
    /// The model that the tasks ask for; none where that of the agent answers.
    asked_model: Option<Arc<str>>,
    /// The number of agents that send it.
    agents: usize,
    /// An estimate of its length, in tokens.
    tokens: u64,
    /// The dollars that are saved because those that would have begun with the first one read it from the cache, where the model has a price.
    saves: Option<MicroUsd>,
}

impl SamePrompt {
    /// Returns the prompts of a plan of which so many agents run at once.
    pub(crate) fn of(
        plan: &Plan,
        agents: &[PlannedAgent],
        at_once: u64,
        config: &Config,
    ) -> Vec<Self> {
        let settings = config.root_settings(&plan.agent);
        if settings.prime_cache() == PrimeCache::Off {
            return Vec::new();
        }
        let mut alike: IndexMap<Prefix, (u64, usize)> = IndexMap::new();
        for (at, planned) in agents.iter().enumerate() {
            let task = plan.tasks.get(at);
            let (agent, runtime) = (planned.agent(plan), planned.runtime(plan));
            let asked_model = task.and_then(|task| task.model.clone());
            let Some(own) = own_prompt(runtime, config) else { continue };
            let context = task.map_or_else(|| plan.context.clone(), |task| task.context(plan));
            let (values, tokens) = in_front(config, agent, own, &context);
            let (agent, runtime) = (agent.clone(), Arc::clone(runtime));
            let model = asked_model.as_deref().map(Into::into);
            let (tools, parent) = (task.and_then(|task| task.tools.as_ref()), None);
            let tools = tools.map(|tools| format!("{tools:?}").into());
            let prefix = Prefix { runtime, agent, model, tools, parent, context: values };
            alike.entry(prefix).or_insert((tokens, 0)).1 += 1;
        }
        let is_waited_for = |tokens: u64, agents: usize| {
            agents > 1 && at_once > 1 && tokens >= Prefixes::LEAST_TOKENS
        };
        let alike = alike.into_iter();
        let alike = alike.filter(|(_, (tokens, agents))| is_waited_for(*tokens, *agents));
        let same =
            alike.map(|(Prefix { runtime, agent, model: asked_model, .. }, (tokens, agents))| {
                let asked = asked_model.as_deref().map(str::to_owned);
                let asked = asked.or_else(|| model(plan, config));
                let saving = asked.and_then(|model| cache_saving(config, &model));
                let others = at_once.min(agents as u64) - 1;
                let saves = saving.map(|saving| saved(saving, tokens, others));
                Self { agent, runtime, asked_model, agents, tokens, saves }
            });
        same.collect()
    }

    /// Says what is done, for people.
    pub(crate) fn line(&self) -> String {
        let Self { agent, runtime, agents, tokens, saves, .. } = self;
        let (agents, tokens) = (number::count(*agents as u64), number::count(*tokens));
        let saves = saves.filter(|saves| saves.as_micros() > 0);
        let saves = saves.map(|saves| format!(", which saves about {}", number::dollars(saves)));
        let saves = saves.unwrap_or_default();
        format!(
            "cache: {agents} agents ({agent}, {runtime}) send the same prompt of about {tokens} tokens first; one begins, and the others \
             when it is answered{saves} (primeCache)"
        )
    }
}

/// Returns the length of the runtime's own instructions and tools, in tokens, and the most bytes of values that it puts in front of a task; none
/// where no cache of its service is known.
fn own_prompt(runtime: &str, config: &Config) -> Option<(u64, u64)> {
    let prompt = BuiltInRuntime::of(runtime)?.shared_prompt(config)?;
    Some((prompt.own_tokens, prompt.inline_bytes))
}

/// Returns the dollars that so many agents save which read so many tokens from a cache, at this saving for a million.
fn saved(saving: MicroUsd, tokens: u64, agents: u64) -> MicroUsd {
    let micros = u128::from(saving.as_micros()) * u128::from(tokens) * u128::from(agents);
    MicroUsd::from_micros(u64::try_from(micros / 1_000_000).unwrap_or(u64::MAX))
}
