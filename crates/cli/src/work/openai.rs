//! Models behind a chat endpoint, as the configuration has them.

use offshoot_config::{Config, CostKind, FreeForm, Valued};
use offshoot_runtime_openai::{
    AgentOptions, CostOption, EndpointError, OpenAiOptions, OpenAiRuntime, Price,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The name of the runtime.
pub(crate) const OPENAI: &str = "openai";

/// Whether anybody speaks of it: otherwise no tree needs it.
pub(crate) fn is_wanted(config: &Config) -> bool {
    let of_agent =
        |runtime: Option<&Valued<String>>| runtime.is_some_and(|name| name.value == OPENAI);
    config.runtime(OPENAI).is_some()
        || config.agents().any(|agent| of_agent(agent.runtime.as_ref()))
}

/// The runtime, as `runtimes.openai` and the agents have it.
pub(crate) fn runtime(config: &Config, cx: &Invocation) -> Result<OpenAiRuntime, Failure> {
    Ok(OpenAiRuntime::new(OPENAI, options(config)?, &cx.environment.variables))
}

/// It cannot be used, and what can be done about it.
pub(crate) fn unusable(error: &EndpointError) -> Failure {
    Failure::of(Exit::NoRuntime, error).hint(error.hint())
}

fn options(config: &Config) -> Result<OpenAiOptions, Failure> {
    let settings = config.runtime(OPENAI);
    let options = settings.and_then(|settings| settings.options.as_ref());
    let name = format!("runtimes.{OPENAI}.options");
    let mut options: OpenAiOptions =
        options.map(|options| table(&name, options)).transpose()?.unwrap_or_default();
    let cost = settings.and_then(|settings| settings.cost.as_ref());
    if cost.is_some_and(|cost| cost.value == CostKind::None) {
        options.cost = CostOption::None;
    }
    for (model, price) in config.prices() {
        let usd = |price: &Option<Valued<_>>| price.as_ref().map(|price| price.value);
        if let (Some(input_per_million), Some(output_per_million)) =
            (usd(&price.input_per_million), usd(&price.output_per_million))
        {
            let cache_read_per_million = usd(&price.cache_read_per_million);
            let price = Price { input_per_million, output_per_million, cache_read_per_million };
            options.prices.entry(model.clone()).or_insert(price);
        }
    }
    let agents = config.agents().map(|agent| agent.id()).chain([config.default_agent()]);
    for agent in agents {
        let compaction = config.compaction(agent);
        let pruning = config.context_pruning(agent);
        let model = config.agent(agent).and_then(|agent| agent.model.as_ref());
        let stand_ins = model.map(|model| model.value.fallbacks.clone());
        let own = AgentOptions {
            fallback_models: stand_ins.filter(|models| !models.is_empty()),
            compaction: compaction
                .map(|table| self::table(&format!("compaction of the agent {agent}"), table))
                .transpose()?,
            context_pruning: pruning
                .map(|table| self::table(&format!("contextPruning of the agent {agent}"), table))
                .transpose()?,
        };
        options.agents.insert(agent.to_string(), own);
    }
    Ok(options)
}

fn table<T: DeserializeOwned>(name: &str, table: &Valued<FreeForm>) -> Result<T, Failure> {
    let value = Value::Object((*table.value).clone());
    serde_json::from_value(value).map_err(|error| {
        let origin = &table.origin;
        Failure::input(format_args!("{name} ({origin}): {error}"))
    })
}
