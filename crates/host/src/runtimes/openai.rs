//! Models behind a chat endpoint, as the configuration has them.

use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_config::{AgentId, Config, RuntimeSettings, Valued};
use offshoot_model::CostKnowledge;
use offshoot_runtime::Runtime;
use offshoot_runtime_openai::{AgentOptions, CostOption, OpenAiOptions, OpenAiRuntime, Price};

use super::{
    AgentSetting, Built, BuiltInRuntime, CheckRequest, CheckedRuntime, Effect, NO_EXIT_CODES,
    RuntimeError, RuntimeParts, settings,
};
use crate::error::HostError;
use crate::metering::Asks;
use crate::pressure_file::shared_pressure;

/// The runtime of models behind a chat endpoint.
pub(crate) const OPENAI: BuiltInRuntime = BuiltInRuntime {
    name: "openai",
    runs_commands: false,
    resumes: false,
    asks: Asks::ChatEndpoint,
    effect,
    shared_prompt: |config| Some(options(config).ok()?.shared_prompt()),
    check,
    build: |parts| async move { build(&parts) }.boxed(),
};

/// An agent of which nothing says which model it asks.
#[derive(Debug, thiserror::Error)]
#[error("no model is chosen for the agent `{agent}`")]
struct ModelMissing {
    agent: AgentId,
}

fn effect(setting: AgentSetting) -> Effect {
    match setting {
        AgentSetting::Model
        | AgentSetting::Thinking
        | AgentSetting::SystemPrompt
        | AgentSetting::MaxTurns
        | AgentSetting::SchemaRepairs
        | AgentSetting::Compaction
        | AgentSetting::ContextPruning => Effect::Heeded,
        AgentSetting::RetriesOnExit => NO_EXIT_CODES,
    }
}

/// Looks whether the endpoint can be called, and calls nothing.
fn check(request: &CheckRequest<'_>) -> Result<CheckedRuntime, HostError> {
    let options = options(request.config)?;
    if options.model.is_none() && request.model.is_none() {
        let missing = ModelMissing { agent: request.agent.clone() };
        let hint = "name one with runtimes.openai.options.model, or with model of the agent in agents.list";
        return Err(RuntimeError::new(missing, hint).into());
    }
    let runtime = OpenAiRuntime::new(OPENAI.name, options, &request.environment.variables);
    runtime.check().map_err(|error| {
        let hint = error.hint();
        RuntimeError::new(error, hint)
    })?;
    Ok(CheckedRuntime { command: [OPENAI.name.to_owned()].into(), cost: runtime.abilities().cost })
}

/// Builds the runtime if the tree or the configuration names it: otherwise no run needs it.
fn build(parts: &RuntimeParts<'_>) -> Result<Built, HostError> {
    let RuntimeParts { config, environment, wanted, .. } = *parts;
    let of_agent =
        |runtime: Option<&Valued<String>>| runtime.is_some_and(|name| name.value == OPENAI.name);
    let is_named = config.runtime(OPENAI.name).is_some()
        || config.agents().any(|agent| of_agent(agent.runtime.as_ref()))
        || config.fallback_runtimes().contains(OPENAI.name);
    if !wanted && !is_named {
        return Ok(None);
    }
    let runtime = OpenAiRuntime::new(OPENAI.name, options(config)?, &environment.variables);
    let pressure = shared_pressure(&runtime, environment);
    Ok(Some(Arc::new(runtime.with_pressure(pressure))))
}

/// Returns the address of the endpoint and the variable with its key, as the configuration has them.
pub(crate) fn endpoint(config: &Config) -> (String, Option<String>) {
    let options = options(config).unwrap_or_default();
    (options.base_url, options.key_variable)
}

/// Returns the options of the endpoint, as the configuration has them.
pub(super) fn options(config: &Config) -> Result<OpenAiOptions, HostError> {
    let configured = config.runtime(OPENAI.name).cloned().unwrap_or_default();
    // This runtime starts no program.
    let RuntimeSettings {
        command: _,
        env: _,
        wrap: _,
        default_usd: _,
        park: _,
        cost,
        meter: _,
        key_env: _,
        key_file: _,
        key_command: _,
        options,
    } = configured;
    let name = format!("runtimes.{}.options", OPENAI.name);
    let mut options: OpenAiOptions =
        options.map(|options| settings(&name, &options)).transpose()?.unwrap_or_default();
    if cost.is_some_and(|cost| cost.value == CostKnowledge::None) {
        options.cost = CostOption::None;
    }
    for (model, price) in config.prices() {
        let usd = |price: &Option<Valued<_>>| price.as_ref().map(|price| price.value);
        if let (Some(input_per_million), Some(output_per_million)) =
            (usd(&price.input_per_million), usd(&price.output_per_million))
        {
            let price = Price {
                input_per_million,
                output_per_million,
                cache_read_per_million: usd(&price.cache_read_per_million),
                cache_write_per_million: usd(&price.cache_write_per_million),
            };
            options.prices.entry(model.clone()).or_insert(price);
        }
    }
    for agent in config.agent_ids() {
        let compaction = config.compaction(agent);
        let pruning = config.context_pruning(agent);
        let model = config.agent(agent).and_then(|agent| agent.model.as_ref());
        let stand_ins = model.map(|model| model.value.models());
        let turns = config.agent(agent).and_then(|agent| agent.max_turns.as_ref());
        let own = AgentOptions {
            max_rounds: turns.map(|turns| turns.value.get()),
            fallback_models: stand_ins.filter(|models| !models.is_empty()),
            compaction: compaction
                .map(|table| settings(&format!("compaction of the agent {agent}"), table))
                .transpose()?,
            context_pruning: pruning
                .map(|table| settings(&format!("contextPruning of the agent {agent}"), table))
                .transpose()?,
        };
        options.agents.insert(agent.to_string(), own);
    }
    Ok(options)
}
