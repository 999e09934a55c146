//! `offshoot events`.

use clap::Args;

/// Print what happened in a tree, in order
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot events 0198c7
  offshoot events 0198c7 --json | jq -c .kind")]
pub(crate) struct EventsArguments {
    /// Any run of the tree: a run id, its unique beginning, or a session key; of a run below the root its subtree
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}
