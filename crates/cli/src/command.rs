//! The commands: one file for each, with its arguments.

mod agents;
mod apply;
pub(crate) mod audit;
mod budget;
mod cancel;
mod completions;
mod config;
mod context;
mod delegate;
mod doctor;
mod events;
mod export;
mod fanout;
mod history;
mod init;
mod key;
mod list;
mod logs;
mod manual;
mod map;
mod mcp;
mod merge;
mod nested;
mod pause;
mod plugin;
mod prices;
mod prune;
mod report;
mod resume;
mod run;
mod send;
mod show;
mod spawn;
mod stats;
mod tree;
mod trust;
mod wait;
mod watch;

pub(crate) use key::malformed as malformed_key;

use std::ffi::OsString;

use clap::Subcommand;
use offshoot_process::run_keeper;

use self::plugin::PluginCommand;
use self::prices::PricesCommand;
use crate::arguments::Arguments;
use crate::completion;
use crate::door::outside_of_commands;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::log;
use crate::output::{self, Output};
use crate::usage;

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::RunArguments),
    Map(map::MapArguments),
    Fanout(fanout::FanoutArguments),
    Resume(resume::ResumeArguments),
    Spawn(spawn::SpawnArguments),
    Delegate(delegate::DelegateArguments),
    Wait(wait::WaitArguments),
    Report(report::ReportArguments),
    Send(send::SendArguments),
    Cancel(cancel::CancelArguments),
    /// Start nothing more in a tree for now; what runs goes on
    ///
    /// Agents that ask for a child meanwhile are refused, what stands in line stays there, and time limits go on. From a second
    /// terminal, by the person who opened the tree; `resume` of an interrupted tree begins unpaused.
    #[command(after_help = "\
Examples:
  offshoot pause 0198c7a2-41f3
  offshoot pause --all")]
    Pause(pause::Which),
    /// Let a paused tree go on
    #[command(after_help = "\
Examples:
  offshoot unpause 0198c7a2-41f3")]
    Unpause(pause::Which),
    Budget(budget::BudgetArguments),
    #[command(subcommand)]
    Context(context::ContextCommand),
    Mcp(mcp::McpArguments),
    Merge(merge::MergeArguments),
    Apply(apply::ApplyArguments),
    Tree(tree::TreeArguments),
    List(list::ListArguments),
    Stats(stats::StatsArguments),
    Show(show::ShowArguments),
    Logs(logs::LogsArguments),
    Export(export::ExportArguments),
    Watch(watch::WatchArguments),
    History(history::HistoryArguments),
    Events(events::EventsArguments),
    Audit(audit::AuditArguments),
    Prune(prune::PruneArguments),
    Doctor(doctor::DoctorArguments),
    Init(init::InitArguments),
    Trust(trust::TrustArguments),
    #[command(subcommand)]
    Plugin(PluginCommand),
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    #[command(subcommand)]
    Prices(PricesCommand),
    #[command(subcommand)]
    Key(key::KeyCommand),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Completions(completions::CompletionsArguments),
    Manual(manual::ManualArguments),
    /// Watch over a supervisor's children until its pipe closes
    #[command(hide = true)]
    Keeper {
        /// Filter of the log, as in OFFSHOOT_LOG: the keeper has no environment
        #[arg(long, value_name = "DIRECTIVES")]
        log: Option<String>,
    },
    /// `offshoot plugin-trial`: the process in which a library is opened for the first time. Not for people.
    #[command(hide = true)]
    PluginTrial,
    /// `offshoot plugin-suite`: the process in which a plugin is run through the contract. Not for people.
    #[command(hide = true)]
    PluginSuite,
}

