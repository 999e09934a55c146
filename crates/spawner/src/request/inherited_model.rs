//! The choice of model and thinking for a run.
//!
//! ```text
//!   the request ── else ──▶ the agent that runs ── else ──▶ the agent that asks, for those below it ── else ──▶ the run above
//! ```
//!
//! Models of one runtime mean nothing to another, so only a run above that has the same one is asked.

use std::sync::Arc;

use offshoot_config::{AgentDefinition, Config};
use offshoot_model::{AgentId, Origin, SpawnRequest};

/// Model and thinking of a run, which runs below it inherit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InheritedModel {
    runtime: Box<str>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) thinking: Option<Arc<str>>,
}

impl InheritedModel {
    /// None where nothing was chosen.
    pub(crate) fn of(request: &SpawnRequest, runtime: &str) -> Option<Arc<Self>> {
        let [model, thinking] =
            [&request.model, &request.thinking].map(|text| text.as_deref().map(Into::into));
        if model.is_none() && thinking.is_none() {
            return None;
        }
        Some(Arc::new(Self { runtime: runtime.into(), model, thinking }))
    }

    /// Gives it to a run below that has none.
    pub(crate) fn hand_down(&self, runtime: &str, request: &mut SpawnRequest) {
        if *self.runtime == *runtime {
            let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
            request.model = request.model.take().or_else(|| text(&self.model));
            request.thinking = request.thinking.take().or_else(|| text(&self.thinking));
        }
    }
}

/// Fills in what the configuration says for a run of this agent.
pub(crate) fn configured(
    request: &mut SpawnRequest,
    runs: Option<&AgentDefinition>,
    asks: &AgentId,
    origin: Origin,
    config: &Config,
) {
    if let Some(agent) = runs {
        let model = agent.model.as_ref().and_then(|model| model.value.primary.as_ref());
        request.model = request.model.take().or_else(|| model.cloned());
        let thinking = agent.thinking.as_ref().map(|thinking| &thinking.value);
        request.thinking = request.thinking.take().or_else(|| thinking.cloned());
    }
    if origin == Origin::Agent && (request.model.is_none() || request.thinking.is_none()) {
        let below = config.settings(asks);
        let model = below.model.and_then(|model| model.value.primary);
        request.model = request.model.take().or(model);
        let thinking = below.thinking.map(|thinking| thinking.value);
        request.thinking = request.thinking.take().or(thinking);
    }
}
