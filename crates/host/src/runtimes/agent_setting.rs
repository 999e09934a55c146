//! The settings of an agent that one runtime heeds and another does not.
//!
//! The registry says of each runtime which of them have an effect ([`BuiltInRuntime::effect`]), in a match without a rest: a new
//! runtime states its own row, and a new setting is answered for by each runtime. Of plugins nothing is known.

use offshoot_config::{AgentDefinition, Config, Origin, Valued};
use offshoot_model::AgentId;

use super::{BuiltInRuntime, CLAUDE, EXEC};

/// A setting whose effect depends on the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
#[display(rename_all = "camelCase")]
pub enum AgentSetting {
    /// The model.
    Model,
    /// The effort of its thinking.
    Thinking,
    /// The agent's own instructions.
    SystemPrompt,
    /// Rounds of tools in one turn.
    MaxTurns,
    /// Further turns to mend an answer.
    SchemaRepairs,
    /// The way in which a long conversation is summed up.
    Compaction,
    /// The part of old results that is left out.
    ContextPruning,
    /// The endings of programs after which a run begins again: exit codes and signals.
    #[display("retries.on")]
    RetriesOnExit,
}

/// The effect that a setting has with a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The runtime does as it says.
    Heeded,
    /// The setting does nothing. The text goes on from "it runs on NAME, ".
    Without(&'static str),
    /// The setting does nothing, and setting it is an error. The text goes on in the same way.
    Refused(&'static str),
}

/// A setting that does nothing for the agent that has it.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display("{setting}{value}: agent `{agent}` runs on `{runtime}`{}, {why} ({origin})", by_default(*is_named))]
pub struct Ineffective {
    /// The setting.
    pub setting: AgentSetting,
    /// Text of the value, behind ` = `, where that says more than the name.
    value: String,
    /// The agent.
    pub agent: AgentId,
    /// The runtime of the agent.
    pub runtime: &'static str,
    /// True if the configuration names the runtime; else it is the default, and a command line may name another.
    is_named: bool,
    /// The reason.
    pub why: &'static str,
    /// True if it is an error.
    pub is_refused: bool,
    /// The origin of the value.
    pub origin: Origin,
}

const fn by_default(is_named: bool) -> &'static str {
    if is_named { "" } else { " where no command and no runtime is given" }
}

impl Ineffective {
    /// Returns what can be done about it.
    pub fn hint(&self) -> Option<&'static str> {
        (self.setting == AgentSetting::ContextPruning).then_some(
            "set it for agents on `openai` alone; `contextPruning.mode = \"off\"` switches that of the defaults off for one agent",
        )
    }
}

/// Returns the runtime that the definition of an agent names. One with a command alone is a program.
pub fn runtime_of(agent: &AgentDefinition) -> Option<&str> {
    let named = agent.runtime.as_ref().map(|name| name.value.as_str());
    named.or(agent.command.as_ref().map(|_| EXEC.name))
}

/// Returns the settings that do nothing with the runtime of their agent: of each agent that is defined, and of the default one where
/// none is.
pub fn without_effect(config: &Config) -> Vec<Ineffective> {
    let defined: Vec<&AgentId> = config.agents().map(AgentDefinition::id).collect();
    let ids = if defined.is_empty() { vec![config.default_agent()] } else { defined };
    ids.into_iter().flat_map(|id| of_agent(config, id)).collect()
}

fn of_agent(config: &Config, id: &AgentId) -> Vec<Ineffective> {
    let definition = config.agent(id);
    let named = definition.and_then(runtime_of);
    let Some(runtime) = BuiltInRuntime::of(named.unwrap_or(CLAUDE.name)) else {
        return Vec::new();
    };
    let ineffective = |(setting, value, origin): (AgentSetting, String, Origin)| {
        // An undefined agent runs what the command line says: nothing expects the default.
        let (why, is_refused) = match runtime.effect(setting) {
            Effect::Heeded => return None,
            Effect::Without(why) => (why, false),
            Effect::Refused(why) => (why, definition.is_some()),
        };
        let (agent, runtime, is_named) = (id.clone(), runtime.name, named.is_some());
        Some(Ineffective { setting, value, agent, runtime, is_named, why, is_refused, origin })
    };
    set(config, id).into_iter().filter_map(ineffective).collect()
}

/// Returns the settings of these that an agent has, its own and those of the defaults.
fn set(config: &Config, id: &AgentId) -> Vec<(AgentSetting, String, Origin)> {
    let mut set = Vec::new();
    let mut add = |setting, origin: Option<&Origin>| {
        set.extend(origin.map(|origin| (setting, String::new(), origin.clone())));
    };
    if let Some(agent) = config.agent(id) {
        add(AgentSetting::Model, origin_of(agent.model.as_ref()));
        add(AgentSetting::Thinking, origin_of(agent.thinking.as_ref()));
        add(AgentSetting::SystemPrompt, origin_of(agent.system_prompt.as_ref()));
        add(AgentSetting::MaxTurns, origin_of(agent.max_turns.as_ref()));
        add(AgentSetting::SchemaRepairs, origin_of(agent.schema_repairs.as_ref()));
    }
    add(AgentSetting::Compaction, origin_of(config.compaction(id)));
    let pruning = config.context_pruning(id);
    let pruning =
        pruning.filter(|pruning| pruning.value.get("mode").is_none_or(|mode| mode != "off"));
    add(AgentSetting::ContextPruning, origin_of(pruning));
    let on = config.settings(id).retries.on.filter(|on| on.value.is_for_programs());
    set.extend(on.map(|on| (AgentSetting::RetriesOnExit, format!(" = {}", on.value), on.origin)));
    set
}

fn origin_of<T>(value: Option<&Valued<T>>) -> Option<&Origin> {
    value.map(|value| &value.origin)
}
