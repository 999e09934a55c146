//! `offshoot manual`: the pages for packages of the command.

use std::path::PathBuf;

use clap::Args;

/// Write the manual pages of all commands
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  offshoot manual ~/.local/share/man/man1")]
pub(crate) struct ManualArguments {
    /// The folder to write them into
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
