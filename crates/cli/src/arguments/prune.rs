//! `offshoot prune`.

use std::time::Duration;

use clap::Args;

use super::value::duration_with_unit;

/// Delete old trees from the record, and whatever nothing names any more
///
/// With RUN: one run that is over, and everything below it. Of a root the whole tree goes. Of a run below a root its values, its folder and
/// what it said go, and so do those of the runs below it; their events stay, for they prove the rest of the tree, and short tasks
/// and answers stand in them.
///
/// A tree is as old as its last event. Trees that run are never touched. Values, folders of runs and unfinished files
/// go when no record names them, when nothing has used them for an hour, and only while no tree runs here. What the agents of a tree said goes with the tree.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot prune --older-than 30d --dry-run
  offshoot prune --older-than 12h
  offshoot prune --older-than 0s
  offshoot prune last --dry-run")]
pub(crate) struct PruneArguments {
    /// The run that goes with everything below it, in place of old trees: a run id, its unique beginning, a session key, a label, `last`,
    /// `main` or `@N`
    #[arg(conflicts_with = "older_than")]
    pub(crate) run: Option<String>,

    /// Trees in which nothing has happened for this long, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = duration_with_unit, required_unless_present = "run")]
    pub(crate) older_than: Option<Duration>,

    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
