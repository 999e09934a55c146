//! Programs as agents.

use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_config::RuntimeSettings;
use offshoot_process::resolve_program;
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};
use offshoot_spawner::program_cost;

use super::{
    AgentSetting, BuiltInRuntime, CheckRequest, CheckedRuntime, Effect, RuntimeError, RuntimeParts,
};
use crate::error::HostError;
use crate::metering::Asks;

/// The runtime that starts programs.
pub const EXEC: BuiltInRuntime = BuiltInRuntime {
    name: offshoot_runtime::EXEC,
    runs_commands: true,
    resumes: false,
    asks: Asks::AnyProvider,
    effect,
    shared_prompt: |_| None,
    check,
    build: |parts| async move { Ok(Some(Arc::new(runtime(parts)) as _)) }.boxed(),
};

fn effect(setting: AgentSetting) -> Effect {
    match setting {
        AgentSetting::RetriesOnExit => Effect::Heeded,
        AgentSetting::Model | AgentSetting::Thinking | AgentSetting::SystemPrompt => {
            Effect::Without("and a program is not told of it")
        }
        AgentSetting::MaxTurns | AgentSetting::SchemaRepairs => {
            Effect::Without("and a program has no turns")
        }
        AgentSetting::Compaction | AgentSetting::ContextPruning => {
            Effect::Without("and a program has no conversation that is known")
        }
    }
}

/// Builds the runtime, as `runtimes.exec` has it.
fn runtime(parts: RuntimeParts<'_>) -> ExecRuntime {
    let RuntimeParts { config, environment, processes, .. } = parts;
    let settings = config.runtime(EXEC.name).cloned().unwrap_or_default();
    // The command and the cost are those of the check. It parks no agent and has no options.
    let RuntimeSettings {
        command: _,
        env: more,
        wrap,
        default_usd: _,
        park: _,
        cost: _,
        meter: _,
        key_env: _,
        key_file: _,
        key_command: _,
        options: _,
    } = settings;
    let options = ExecOptions {
        environment: environment.variables.clone(),
        more: more.map(|more| more.value).unwrap_or_default(),
        wrap: wrap.map(|wrap| wrap.value.to_vec()).unwrap_or_default(),
        offshoot: Some(environment.offshoot.clone()),
    };
    ExecRuntime::new(processes, options)
}

/// Finds the program. Behind a wrapper only the wrapper can know.
fn check(request: &CheckRequest<'_>) -> Result<CheckedRuntime, HostError> {
    let CheckRequest { config, environment, agent, folder, command, plain, .. } = *request;
    let settings = config.runtime(EXEC.name);
    let own = config.agent(agent).and_then(|agent| agent.command.as_ref());
    let general = settings.and_then(|settings| settings.command.as_ref());
    let command: Arc<[String]> = match own.or(general) {
        _ if !command.is_empty() => command.into(),
        Some(configured) => configured.value.iter().cloned().collect(),
        None => return Err(HostError::NoCommand { runtime: EXEC.name }),
    };
    let wrapper = settings.and_then(|settings| settings.wrap.as_ref());
    let program = wrapper.map_or(command[0].as_str(), |wrap| wrap.value.program());
    let hint = match program.contains(char::is_whitespace) {
        true => "a line of shell is three words: -- sh -c 'LINE'",
        false => "check its name, its mode and PATH",
    };
    resolve_program(program.as_ref(), environment.path(), folder)
        .map_err(|error| RuntimeError::new(error, hint))?;
    Ok(CheckedRuntime { command, cost: program_cost(config, plain) })
}
