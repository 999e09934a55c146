//! The commands: one file for each, as in [`arguments`](crate::arguments).

mod agents;
pub(crate) mod audit;
mod budget;
mod cancel;
mod completions;
mod config;
mod context;
mod doctor;
mod events;
mod fanout;
mod history;
mod key;
mod list;
mod manual;
mod map;
mod mcp;
mod merge;
mod nested;
mod pause;
mod plugin;
mod prune;
mod report;
mod resume;
mod run;
mod send;
mod show;
mod spawn;
mod tree;
mod trust;
mod wait;

pub(crate) use key::malformed as malformed_key;

use std::ffi::OsString;

use clap::Parser;
use offshoot_process::run_keeper;

use crate::arguments::{
    Arguments, Command, DoctorArguments, KeeperArguments, PluginCommand, PluginSuiteArguments,
    PluginTrialArguments,
};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::log;
use crate::output::{self, Output};

/// Reads the command line, does what it says, and says what went wrong.
pub(crate) fn run_command_line() -> Exit {
    if asks_for_version(std::env::args_os().skip(1)) {
        output::print_version();
        return Exit::Done;
    }
    let Arguments { global, command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            output::print_usage(&error);
            return if error.use_stderr() { Exit::BadInput } else { Exit::Done };
        }
    };
    let output = Output::new(global.loudness(), global.json);
    let run = || {
        let mut environment = Environment::read()?;
        environment.keeper_log = match &command {
            // The keeper keeps nothing open but its three streams.
            Command::Keeper(KeeperArguments { log }) => {
                log::start(log.as_deref(), None).map(|_| None)?
            }
            _ => log::start_for_command(&global, &environment)?,
        };
        tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "command");
        run(command, &Invocation::new(global, environment))
    };
    let exit = run().unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit
    });
    tracing::info!(code = exit.code(), "command ends");
    exit
}

/// True if the version is all that is asked for. Programs that look for this one ask that, and the answer takes less time than
/// to build the parser of all commands, which gives the same.
fn asks_for_version(mut words: impl Iterator<Item = OsString>) -> bool {
    let is_flag = |word: OsString| word == "--version" || word == "-V";
    words.next().is_some_and(is_flag) && words.next().is_none()
}

fn run(command: Command, cx: &Invocation) -> Result<Exit, Failure> {
    if let Some(act) = act_of_the_operator(&command) {
        nested::only_for_the_operator(act, cx)?;
    }
    match command {
        Command::Run(arguments) => run::run(&arguments, cx),
        Command::Map(arguments) => map::run(&arguments, cx),
        Command::Fanout(arguments) => fanout::run(&arguments, cx),
        Command::Resume(arguments) => resume::run(&arguments, cx),
        Command::Spawn(arguments) => spawn::run(&arguments, cx),
        Command::Wait(arguments) => wait::run(&arguments, cx),
        Command::Send(arguments) => send::run(&arguments, cx),
        Command::Context(arguments) => context::run(&arguments.command, cx),
        Command::History(arguments) => history::run(&arguments, cx),
        Command::Agents(arguments) => agents::run(&arguments.command, cx),
        Command::Report(arguments) => report::run(&arguments, cx),
        Command::Cancel(arguments) => cancel::run(&arguments, cx),
        Command::Pause(arguments) => pause::run(&arguments.run, true, cx),
        Command::Unpause(arguments) => pause::run(&arguments.run, false, cx),
        Command::Budget(arguments) => budget::run(&arguments, cx),
        Command::Mcp(arguments) => mcp::run(&arguments, cx),
        Command::Merge(arguments) => merge::run(&arguments, cx),
        Command::List(arguments) => list::run(&arguments, cx),
        Command::Show(arguments) => show::run(&arguments, cx),
        Command::Tree(arguments) => tree::run(&arguments, cx),
        Command::Events(arguments) => events::run(&arguments, cx),
        Command::Audit(arguments) => audit::run(&arguments, cx),
        Command::Prune(arguments) => prune::run(&arguments, cx),
        Command::Doctor(DoctorArguments {}) => doctor::run(cx),
        Command::Trust(arguments) => trust::run(&arguments, cx),
        Command::Plugin(arguments) => plugin::run(arguments.command, cx),
        Command::PluginTrial(PluginTrialArguments {}) => plugin::trial(cx),
        Command::PluginSuite(PluginSuiteArguments {}) => plugin::suite(cx),
        Command::Key(arguments) => key::run(arguments.command, cx),
        Command::Config(arguments) => config::run(arguments.command, cx),
        Command::Completions(arguments) => completions::run(&arguments, cx),
        Command::Manual(arguments) => manual::run(&arguments, cx),
        // The keeper needs a process without further threads and open files, which this one still is.
        Command::Keeper(KeeperArguments { .. }) => run_keeper(),
    }
}

/// Returns the name of a command that acts on the record, on what is trusted or on a whole tree, and is not for agents. Of
/// `pause` and `budget` the supervisor says so itself.
const fn act_of_the_operator(command: &Command) -> Option<&'static str> {
    match command {
        Command::Audit(_) => Some("audit"),
        Command::Prune(_) => Some("prune"),
        Command::Doctor(_) => Some("doctor"),
        Command::Resume(_) => Some("resume"),
        Command::Trust(_) => Some("trust"),
        Command::Plugin(arguments) => match arguments.command {
            PluginCommand::Add(_) => Some("plugin add"),
            PluginCommand::Remove(_) => Some("plugin remove"),
            PluginCommand::Trust(_) => Some("plugin trust"),
            PluginCommand::List(_)
            | PluginCommand::Inspect(_)
            | PluginCommand::New(_)
            | PluginCommand::Check(_) => None,
        },
        Command::Run(_)
        | Command::Map(_)
        | Command::Fanout(_)
        | Command::Spawn(_)
        | Command::Wait(_)
        | Command::Send(_)
        | Command::Context(_)
        | Command::History(_)
        | Command::Agents(_)
        | Command::Report(_)
        | Command::Cancel(_)
        | Command::Pause(_)
        | Command::Unpause(_)
        | Command::Budget(_)
        | Command::Mcp(_)
        | Command::Merge(_)
        | Command::List(_)
        | Command::Show(_)
        | Command::Tree(_)
        | Command::Events(_)
        | Command::PluginTrial(_)
        | Command::PluginSuite(_)
        | Command::Key(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Manual(_)
        | Command::Keeper(_) => None,
    }
}
