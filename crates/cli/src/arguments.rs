//! The command line as types: one file for each command.

mod agents;
mod apply;
mod audit;
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
mod format;
mod global;
mod history;
mod init;
mod keeper;
mod key;
mod limits;
mod list;
mod logs;
mod manual;
mod map;
mod mcp;
mod merge;
mod pause;
mod plugin;
mod plugin_path;
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
mod value;
mod wait;
mod watch;
mod words;
mod work;

pub(crate) use agents::{AgentsArguments, AgentsCommand};
pub(crate) use apply::ApplyArguments;
pub(crate) use audit::AuditArguments;
pub(crate) use budget::BudgetArguments;
pub(crate) use cancel::CancelArguments;
pub(crate) use completions::CompletionsArguments;
pub(crate) use config::{ConfigArguments, ConfigCommand, ConfigInitArguments, ResolveArguments};
pub(crate) use context::{
    ContextArguments, ContextCommand, ContextGetArguments, ContextInfoArguments,
    ContextPutArguments,
};
pub(crate) use delegate::DelegateArguments;
pub(crate) use doctor::DoctorArguments;
pub(crate) use events::EventsArguments;
pub(crate) use export::{ExportArguments, ExportFormat};
pub(crate) use fanout::FanoutArguments;
pub(crate) use format::FormatArgument;
pub(crate) use global::Global;
pub(crate) use history::HistoryArguments;
pub(crate) use init::InitArguments;
pub(crate) use keeper::KeeperArguments;
pub(crate) use key::{KeyArguments, KeyCommand};
pub(crate) use limits::LimitArguments;
pub(crate) use list::{ListArguments, SortColumn};
pub(crate) use logs::LogsArguments;
pub(crate) use manual::ManualArguments;
pub(crate) use map::MapArguments;
pub(crate) use mcp::{McpArguments, OnClientGone};
pub(crate) use merge::MergeArguments;
pub(crate) use pause::{PauseArguments, UnpauseArguments};
pub(crate) use plugin::{
    AddPluginArguments, CheckPluginArguments, Language, ListPluginsArguments, NewPluginArguments,
    OnePluginArguments, PluginArguments, PluginCommand, PluginSuiteArguments, PluginTrialArguments,
    RemovePluginArguments, TrustPluginArguments,
};
pub(crate) use plugin_path::PluginPathArguments;
pub(crate) use prices::{PricesArguments, PricesCommand, PricesUpdateArguments};
pub(crate) use prune::PruneArguments;
pub(crate) use report::ReportArguments;
pub(crate) use resume::{ResumeArguments, ResumeChoice};
pub(crate) use run::RunArguments;
pub(crate) use send::SendArguments;
pub(crate) use show::ShowArguments;
pub(crate) use spawn::SpawnArguments;
pub(crate) use stats::StatsArguments;
pub(crate) use tree::TreeArguments;
pub(crate) use trust::TrustArguments;
pub(crate) use value::{WrongValue, seconds};
pub(crate) use wait::WaitArguments;
pub(crate) use watch::WatchArguments;
pub(crate) use work::{ContextArgument, PieceArguments, WorkArguments};

use std::ffi::OsString;

use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use offshoot_display::json::Format;

/// Run agents that run agents, and hold limits over the whole tree
///
/// An agent is any program: it gets its task or its piece of the input on standard input, and what it prints is its
/// answer. Results are printed on standard output, progress and messages on standard error.
#[derive(Debug, Parser)]
#[command(
    name = "offshoot",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  offshoot map --split bytes:1m@lines --merge sum --ok-exit 0,1 big.log -- grep -c ERROR
  offshoot fanout --task 'list the risks' --task 'list the chances' --context plan=plan.md -- my-agent

A tree is a run with all that it has started. Its supervisor is the offshoot process that holds it, and a piece is a run of a map or a fanout.

While a tree runs, and after it:
  what is stuck                 offshoot list --tree last --status running --sort silent
  what a run has printed        offshoot logs RUN
  why runs failed               offshoot stats last   offshoot tree last --failed
  end a run                     offshoot cancel RUN
  run only the failed again     offshoot resume last --failed
  go on after a kill or Ctrl-C  offshoot resume last

