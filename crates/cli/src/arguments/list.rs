//! `offshoot list`.

use clap::Args;

/// List runs, one a line
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot list
  offshoot list --all
  offshoot list --json")]
pub(crate) struct ListArguments {
    /// Every run, not the roots alone, deleted ones too, and trees that are archived
    #[arg(long)]
    pub(crate) all: bool,
}
