//! `offshoot stats`.

use std::time::Duration;

use clap::Args;

use super::FormatArgument;
use super::duration::duration;

/// Count runs: how they ended and why, how long they took, what they cost
///
/// Failures are grouped by what they said, numbers aside, each group with one run as an example.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot stats last
  Everything that began today:
    offshoot stats --since 24h
  offshoot stats --json")]
pub(crate) struct StatsArguments {
    /// A run with what is below it [default: all trees]; a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Only trees that were opened within this time, such as 24h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "run")]
    pub(crate) since: Option<Duration>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}
