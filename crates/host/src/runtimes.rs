//! The runtimes that need no plugin. Each is one [`BuiltInRuntime`], declared in a file of its own.

mod agent_setting;
mod claude;
mod exec;
mod openai;
mod unpriced;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_config::{Config, FreeForm, ModelChoice, Valued, built_in, nearest};
use offshoot_model::{AgentId, MicroUsd};
use offshoot_process::Processes;
use offshoot_runtime::{CostKnowledge, Launch, Runtime, SharedPrompt};
use offshoot_runtime_openai::EndpointError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::environment::Environment;
use crate::error::HostError;
use crate::metering::{self, Asks};

pub use crate::metering::{cache_saving, input_price, is_metered};
pub use agent_setting::{AgentSetting, Effect, Ineffective, runtime_of, without_effect};
pub use claude::CLAUDE;
pub use exec::EXEC;
pub(crate) use openai::{OPENAI, endpoint as openai_endpoint};
pub use unpriced::{UnpricedModel, unpriced};

/// All of them, the only list. The first one is the default of the engine.
pub const BUILT_IN: [&BuiltInRuntime; 3] = [&EXEC, &CLAUDE, &OPENAI];

/// The effect of `retries.on` where a run does not end as a program does.
const NO_EXIT_CODES: Effect = Effect::Without(
    "whose endings are no exit codes or signals; faults that pass, timeout and idle are tried again",
);

/// A runtime that needs no plugin.
#[derive(Debug)]
pub struct BuiltInRuntime {
    /// The name after `--runtime` and in `runtimes.NAME`.
    pub name: &'static str,
    /// True if a command that is given for a tree is for this runtime.
    pub runs_commands: bool,
    /// True if an attempt goes on where the one before has ended.
    pub resumes: bool,
    /// The provider that its runs ask.
    pub(crate) asks: Asks,
    effect: fn(AgentSetting) -> Effect,
    shared_prompt: fn(&Config) -> Option<SharedPrompt>,
    check: fn(&CheckRequest<'_>) -> Result<CheckedRuntime, HostError>,
    build: for<'a> fn(RuntimeParts<'a>) -> BoxFuture<'a, Result<Built, HostError>>,
}

/// A runtime, where it can be used and the configuration needs it.
type Built = Option<Arc<dyn Runtime>>;

/// The run that a tree is about to start.
#[derive(Clone, Copy, Debug)]
pub struct CheckRequest<'a> {
    /// The configuration of the tree.
    pub config: &'a Config,
    /// The environment that programs get.
    pub environment: &'a Environment,
    /// The agent.
    pub agent: &'a AgentId,
    /// The working folder.
    pub folder: &'a Path,
    /// The command that is given for the tree; empty if none is.
    pub command: &'a [String],
    /// True if the operator gave the command for this very tree.
    pub plain: bool,
    /// The model that the task or the agent names; none where neither does.
    pub model: Option<&'a str>,
    /// The run as far as it is known, where its whole command line is wanted: for a dry run.
    pub launch: Option<&'a Launch>,
}

/// The command that a runtime would start, and its cost.
#[derive(Clone, Debug)]
pub struct CheckedRuntime {
    /// The program and its arguments, or the name of the runtime where it starts none.
    pub command: Arc<[String]>,
    /// The knowledge of a run's cost.
    pub cost: CostKnowledge,
}

/// The parts of which runtimes are built.
struct RuntimeParts<'a> {
    config: &'a Config,
    environment: &'a Environment,
    processes: Processes,
    /// The working folder of the tree, where there is one already.
    folder: &'a Path,
    /// True if the tree runs on this runtime.
    wanted: bool,
}

