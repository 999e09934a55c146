//! `offshoot trust`.

use std::path::PathBuf;

use clap::Args;

/// Let the files of a project take effect
///
/// A project's configuration, agent definitions and plugins come with a checkout, so they are ignored until you say
/// that you have looked at them. When one of them changes, you are asked again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot trust
  offshoot trust --list
  offshoot trust --remove")]
pub(crate) struct TrustArguments {
    /// The project's folder [default: the nearest one with such files, from the working directory upwards]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// List the projects that are trusted
    #[arg(long, conflicts_with_all = ["remove", "folder"])]
    pub(crate) list: bool,

    /// Trust the project no longer
    #[arg(long)]
    pub(crate) remove: bool,
}
