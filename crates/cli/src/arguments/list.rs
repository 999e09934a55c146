//! `offshoot list`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use offshoot_model::RunStatus;

use super::FormatArgument;
use super::value::{duration, whole};
use super::words::{STATUS, one_of};

/// List runs, one a line
///
/// Without --tree and --all these are the roots of trees, the oldest first. In other commands `@1`, `@2` … name the runs that
/// the last listing in this terminal printed, and `last` the newest tree.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot list
  What runs in the newest tree, the most silent first:
    offshoot list --tree last --status running --sort silent
  What failed today, with the reason:
    offshoot list --all --status failed,timed_out --since 24h
  offshoot list --json")]
pub(crate) struct ListArguments {
    /// Every run, not the roots alone, deleted ones too, those that ran again, and trees that are archived; with --tree those of that tree
    #[arg(long)]
    pub(crate) all: bool,

    /// A run and every run below it: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(long, value_name = "RUN")]
    pub(crate) tree: Option<String>,

    /// Only runs with one of these statuses
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = one_of(STATUS))]
    pub(crate) status: Vec<RunStatus>,

    /// Only runs of this agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// Only runs that were admitted within this time, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<Duration>,

    /// At most N runs: the first ones with --sort, else the newest
    #[arg(long, value_name = "N", value_parser = whole(0_usize, "20"))]
    pub(crate) limit: Option<usize>,

    /// The order, the largest first [default: as they were admitted]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<SortColumn>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// The column by which runs are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortColumn {
    /// The time since the admission
    Age,
    /// The cost of it and everything below it
    #[value(alias = "dollars", alias = "usd")]
    Cost,
    /// The tokens that it and everything below it have used
    Tokens,
    /// The time from its start to its end, or to now
    #[value(alias = "duration", alias = "runtime")]
    Time,
    /// The time since its last event, while it runs
    #[value(alias = "idle", alias = "silence")]
    Silent,
}
