//! `offshoot tree`.

use clap::Args;

use super::FormatArgument;
use super::value::whole;

/// Show runs as a tree
///
/// Of children that are done, or have not begun, only the first ones have a line; the others are counted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot tree
  What failed in the newest tree, and below which run:
    offshoot tree last --failed
  offshoot tree 0198c7a2-41f3 --json")]
pub(crate) struct TreeArguments {
    /// A run with what is below it [default: all trees]; a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Show every run, also where many are alike or deleted, and trees that are archived
    #[arg(long)]
    pub(crate) all: bool,

    /// Show what did not complete, with its line of parents
    #[arg(long, conflicts_with = "all")]
    pub(crate) failed: bool,

    /// Show N levels below the top
    #[arg(long, value_name = "N", value_parser = whole(0_u32, "2"))]
    pub(crate) depth: Option<u32>,

    /// Show at most N runs below the tops, first those that did not complete or still run [default: 200; with --all no limit]
    #[arg(long, value_name = "N", value_parser = whole(0_usize, "100"), conflicts_with = "all")]
    pub(crate) limit: Option<usize>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}
