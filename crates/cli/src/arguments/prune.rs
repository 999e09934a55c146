//! `offshoot prune`.

use std::time::Duration;

use clap::Args;

use super::duration::duration_with_unit;

/// Delete old trees from the record, and whatever nothing names any more
///
/// A tree is as old as its last event. Trees that run are never touched. Values, folders of runs and unfinished files
/// go when no record names them, when nothing has used them for an hour, and only while no tree runs here. What the agents of a tree said goes with the tree.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot prune --older-than 30d --dry-run
  offshoot prune --older-than 12h
  offshoot prune --older-than 0s")]
pub(crate) struct PruneArguments {
    /// Trees in which nothing has happened for this long, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = duration_with_unit)]
    pub(crate) older_than: Duration,

    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
