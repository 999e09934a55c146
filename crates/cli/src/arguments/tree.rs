//! `offshoot tree`.

use clap::Args;

/// Show runs as a tree
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot tree
  offshoot tree 0198c7 --json")]
pub(crate) struct TreeArguments {
    /// A run with what is below it [default: all trees]; a run id, its unique beginning, or a session key
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Show every run, also where many are alike or deleted, and trees that are archived
    #[arg(long)]
    pub(crate) all: bool,
}
