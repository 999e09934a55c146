//! What is certain before anything starts: the agent, its runtime, and that its program is there. A mistyped program
//! is one error here, and a thousand failed pieces later.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_config::{AgentDefinition, Config, CostKind, Loader};
use offshoot_host::runtimes::BUILT_IN;
use offshoot_host::runtimes::claude::{self, CLAUDE};
use offshoot_host::runtimes::exec::EXEC;
use offshoot_host::runtimes::openai::{self, OPENAI};
use offshoot_host::{HostError, Plugins};
use offshoot_model::AgentId;
use offshoot_plugin_host::{Checked, PluginError};
use offshoot_policy::Terms;
use offshoot_process::{make_room, resolve_program};
use offshoot_runtime::{CostKnowledge, OutputFormat, Runtime};
use offshoot_spawner::RunSpec;

use crate::arguments::{OutputArgument, WorkArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;
use crate::wording;

/// What is to run.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// Which agent.
    pub(crate) agent: AgentId,
    /// How.
    pub(crate) run_spec: RunSpec,
    /// What runs it.
    pub(crate) runtime: Arc<str>,
    /// The program and its arguments, for people and for the record.
    pub(crate) command: Arc<[String]>,
    /// Whether what it does may cost money.
    pub(crate) is_paid: bool,
    /// The plugins that can be found, and those that were loaded for it.
    pub(crate) plugins: Plugins,
    /// The folders of plugins that the command line names. Absolute.
    pub(crate) plugin_path: Vec<PathBuf>,
}

impl Prepared {
    /// What runs, as one would type it.
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
        Some(folder) => cx.absolute(&folder.value),
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
    let mut cost = CostKnowledge::None;
    let plain = !command.is_empty() && !arguments.program_configured;
    let program: Arc<[String]> = match runtime {
        EXEC => {
            cost = program_cost(&config, plain);
            program(command, &config, &agent, &folder, cx)?
        }
        OPENAI => {
            let runtime = openai::runtime(&config, &environment)?;
            runtime.check().map_err(HostError::from)?;
            cost = runtime.abilities().cost;
            [OPENAI.to_owned()].into()
        }
        CLAUDE => {
            cost = CostKnowledge::Reported;
            let options = claude::options(&config, &environment)?;
            claude::find(&options, &folder, &environment).map_err(|error| {
                match chosen(arguments, definition) {
                    true => HostError::from(error).into(),
                    false => no_runtime(format_args!(
                        "nothing says what runs the agent `{agent}`, and {error}"
                    )),
                }
            })?;
            [options.command].into()
        }
        name => {
            let checked = find_plugin(&plugins, name)?;
            // What is only planned is not loaded.
            if !arguments.dry_run {
                let runtime = plugins.load_runtime(name, &checked)?;
                cost = runtime.abilities().cost;
            }
            match command {
                [] => [name.to_owned()].into(),
                command => command.into(),
            }
        }
    };
    if !arguments.dry_run {
        plugins.load_for_agents(&[runtime]);
    }
    let run_spec = RunSpec {
        runtime: Some(runtime.into()),
        command: (runtime == EXEC || !command.is_empty()).then(|| Arc::clone(&program)),
        ok_exit: arguments.ok_exit.as_slice().into(),
        output: match arguments.output {
            OutputArgument::Text => OutputFormat::Text,
            OutputArgument::Json => OutputFormat::Json,
        },
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
    let name = match (&arguments.runtime, command.is_empty()) {
        (Some(name), false) if [CLAUDE, OPENAI].contains(&name.as_str()) => {
            return Err(Failure::input(format_args!(
                "a command after `--` is run by the runtime `{EXEC}`, not by `{name}`"
            ))
            .hint("leave out the command or --runtime"));
        }
        (Some(name), _) => Some(name.as_str()),
        (None, false) => Some(EXEC),
        (None, true) => configured.map(|name| name.value.as_str()).or(own.map(|_| EXEC)),
    };
    Ok(name.unwrap_or(CLAUDE).into())
}

/// A runtime that is not built in. Where no plugin has it, all that there are are named.
fn find_plugin(plugins: &Plugins, name: &str) -> Result<Checked, Failure> {
    match plugins.search().runtime(name) {
        Ok(candidate) => Ok(plugins.check(candidate)?),
        Err(PluginError::NotFound { known, unreadable, .. }) => {
            let names: Vec<&str> =
                BUILT_IN.into_iter().chain(known.iter().map(String::as_str)).collect();
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

/// Returns what is known of the cost of the tree's own program.
fn program_cost(config: &Config, plain: bool) -> CostKnowledge {
    let said = config.runtime(EXEC).and_then(|settings| settings.cost.as_ref());
    match said.map(|said| said.value) {
        Some(CostKind::None) => CostKnowledge::None,
        None if plain => CostKnowledge::None,
        Some(CostKind::Reported) => CostKnowledge::Reported,
        Some(CostKind::Bounded) => CostKnowledge::Bounded,
        Some(CostKind::Unknown) | None => CostKnowledge::Unknown,
    }
}

/// Whether somebody named a runtime.
fn chosen(arguments: &WorkArguments, definition: Option<&AgentDefinition>) -> bool {
    arguments.runtime.is_some() || definition.is_some_and(|agent| agent.runtime.is_some())
}

/// The command for the runtime of programs.
fn program(
    command: &[String],
    config: &Config,
    agent: &AgentId,
    folder: &Path,
    cx: &Invocation,
) -> Result<Arc<[String]>, Failure> {
    let own = config.agent(agent).and_then(|agent| agent.command.as_ref());
    let general = config.runtime(EXEC).and_then(|settings| settings.command.as_ref());
    let command: Arc<[String]> = match own.or(general) {
        _ if !command.is_empty() => command.into(),
        Some(configured) => configured.value.iter().cloned().collect(),
        None => {
            return Err(no_runtime(format_args!("the runtime `{EXEC}` has no command to run")));
        }
    };
    find_program(&command, folder, config, cx)?;
    Ok(command)
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

/// The configuration with a budget in dollars: where nobody set one, the runtime's own, which is then said.
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
    let usd = claude::default_usd(&config, runtime);
    cx.output.note(format_args!(
        "no budget in dollars is set, so this may cost up to ${usd}; change that with --budget-usd or runtimes.{runtime}.defaultUsd"
    ));
    load::finish(layers.set("agents.defaults.subagents.budget.usd", usd.to_string()))
}

/// Whether the program is there. Behind a wrapper only the wrapper can know.
fn find_program(
    command: &[String],
    folder: &Path,
    config: &Config,
    cx: &Invocation,
) -> Result<(), Failure> {
    let wrapper = config.runtime(EXEC).and_then(|settings| settings.wrap.as_ref());
    let program = wrapper.map_or(command[0].as_str(), |wrap| wrap.value.program());
    let path = cx.environment.path().map(std::ffi::OsString::as_os_str);
    resolve_program(program.as_ref(), path, folder).map(drop).map_err(|error| {
        Failure::of(Exit::NoRuntime, &error).hint("check its name, its mode and PATH")
    })
}

fn no_runtime(message: std::fmt::Arguments<'_>) -> Failure {
    Failure::new(Exit::NoRuntime, message).hint(
        "give a command after `--`, or set `command` for the agent in the configuration, or install Claude Code with npm i -g @anthropic-ai/claude-code, or set runtimes.claude.command; runtimes: claude, exec, openai",
    )
}