impl BuiltInRuntime {
    /// Returns the runtime of this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        BUILT_IN.into_iter().find(|runtime| runtime.name == name)
    }

    /// Returns the names of all, in the order in which help has them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.into_iter().map(|runtime| runtime.name)
    }

    /// Returns the effect that a setting of an agent has with it.
    pub fn effect(&self, setting: AgentSetting) -> Effect {
        (self.effect)(setting)
    }

    /// Returns the beginning of their prompts that its runs have in common, as the configuration has it.
    pub fn shared_prompt(&self, config: &Config) -> Option<SharedPrompt> {
        (self.shared_prompt)(config)
    }

    /// Finds what it would start. Opens and starts nothing.
    ///
    /// # Errors
    ///
    /// Fails if the runtime cannot be used, or has nothing to run.
    pub fn check(&self, request: &CheckRequest<'_>) -> Result<CheckedRuntime, HostError> {
        let checked = (self.check)(request)?;
        match check_meter(request.config, request.environment, self.name)? {
            true => Ok(CheckedRuntime { cost: CostKnowledge::Metered, ..checked }),
            false => Ok(checked),
        }
    }
}

/// Returns whether the runs of a runtime are metered, and checks that they can be. Asks no program for a key.
///
/// # Errors
///
/// Fails if the configuration wants the meter, and names no provider that it can ask.
pub fn check_meter(
    config: &Config,
    environment: &Environment,
    runtime: &str,
) -> Result<bool, HostError> {
    let is_metered = is_metered(config, runtime);
    if is_metered {
        metering::metered(runtime, config, environment, None).map_err(|error| {
            let hint = error.hint();
            RuntimeError::new(error, hint)
        })?;
    }
    Ok(is_metered)
}

/// An address of a chat endpoint that cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("runtimes.openai.options.baseUrl: {source}")]
struct AddressWrong {
    source: EndpointError,
}

/// Checks the options of runtimes, whose keys the configuration does not know.
///
/// # Errors
///
/// Fails if an option is unknown, or has a value that does not fit.
pub fn check_options(config: &Config) -> Result<(), HostError> {
    if let Some((place, _)) = fallbacks(config).find(|(_, runtime)| runtime == EXEC.name) {
        let hint = "name a runtime of models there, such as claude or openai, or leave it out";
        return Err(RuntimeError::new(NoModel { place }, hint).into());
    }
    claude::check_options(config)?;
    let options = openai::options(config)?;
    options.check_address().map_err(|source| {
        let hint = source.hint();
        RuntimeError::new(AddressWrong { source }, hint).into()
    })
}

/// A runtime that is to take runs over, and runs no model.
#[derive(Debug, thiserror::Error)]
#[error("{place}: the runtime `{}` runs no model", EXEC.name)]
struct NoModel {
    place: String,
}

/// Returns the runtimes that are to take runs over, with their places in the configuration.
fn fallbacks(config: &Config) -> impl Iterator<Item = (String, String)> {
    let of_model = |place: String, model: Option<&Valued<ModelChoice>>| {
        let all = model.into_iter().flat_map(|model| model.value.runtimes());
        all.map(|fallback| (place.clone(), fallback.runtime.clone())).collect::<Vec<_>>()
    };
    let of_agents = config.agents().flat_map(move |agent| {
        let own =
            of_model(format!("model.fallbacks of the agent {}", agent.id()), agent.model.as_ref());
        let below = format!("subagents.model.fallbacks of the agent {}", agent.id());
        [own, of_model(below, agent.subagents.model.as_ref())].concat()
    });
    // Those of the default agent are named with it.
    let is_own =
        config.agent(config.default_agent()).is_some_and(|it| it.subagents.model.is_some());
    let of_limits = config.settings(config.default_agent()).model.filter(|_| !is_own);
    of_agents.chain(of_model("subagents.model.fallbacks".to_owned(), of_limits.as_ref()))
}

/// A name of a runtime that is not built in, and is nearly the name of one that is. A plugin may have it.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display(
    "{place}: no runtime `{name}` is built in, the nearest is `{near}`; where a plugin has this one, nothing is wrong"
)]
pub struct MisspeltRuntime {
    /// The place in the configuration.
    place: String,
    /// The name.
    name: String,
    /// The name that was probably meant.
    near: &'static str,
}