Exit codes:
  0    done, all completed (or partial success was permitted)
  1    an agent failed, timed out, was cancelled or lost
  2    bad usage, bad configuration, bad input, invalid request
  3    refused by policy
  4    a budget, a deadline, a quota, a limit of the day or a breaker stopped it
  5    a runtime or a plugin cannot be used
  130  interrupted

JSON: the kind of an event and the reason of an end are objects with a `type`; a time is RFC 3339. This is version 2 of the form, and --format 1 prints the earlier
one. New fields may be added; pass over what you do not know.

Data is kept in .offshoot of the working directory, or in --data-dir, or in OFFSHOOT_DATA_DIR.

OFFSHOOT_LOG=LEVEL logs to standard error or to --log-file: error, warn, info (with --log-file
alone), debug, trace, or parts with a level each, such as offshoot_spawner=debug,info."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Reads the words of a command line, the name of the program first.
    pub(crate) fn read_from(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = with_negative_numbers(Self::command());
        let matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// Returns the command with options to which a number below zero is a value: what reads the value says what is allowed.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let is_option = |arg: &Arg| arg.get_long().is_some() && arg.get_action().takes_values();
    command
        .mut_args(|arg| if is_option(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Map(MapArguments),
    Fanout(FanoutArguments),
    Resume(ResumeArguments),
    Spawn(SpawnArguments),
    Delegate(DelegateArguments),
    Wait(WaitArguments),
    Report(ReportArguments),
    Send(SendArguments),
    Cancel(CancelArguments),
    Pause(PauseArguments),
    Unpause(UnpauseArguments),
    Budget(BudgetArguments),
    Context(ContextArguments),
    Mcp(McpArguments),
    Merge(MergeArguments),
    Apply(ApplyArguments),
    Tree(TreeArguments),
    List(ListArguments),
    Stats(StatsArguments),
    Show(ShowArguments),
    Logs(LogsArguments),
    Export(ExportArguments),
    Watch(WatchArguments),
    History(HistoryArguments),
    Events(EventsArguments),
    Audit(AuditArguments),
    Prune(PruneArguments),
    Doctor(DoctorArguments),
    Init(InitArguments),
    Trust(TrustArguments),
    Plugin(PluginArguments),
    Agents(AgentsArguments),
    Prices(PricesArguments),
    Key(KeyArguments),
    Config(ConfigArguments),
    Completions(CompletionsArguments),
    Manual(ManualArguments),
    #[command(hide = true)]
    Keeper(KeeperArguments),
    #[command(hide = true)]
    PluginTrial(PluginTrialArguments),
    #[command(hide = true)]
    PluginSuite(PluginSuiteArguments),
}

impl Command {
    /// Returns the version of the form in which it prints JSON.
    pub(crate) fn format(&self) -> Format {
        let of = |argument: &FormatArgument| argument.format;
        match self {
            Self::Run(arguments) => of(&arguments.work.format),
            Self::Map(arguments) => of(&arguments.work.format),
            Self::Fanout(arguments) => of(&arguments.work.format),
            Self::Resume(arguments) => of(&arguments.format),
            Self::Tree(arguments) => of(&arguments.format),
            Self::List(arguments) => of(&arguments.format),
            Self::Stats(arguments) => of(&arguments.format),
            Self::Show(arguments) => of(&arguments.format),
            Self::History(arguments) => of(&arguments.format),
            Self::Events(arguments) => of(&arguments.format),
            Self::Plugin(PluginArguments { command: PluginCommand::Check(arguments) }) => {
                of(&arguments.format)
            }
            _ => Format::default(),
        }
    }
}

/// Returns the help of a flag that names a merge.
fn strategies(what: &str, of_plugin: &str, rest: &str) -> String {
    let asking = offshoot_merge::Asking::NAMES.join(", ");
    let names = offshoot_merge::Strategy::NAMES.join(", ");
    format!(
        "{what}: {names}; by asking: {asking}; {of_plugin}: plugin:NAME, plugin:NAME=PARAMETERS{rest}"
    )
}

/// The same, with the merge of patches.
fn strategies_of_pieces(what: &str, of_plugin: &str) -> String {
    let patch = "; patches of runs with folders of their own: patch, outside of agents";
    strategies(what, of_plugin, patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_does_not_contradict_itself() {
        Arguments::command().debug_assert();
    }
}
