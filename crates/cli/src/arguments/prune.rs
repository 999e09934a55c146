//! `offshoot prune`.

use clap::Args;

use super::age::Age;

/// Delete old trees from the record, and whatever nothing names any more
///
/// A tree is as old as its last event. Trees that run are never touched. Values, folders of runs and unfinished files
/// go when no record names them, when nothing has used them for an hour, and only while no tree runs here.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot prune --older-than 30d --dry-run
  offshoot prune --older-than 12h
  offshoot prune --older-than 0s")]
pub(crate) struct PruneArguments {
    /// Trees in which nothing has happened for this long: a number with s, m, h, d or w
    #[arg(long, value_name = "DURATION")]
    pub(crate) older_than: Age,

    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