/// Returns the names of runtimes in a configuration that are nearly the name of one that is built in.
pub fn misspelt(config: &Config) -> Vec<MisspeltRuntime> {
    let settings = config.runtimes().map(|name| (format!("runtimes.{name}"), name.to_owned()));
    let agents = config.agents().filter_map(|agent| {
        let runtime = agent.runtime.as_ref()?.value.clone();
        Some((format!("runtime of the agent {}", agent.id()), runtime))
    });
    let names: Vec<&str> = BuiltInRuntime::names().collect();
    let near = |(place, name): (String, String)| {
        let is_known = BuiltInRuntime::of(&name).is_some() || config.runtime(&name).is_some();
        let is_named_first = place.starts_with("runtimes.");
        let near = nearest(&name, &names).filter(|_| is_named_first || !is_known)?;
        (near != name).then_some(MisspeltRuntime { place, name, near })
    };
    settings.chain(agents).chain(fallbacks(config)).filter_map(near).collect()
}

/// Builds the runtimes that can be used here. `wanted` is the one of the tree, in this folder.
pub(crate) async fn build(
    config: &Config,
    environment: &Environment,
    processes: &Processes,
    folder: &Path,
    wanted: Option<&str>,
) -> Result<Vec<Arc<dyn Runtime>>, HostError> {
    let mut built = Vec::new();
    for runtime in BUILT_IN {
        let processes = processes.clone();
        let wanted = wanted == Some(runtime.name);
        let parts = RuntimeParts { config, environment, processes, folder, wanted };
        let ready = (runtime.build)(parts).await?;
        debug_assert!(
            ready.as_ref().is_none_or(|ready| ready.abilities().resumes == runtime.resumes),
            "what is said of {} before it is built is true of it",
            runtime.name
        );
        built.extend(ready);
    }
    Ok(built)
}

/// Returns the dollars that a tree may cost under a runtime where no budget is set.
pub fn default_usd(config: &Config, runtime: &str) -> MicroUsd {
    let configured = config.runtime(runtime).and_then(|settings| settings.default_usd.as_ref());
    configured.map_or(built_in::RUNTIME_DEFAULT_USD, |usd| usd.value)
}

/// Returns the dollars that a tree may cost by default, for each of these runtimes. For one that costs nothing they bound what agents ask
/// for its runs, which may start any other: they are the least of the others.
pub(crate) fn default_dollars(config: &Config, names: &[String]) -> Vec<(String, MicroUsd)> {
    let costs_nothing = |name: &str| {
        is_said_to_be_free(config, name) || name == EXEC.name && !is_metered(config, name)
    };
    let paid = names.iter().filter(|name| !costs_nothing(name));
    let least = paid.map(|name| default_usd(config, name)).min();
    let of = |name: &String| {
        let least = least.filter(|_| costs_nothing(name));
        (name.clone(), least.unwrap_or_else(|| default_usd(config, name)))
    };
    names.iter().map(of).collect()
}

/// True if the configuration says that calls of a runtime cost nothing. Where the trees of a day are bounded together, each has a budget
/// nevertheless.
pub fn is_said_to_be_free(config: &Config, runtime: &str) -> bool {
    let said = config.runtime(runtime).and_then(|settings| settings.cost.as_ref());
    said.is_some_and(|cost| cost.value == CostKnowledge::None)
        && runtime != CLAUDE.name
        && config.host().usd_per_day.is_none()
}

/// Reads settings of a runtime.
fn settings<T: DeserializeOwned>(name: &str, table: &Valued<FreeForm>) -> Result<T, HostError> {
    let value = Value::Object((*table.value).clone());
    serde_json::from_value(value).map_err(|error| HostError::Settings {
        name: name.to_owned(),
        origin: table.origin.clone(),
        source: Arc::new(error),
    })
}

/// A runtime that cannot be used here, and what can be done about it.
#[derive(Debug, derive_more::Display)]
#[display("{error}")]
pub struct RuntimeError {
    error: Box<dyn Error + Send + Sync>,
    hint: &'static str,
}

impl RuntimeError {
    fn new(error: impl Error + Send + Sync + 'static, hint: &'static str) -> Self {
        Self { error: Box::new(error), hint }
    }

    /// Returns what can be done about it.
    pub fn hint(&self) -> &'static str {
        self.hint
    }
}

impl Error for RuntimeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
