//! Claude Code as this machine has it: settings into options, and whether the program is there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_config::{Config, FreeForm, Park, RuntimeSettings, Valued};
use offshoot_model::AgentId;
use offshoot_process::{ProgramError, resolve_program};
use offshoot_runtime_claude::{
    AgentOptions, CheckError, ClaudeOptions, ClaudeRuntime, OwnServer, Parking, preview,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    AgentSetting, Built, BuiltInRuntime, CheckRequest, CheckedRuntime, Effect, NO_EXIT_CODES,
    RuntimeError, RuntimeParts, settings as read,
};
use crate::environment::Environment;
use crate::error::HostError;
use crate::metering::Asks;
use crate::pressure_file::shared_pressure;

/// The runtime of Claude Code.
pub const CLAUDE: BuiltInRuntime = BuiltInRuntime {
    name: "claude",
    runs_commands: false,
    resumes: true,
    asks: Asks::Anthropic,
    effect,
    shared_prompt: |_| Some(ClaudeRuntime::SHARED_PROMPT),
    check,
    build: |parts| build(parts).boxed(),
};

/// In seconds. We are the client, so a call may block for as long as the run may take.
const PATIENCE: &str = "86400";

/// The options of `runtimes.claude.options`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct More {
    bare: bool,
    fallback_models: Vec<String>,
    permission_mode: Option<String>,
    max_turns: Option<u32>,
    json_schema: Option<Value>,
    settings: Option<Value>,
    servers: BTreeMap<String, Value>,
}

fn effect(setting: AgentSetting) -> Effect {
    match setting {
        AgentSetting::Model
        | AgentSetting::Thinking
        | AgentSetting::SystemPrompt
        | AgentSetting::MaxTurns
        | AgentSetting::SchemaRepairs
        | AgentSetting::Compaction => Effect::Heeded,
        AgentSetting::ContextPruning => Effect::Refused("which has no such setting"),
        AgentSetting::RetriesOnExit => NO_EXIT_CODES,
    }
}

/// Looks whether the program is there. Its version is asked when it is built.
fn check(request: &CheckRequest<'_>) -> Result<CheckedRuntime, HostError> {
    let options = options(request.config, request.environment)?;
    find(&options, request.folder, request.environment).map_err(unusable)?;
    // A run that would not start says so when it is started.
    let command = request.launch.and_then(|launch| preview(launch, &options).ok());
    let command = command.unwrap_or_else(|| vec![options.command]);
    Ok(CheckedRuntime { command: command.into(), cost: ClaudeRuntime::ABILITIES.cost })
}

/// Builds the runtime where the program is there: an agent of a tree of programs may ask for it too.
async fn build(parts: RuntimeParts<'_>) -> Result<Built, HostError> {
    let RuntimeParts { config, environment, processes, folder, wanted } = parts;
    let options = options(config, environment)?;
    if find(&options, folder, environment).is_err() {
        return Ok(None);
    }
    // A wrapper cannot be asked for a version.
    let asks = wanted && options.wrap.is_empty();
    let runtime = ClaudeRuntime::new(processes, options);
    if asks {
        runtime.check(folder).await.map_err(unusable)?;
    }
    let pressure = shared_pressure(&runtime, environment);
    Ok(Some(Arc::new(runtime.with_pressure(pressure))))
}

fn unusable(error: CheckError) -> RuntimeError {
    let hint = error.hint();
    RuntimeError::new(error, hint)
}

/// Reads `runtimes.claude.options`.
fn read_more(options: Option<&Valued<FreeForm>>) -> Result<More, HostError> {
    let more = options.map(|table| read("runtimes.claude.options", table)).transpose()?;
    Ok(more.unwrap_or_default())
}

/// Checks `runtimes.claude.options`.
pub(super) fn check_options(config: &Config) -> Result<(), HostError> {
    let settings = config.runtime(CLAUDE.name);
    read_more(settings.and_then(|settings| settings.options.as_ref())).map(drop)
}

/// Returns the options of the runtime, as `runtimes.claude` has them.
fn options(config: &Config, environment: &Environment) -> Result<ClaudeOptions, HostError> {
    let own_server = OwnServer {
        command: environment.offshoot.clone(),
        args: vec!["mcp".into(), "--patience".into(), PATIENCE.into()],
    };
    let options = ClaudeOptions {
        own_server: Some(own_server),
        agents: agents(config)?,
        ..ClaudeOptions::inheriting(environment.variables.clone())
    };
    let Some(settings) = config.runtime(CLAUDE.name) else { return Ok(options) };
    // Each key is named, here and in the other runtimes: a new one is used or passed over on purpose. Those of the meter are read in
    // `metering.rs`.
    let RuntimeSettings {
        command,
        env,
        wrap,
        default_usd: _,
        park,
        cost: _,
        meter: _,
        key_env: _,
        key_file: _,
        key_command: _,
        options: more,
    } = settings;
    let More { bare, fallback_models, permission_mode, max_turns, json_schema, settings, servers } =
        read_more(more.as_ref())?;
    // A command of several words is a program and what it is given first: all but its last word go before.
    let own = command.as_ref().map(|command| command.value.as_ref());
    let (command, before): (_, &[String]) = match own.and_then(<[String]>::split_last) {
        Some((last, before)) => (last.as_str(), before),
        None => (CLAUDE.name, &[]),
    };
    let wrap = wrap.as_ref().map(|wrap| wrap.value.as_ref()).unwrap_or_default();
    Ok(ClaudeOptions {
        command: command.to_owned(),
        wrap: [wrap, before].concat(),
        more: env.as_ref().map(|env| env.value.clone()).unwrap_or_default(),
        bare,
        fallback_models,
        permission_mode,
        max_turns,
        json_schema: json_schema.map(|schema| schema.to_string()),
        settings,
        servers,
        parking: match park.as_ref().map(|park| park.value) {
            Some(Park::Keep) => Parking::Keep,
            Some(Park::Resume) => Parking::Resume,
            Some(Park::Auto) | None => Parking::Auto,
        },
        ..options
    })
}

/// Returns the options of each agent, its own or those of the defaults.
fn agents(config: &Config) -> Result<BTreeMap<String, AgentOptions>, HostError> {
    let own = |id: &AgentId| {
        let model = config.agent(id).and_then(|agent| agent.model.as_ref());
        let below = config.settings(id).model;
        let fallback_models = [model, below.as_ref()]
            .into_iter()
            .flatten()
            .map(|model| model.value.models())
            .find(|fallbacks| !fallbacks.is_empty());
        let name = format!("compaction of the agent {id}");
        let compaction = config.compaction(id).map(|compaction| read(&name, compaction));
        let fallback_models = fallback_models.unwrap_or_default();
        let compaction = compaction.transpose()?.unwrap_or_default();
        let max_turns = config.agent(id).and_then(|agent| agent.max_turns.as_ref());
        let max_turns = max_turns.map(|turns| turns.value.get());
        Ok((id.to_string(), AgentOptions { fallback_models, max_turns, compaction }))
    };
    config.agent_ids().map(own).collect()
}

/// Finds the program that is to be started. Behind a wrapper only the wrapper can know.
fn find(
    options: &ClaudeOptions,
    folder: &Path,
    environment: &Environment,
) -> Result<(), CheckError> {
    let command = options.wrap.first().unwrap_or(&options.command).clone();
    match resolve_program(command.as_ref(), environment.path(), folder) {
        Ok(_) => Ok(()),
        Err(ProgramError::NotFound { .. }) => Err(CheckError::NotFound { command }),
        Err(error) => Err(CheckError::CannotStart { command, message: error.to_string() }),
    }
}
