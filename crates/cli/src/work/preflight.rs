//! The checks before anything starts: the agent, its runtime, and that its program is there. A mistyped program is one error
//! here, and a thousand failed pieces later.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_config::{AgentDefinition, Config, Loader};
use offshoot_host::runtimes::{
    BuiltInRuntime, CLAUDE, CheckRequest, CheckedRuntime, EXEC, default_usd,
};
use offshoot_host::{HostError, Plugins};
use offshoot_model::AgentId;
use offshoot_plugin_host::{Checked, PluginError};
use offshoot_policy::Terms;
use offshoot_process::make_room;
use offshoot_runtime::{CostKnowledge, Runtime};
use offshoot_spawner::RunSpec;

use crate::arguments::WorkArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;
use crate::wording;

/// The runs that were checked.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The name of the agent.
    pub(crate) agent: AgentId,
    /// The settings of the runs.
    pub(crate) run_spec: RunSpec,
    /// The name of the runtime.
    pub(crate) runtime: Arc<str>,
    /// The program and its arguments, for people and for the record.
    pub(crate) command: Arc<[String]>,
    /// True if the runs may cost money.
    pub(crate) is_paid: bool,
    /// The plugins that can be found, and those that were loaded for it.
    pub(crate) plugins: Plugins,
    /// The folders of plugins that the command line names. Absolute.
    pub(crate) plugin_path: Vec<PathBuf>,
}

impl Prepared {
    /// Returns the command line of the runs, as a user would type it.
    pub(crate) fn command_line(&self) -> String {
        wording::command_line(&self.command)
    }
}

/// Reads the configuration, chooses agent and runtime, and looks for the program.
pub(crate) fn prepare(
    arguments: &WorkArguments,
    command: &[String],
    cx: &Invocation,
) -> Result<(Config, Prepared), Failure> {
    let layers = load::layers(cx, &arguments.limits)?;
    let config = load::finish(layers.clone())?;
    let agent = match &arguments.agent {
        Some(id) => AgentId::parse(id)
            .map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))?,
        None => config.default_agent().clone(),
    };
    let (layers, config) = within_open_files(layers, config, &agent, cx)?;
    let definition = config.agent(&agent);
    let folder = match definition.and_then(|agent| agent.cwd.as_ref()) {
        Some(folder) => cx.configured(&folder.value, &folder.origin),
        None => cx.environment.working_folder.clone(),
    };
    if !folder.is_dir() {
        return Err(Failure::input(format_args!(
            "there is no folder {} to work in",
            folder.display()
        )));
    }
    let runtime = choose(arguments, command, &config, &agent)?;
    let runtime: &str = &runtime;
    let named = &arguments.plugins.plugin_path;
    let mut plugins = plugins::plugins(named, &config, cx)?;
    let environment = cx.environment.of_host();
    let plain = !command.is_empty() && !arguments.program_configured;
    let found = match BuiltInRuntime::of(runtime) {
        Some(built_in) => {
            let (config, environment, agent) = (&config, &environment, &agent);
            let request =
                CheckRequest { config, environment, agent, folder: &folder, command, plain };
            built_in.check(&request).map_err(|error| match error {
                HostError::NoCommand { .. } => no_runtime(format_args!("{error}"), None),
                HostError::Runtime(error) if !chosen(arguments, command, definition) => no_runtime(
                    format_args!("nothing says what runs the agent `{agent}`, and {error}"),
                    Some(error.hint()),
                ),
                error => error.into(),
            })?
        }
        None => {
            let checked = find_plugin(&plugins, runtime)?;
            // A dry run loads no plugin.
            let cost = match arguments.dry_run {
                true => CostKnowledge::None,
                false => plugins.load_runtime(runtime, &checked)?.abilities().cost,
            };
            let name = [runtime.to_owned()];
            CheckedRuntime {
                command: if command.is_empty() { &name } else { command }.into(),
                cost,
            }
        }
    };
    let CheckedRuntime { command: program, cost } = found;
    if !arguments.dry_run {
        plugins.load_for_agents(&[runtime]);
    }
    let run_spec = RunSpec {
        runtime: Some(runtime.into()),
        command: (runtime == EXEC.name || !command.is_empty()).then(|| Arc::clone(&program)),
        ok_exit: arguments.ok_exit.as_slice().into(),
        output: arguments.output,
        plain,
        ..RunSpec::in_folder(folder)
    };
    let config = match cost {
        CostKnowledge::None => config,
        CostKnowledge::Reported | CostKnowledge::Bounded => {
            capped(config, layers, &agent, runtime, cx)?
        }
        CostKnowledge::Unknown => {
            cx.output.note(format_args!(
                "what this costs is not known; say it with runtimes.{runtime}.cost = \"none\" or with prices of the model"
            ));
            config
        }
    };
    let is_paid = cost != CostKnowledge::None;
    Ok((
        config,
        Prepared {
            agent,
            run_spec,
            runtime: runtime.into(),
            command: program,
            is_paid,
            plugins,
            plugin_path: named.iter().map(|folder| cx.absolute(folder)).collect(),
        },
    ))
}

