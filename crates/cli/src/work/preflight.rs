//! What is certain before anything starts: the agent, its runtime, and that its program is there. A mistyped program
//! is one error here, and a thousand failed pieces later.

use std::path::Path;
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_model::AgentId;
use offshoot_process::resolve_program;
use offshoot_runtime::OutputFormat;
use offshoot_spawner::Work;

use crate::arguments::{OutputArgument, WorkArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;

/// The runtime for programs, and the only one so far.
pub(crate) const EXEC: &str = "exec";

/// What is to run.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// Which agent.
    pub(crate) agent: AgentId,
    /// How.
    pub(crate) work: Work,
    /// The program and its arguments, for people and for the record.
    pub(crate) command: Arc<[String]>,
}

impl Prepared {
    /// What runs, as one would type it.
    pub(crate) fn command_line(&self) -> String {
        wording::command_line(&self.command)
    }
}

/// Chooses agent and runtime, and looks for the program.
pub(crate) fn prepare(
    arguments: &WorkArguments,
    command: &[String],
    config: &Config,
    cx: &Invocation,
) -> Result<Prepared, Failure> {
    let agent = match &arguments.agent {
        Some(id) => AgentId::parse(id)
            .map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))?,
        None => config.default_agent().clone(),
    };
    let definition = config.agent(&agent);
    let configured = definition.and_then(|agent| agent.runtime.as_ref());
    let own = definition.and_then(|agent| agent.command.as_ref());
    let runtime = match (&arguments.runtime, command.is_empty()) {
        (Some(name), false) if name != EXEC => {
            return Err(Failure::input(format_args!(
                "a command after `--` is run by the runtime `{EXEC}`, not by `{name}`"
            ))
            .hint("leave out the command or --runtime"));
        }
        (Some(name), _) => Some(name.as_str()),
        (None, false) => Some(EXEC),
        (None, true) => configured.map(|name| name.value.as_str()).or(own.map(|_| EXEC)),
    };
    match runtime {
        Some(EXEC) => {}
        Some(other) => return Err(no_runtime(format_args!("there is no runtime `{other}` here"))),
        None => return Err(no_runtime(format_args!("nothing says what runs the agent `{agent}`"))),
    }
    let general = config.runtime(EXEC).and_then(|settings| settings.command.as_ref());
    let command: Arc<[String]> = match own.or(general) {
        _ if !command.is_empty() => command.into(),
        Some(configured) => configured.value.iter().cloned().collect(),
        None => {
            return Err(no_runtime(format_args!("the runtime `{EXEC}` has no command to run")));
        }
    };
    let folder = match definition.and_then(|agent| agent.cwd.as_ref()) {
        Some(folder) => cx.absolute(&folder.value),
        None => cx.environment.working_folder.clone(),
    };
    find_program(&command, &folder, config, cx)?;
    let work = Work {
        runtime: Some(EXEC.into()),
        command: Some(Arc::clone(&command)),
        ok_exit: arguments.ok_exit.as_slice().into(),
        output: match arguments.output {
            OutputArgument::Text => OutputFormat::Text,
            OutputArgument::Json => OutputFormat::Json,
        },
        ..Work::in_folder(folder)
    };
    Ok(Prepared { agent, work, command })
}

/// Whether the program is there. Behind a wrapper only the wrapper can know.
fn find_program(
    command: &[String],
    folder: &Path,
    config: &Config,
    cx: &Invocation,
) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Err(Failure::input(format_args!(
            "there is no folder {} to work in",
            folder.display()
        )));
    }
    let wrapper = config.runtime(EXEC).and_then(|settings| settings.wrap.as_ref());
    let program = wrapper.map_or(command[0].as_str(), |wrap| wrap.value.program());
    let path = cx.environment.path().map(std::ffi::OsString::as_os_str);
    resolve_program(program.as_ref(), path, folder).map(drop).map_err(|error| {
        Failure::of(Exit::NoRuntime, &error).hint("check its name, its mode and PATH")
    })
}

fn no_runtime(message: std::fmt::Arguments<'_>) -> Failure {
    Failure::new(Exit::NoRuntime, message).hint(
        "give a command after `--`, or set `command` for the agent in the configuration; runtimes here: exec",
    )
}