/// Reads the command line, does what it says, and says what went wrong.
pub(crate) fn run_command_line() -> Exit {
    if asks_for_version(std::env::args_os().skip(1)) {
        output::print_version();
        return Exit::Done;
    }
    match completion::answer() {
        Ok(false) => {}
        Ok(true) => return Exit::Done,
        Err(error) => {
            output::print_usage(&error);
            return Exit::BadInput;
        }
    }
    let Arguments { global, command, format } = match Arguments::read_from(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => return usage::end(error),
    };
    let output = Output::new(global.loudness(), global.json);
    let run = || {
        let mut environment = Environment::read()?;
        environment.keeper_log = match &command {
            // The keeper keeps nothing open but its three streams.
            Command::Keeper { log } => log::start(log.as_deref(), None).map(|_| None)?,
            _ => log::start_for_command(&global, &environment)?,
        };
        tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "command");
        run(command, &Invocation::new(global, environment).in_format(format))
    };
    let exit = run().unwrap_or_else(|failure| {
        output.end(&failure);
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
    load::check_named(cx)?;
    if let Some(act) = act_of_the_operator(&command) {
        nested::only_for_the_operator(act, cx)?;
    }
    if let Some(opens) = opens_a_tree(&command) {
        outside_of_commands(opens, cx)?;
    }
    match command {
        // Commands with an exit code of their own.
        Command::Run(arguments) => return run::run(&arguments, cx),
        Command::Map(arguments) => return map::run(&arguments, cx),
        Command::Fanout(arguments) => return fanout::run(&arguments, cx),
        Command::Resume(arguments) => return resume::run(&arguments, cx),
        Command::Spawn(arguments) => return spawn::run(&arguments, cx),
        Command::Delegate(arguments) => return delegate::run(&arguments, cx),
        Command::Wait(arguments) => return wait::run(&arguments, cx),
        Command::Mcp(arguments) => return mcp::run(&arguments, cx),
        Command::Merge(arguments) => return merge::run(&arguments, cx),
        Command::Apply(arguments) => return apply::run(&arguments, cx),
        Command::List(arguments) => return list::run(&arguments, cx),
        Command::Tree(arguments) => return tree::run(&arguments, cx),
        Command::Audit(arguments) => return audit::run(&arguments, cx),
        Command::Doctor(arguments) => return doctor::run(&arguments, cx),
        Command::Key(command) => return key::run(command, cx),
        Command::Watch(arguments) => return watch::run(&arguments, cx),
        // Commands that are done, or have failed.
        Command::Send(arguments) => send::run(&arguments, cx),
        Command::Context(command) => context::run(command, cx),
        Command::History(arguments) => history::run(&arguments, cx),
        Command::Agents(command) => agents::run(command, cx),
        Command::Report(arguments) => report::run(&arguments, cx),
        Command::Cancel(arguments) => cancel::run(&arguments, cx),
        Command::Pause(which) => pause::run(which.run.as_deref(), true, cx),
        Command::Unpause(which) => pause::run(which.run.as_deref(), false, cx),
        Command::Budget(arguments) => budget::run(&arguments, cx),
        Command::Stats(arguments) => stats::run(&arguments, cx),
        Command::Show(arguments) => show::run(&arguments, cx),
        Command::Logs(arguments) => logs::run(&arguments, cx),
        Command::Export(arguments) => export::run(&arguments, cx),
        Command::Events(arguments) => events::run(&arguments, cx),
        Command::Prune(arguments) => prune::run(&arguments, cx),
        Command::Init(arguments) => init::run(&arguments, cx),
        Command::Trust(arguments) => trust::run(&arguments, cx),
        Command::Plugin(command) => plugin::run(command, cx),
        Command::PluginTrial => plugin::trial(cx),
        Command::PluginSuite => plugin::suite(cx),
        Command::Config(command) => config::run(command, cx),
        Command::Prices(command) => prices::run(command, cx),
        Command::Completions(arguments) => completions::run(&arguments, cx),
        Command::Manual(arguments) => manual::run(&arguments, cx),
        // The keeper needs a process without further threads and open files, which this one still is.
        Command::Keeper { .. } => run_keeper(),
    }?;
    Ok(Exit::Done)
}

/// Returns the name of a command that opens a tree where it does not run inside an agent.
const fn opens_a_tree(command: &Command) -> Option<&'static str> {
    match command {
        Command::Run(arguments) if !arguments.work.dry_run => Some("run"),
        Command::Map(arguments) if !arguments.work.dry_run => Some("map"),
        Command::Fanout(arguments) if !arguments.work.dry_run => Some("fanout"),
        Command::Resume(_) => Some("resume"),
        Command::Mcp(_) => Some("mcp"),
        _ => None,
    }
}

/// Returns the name of a command that acts on the record, on what is trusted or on whole trees, and is not for agents. Of one tree
/// the supervisor says so itself.
const fn act_of_the_operator(command: &Command) -> Option<&'static str> {
    match command {
        Command::Audit(_) => Some("audit"),
        Command::Prune(_) => Some("prune"),
        Command::Doctor(_) => Some("doctor"),
        Command::Resume(_) => Some("resume"),
        Command::Watch(_) => Some("watch"),
        Command::Trust(_) => Some("trust"),
        Command::Cancel(arguments) if arguments.run.is_none() => Some("cancel --all"),
        Command::Pause(which) if which.run.is_none() => Some("pause --all"),
        Command::Unpause(which) if which.run.is_none() => Some("unpause --all"),
        Command::Stats(arguments) if arguments.run.is_none() => Some("stats"),
        Command::Prices(PricesCommand::Update { .. }) => Some("prices update"),
        Command::Plugin(PluginCommand::Add(_)) => Some("plugin add"),
        Command::Plugin(PluginCommand::Remove { .. }) => Some("plugin remove"),
        Command::Plugin(PluginCommand::Trust(_)) => Some("plugin trust"),
        Command::Prices(PricesCommand::Show { .. })
        | Command::Plugin(
            PluginCommand::List(_)
            | PluginCommand::Inspect(_)
            | PluginCommand::New(_)
            | PluginCommand::Check(_),
        ) => None,
        Command::Run(_)
        | Command::Map(_)
        | Command::Fanout(_)
        | Command::Spawn(_)
        | Command::Delegate(_)
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
        | Command::Apply(_)
        | Command::List(_)
        | Command::Stats(_)
        | Command::Show(_)
        | Command::Logs(_)
        | Command::Export(_)
        | Command::Tree(_)
        | Command::Events(_)
        | Command::PluginTrial
        | Command::PluginSuite
        | Command::Init(_)
        | Command::Key(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Manual(_)
        | Command::Keeper { .. } => None,
    }
}