/// The runtime: what the command line says, then the agent, then Claude Code.
fn choose(
    arguments: &WorkArguments,
    command: &[String],
    config: &Config,
    agent: &AgentId,
) -> Result<Arc<str>, Failure> {
    let definition = config.agent(agent);
    let configured = definition.and_then(|agent| agent.runtime.as_ref());
    let own = definition.and_then(|agent| agent.command.as_ref());
    let runs_none = |name: &str| BuiltInRuntime::of(name).is_some_and(|it| !it.runs_commands);
    let name = match (&arguments.runtime, command.is_empty()) {
        (Some(name), false) if runs_none(name) => {
            return Err(Failure::input(format_args!(
                "a command after `--` is run by the runtime `{}`, not by `{name}`",
                EXEC.name
            ))
            .hint("leave out the command or --runtime"));
        }
        (Some(name), _) => Some(name.as_str()),
        (None, false) => Some(EXEC.name),
        (None, true) => configured.map(|name| name.value.as_str()).or(own.map(|_| EXEC.name)),
    };
    Ok(name.unwrap_or(CLAUDE.name).into())
}

/// A runtime that is not built in. Where no plugin has it, all that there are are named.
fn find_plugin(plugins: &Plugins, name: &str) -> Result<Checked, Failure> {
    match plugins.search().runtime(name) {
        Ok(candidate) => Ok(plugins.check(candidate)?),
        Err(PluginError::NotFound { known, unreadable, .. }) => {
            let mut names: Vec<&str> = BuiltInRuntime::names().collect();
            names.extend(known.iter().map(String::as_str));
            let message = format!("there is no runtime `{name}` here");
            let unusable = unreadable.iter().map(|why| format!("; unusable: {why}"));
            Err(Failure::new(Exit::NoRuntime, message).hint(format_args!(
                "runtimes: {}; `offshoot plugin list` shows where plugins are looked for{}",
                names.join(", "),
                unusable.collect::<String>()
            )))
        }
        Err(error) => Err(error.into()),
    }
}

/// True if the command line or the agent says what runs it.
fn chosen(
    arguments: &WorkArguments,
    command: &[String],
    definition: Option<&AgentDefinition>,
) -> bool {
    let of_agent = |agent: &AgentDefinition| agent.runtime.is_some() || agent.command.is_some();
    arguments.runtime.is_some() || !command.is_empty() || definition.is_some_and(of_agent)
}

/// Returns the configuration with no more agents at once than there are open files for. Warns where that is fewer than the
/// configuration asks for.
fn within_open_files(
    layers: Loader,
    config: Config,
    agent: &AgentId,
    cx: &Invocation,
) -> Result<(Loader, Config), Failure> {
    let wanted = Terms::root(&config, agent).max_concurrent();
    let room = make_room(wanted);
    if room >= wanted {
        return Ok((layers, config));
    }
    cx.output.warning(format_args!(
        "maxConcurrent is {wanted}, but this process may open files for {room} agents only: no more run at once; raise the hard limit of open files (ulimit -Hn) for more"
    ));
    let key = "agents.defaults.subagents.maxConcurrent";
    let layers = layers.flag(key, room.to_string(), "the limit of open files");
    Ok((layers.clone(), load::finish(layers)?))
}

/// The configuration with a budget in dollars: where none is set, the runtime's own, which is then reported.
fn capped(
    config: Config,
    layers: Loader,
    agent: &AgentId,
    runtime: &str,
    cx: &Invocation,
) -> Result<Config, Failure> {
    if config.root_settings(agent).budget.usd.is_some() {
        return Ok(config);
    }
    let usd = default_usd(&config, runtime);
    cx.output.note(format_args!(
        "no budget in dollars is set, so this may cost up to ${usd}; change that with --budget-usd or runtimes.{runtime}.defaultUsd"
    ));
    load::finish(layers.set("agents.defaults.subagents.budget.usd", usd.to_string()))
}

/// The failure where a runtime has nothing to run, or none is chosen and the default is not there.
fn no_runtime(message: std::fmt::Arguments<'_>, or: Option<&str>) -> Failure {
    let names: Vec<_> = BuiltInRuntime::names().collect();
    Failure::new(Exit::NoRuntime, message).hint(format_args!(
        "give a command after `--`, or set `command` for the agent in the configuration{}; runtimes: {}",
        or.map(|or| format!(", or {or}")).unwrap_or_default(),
        names.join(", ")
    ))
}
