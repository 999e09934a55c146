//! The command line as types, as far as commands share them. The arguments of one command stand in its file.

mod format;
mod global;
mod limits;
mod plugin_path;
mod resume_choice;
pub(crate) mod value;
pub(crate) mod words;
mod work;

pub(crate) use format::FormatArgument;
pub(crate) use global::Global;
pub(crate) use limits::LimitArguments;
pub(crate) use plugin_path::PluginPathArguments;
pub(crate) use resume_choice::ResumeChoice;
pub(crate) use value::{WrongValue, seconds};
pub(crate) use work::{ContextArgument, PieceArguments, WorkArguments};

use std::ffi::OsString;

use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser};
use offshoot_display::json::Format;

use crate::command::Command;

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
    /// The version of the form in which JSON is printed.
    #[arg(skip)]
    pub(crate) format: Format,
}

impl Arguments {
    /// Reads the words of a command line, the name of the program first.
    pub(crate) fn read_from(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = with_negative_numbers(Self::command());
        let matches = command.try_get_matches_from_mut(words)?;
        let arguments = Self::from_arg_matches(&matches);
        let arguments = arguments.map_err(|error| error.format(&mut command))?;
        Ok(Self { format: format_of(&matches), ..arguments })
    }
}

/// Returns the value of [`FormatArgument`], which some commands have.
fn format_of(matches: &ArgMatches) -> Format {
    // The `format` of `export` is of another type.
    let own = matches.try_get_one("format").ok().flatten().copied();
    let below = || matches.subcommand().map(|(_, below)| format_of(below));
    own.or_else(below).unwrap_or_default()
}

/// Returns the command with options to which a number below zero is a value: what reads the value says what is allowed.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let is_option = |arg: &Arg| arg.get_long().is_some() && arg.get_action().takes_values();
    command
        .mut_args(|arg| if is_option(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// Returns the help of a flag that names a merge.
pub(crate) fn strategies(what: &str, of_plugin: &str, rest: &str) -> String {
    let asking = offshoot_merge::Asking::NAMES.join(", ");
    let names = offshoot_merge::Strategy::NAMES.join(", ");
    format!(
        "{what}: {names}; by asking: {asking}; {of_plugin}: plugin:NAME, plugin:NAME=PARAMETERS{rest}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_does_not_contradict_itself() {
        Arguments::command().debug_assert();
    }
}
