//! `offshoot stats`.

use std::time::Duration;

use clap::Args;

use super::FormatArgument;
use super::value::duration;

/// Count runs: how they ended and why, how long they took, what they cost
///
/// With --delegation it counts tasks with a type instead (`offshoot delegate --type`): how many were done, in which time and at which cost,
/// by the agent that had them and by a child. After ten of each it recommends.
///
/// Failures are grouped by what they said, numbers aside, each group with one run as an example. Times in JSON are in milliseconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot stats last
  Everything that began today:
    offshoot stats --since 24h
  offshoot stats --json
  Which types of tasks go better when they are delegated:
    offshoot stats --delegation")]
pub(crate) struct StatsArguments {
    /// A run with what is below it [default: all trees]; a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Only trees that were opened within this time, such as 24h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "run")]
    pub(crate) since: Option<Duration>,

    /// Compare tasks of a type that were done directly with those that were delegated
    #[arg(long, conflicts_with = "run")]
    pub(crate) delegation: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}
