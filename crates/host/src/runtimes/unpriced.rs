//! Models behind a chat endpoint that have no price.

use std::collections::BTreeSet;

use offshoot_config::{AgentDefinition, Config, Valued};
use offshoot_meter::PriceTable;
use offshoot_model::CostKnowledge;
use serde::Serialize;

use super::openai::{OPENAI, options};
use super::{is_metered, runtime_of};

/// A model that is asked behind a chat endpoint, and of which no price is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnpricedModel {
    /// The setting that names it, in words: `the agent`, with its id, or the options of the runtime.
    pub place: String,
    /// The name of the model.
    pub model: String,
    /// True if its requests go through the meter, which refuses them. Else its cost is unknown.
    pub is_metered: bool,
}

/// Returns the models without a price that the configuration names for chat endpoints, each once.
pub fn unpriced(config: &Config) -> Vec<UnpricedModel> {
    let Ok(options) = options(config) else { return Vec::new() };
    let settings = config.runtime(OPENAI.name);
    let cost = settings.and_then(|settings| settings.cost.as_ref());
    if cost.is_some_and(|cost| cost.value == CostKnowledge::None) {
        return Vec::new();
    }
    let is_metered = is_metered(config, OPENAI.name);
    let table = PriceTable::of(config.prices());
    // The meter knows the prices of the configuration alone.
    let is_priced = |model: &str| {
        table.find(model).is_some() || !is_metered && options.prices.contains_key(model)
    };
    let of_runtime = options.model.clone();
    let of_runtime =
        of_runtime.into_iter().map(|model| ("runtimes.openai.options".to_owned(), model));
    let named = of_runtime.chain(config.agents().flat_map(|agent| of_agent(config, agent)));
    let mut seen = BTreeSet::new();
    named
        .filter(|(_, model)| !is_priced(model) && seen.insert(model.clone()))
        .map(|(place, model)| UnpricedModel { place, model, is_metered })
        .collect()
}

/// Returns the models that an agent may ask behind a chat endpoint, each with its place.
fn of_agent(config: &Config, agent: &AgentDefinition) -> Vec<(String, String)> {
    let place = format!("the agent `{}`", agent.id());
    let mut models = Vec::new();
    if runtime_of(agent) == Some(OPENAI.name)
        && let Some(Valued { value: choice, .. }) = &agent.model
    {
        models.extend(choice.primary.clone());
        models.extend(choice.models());
    }
    let others = config.runtime_fallbacks(agent.id()).into_iter();
    models.extend(
        others.filter(|other| other.runtime == OPENAI.name).filter_map(|other| other.model),
    );
    models.into_iter().map(|model| (place.clone(), model)).collect()
}
