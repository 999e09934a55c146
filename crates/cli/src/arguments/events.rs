//! `offshoot events`.

use clap::Args;

/// Print what happened in a tree, in order
///
/// With --json one event a line, in a form that stays: docs/events.schema.json describes it. New kinds and fields may
/// be added; pass over what you do not know.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot events 0198c7
  offshoot events 0198c7 --follow
  offshoot events 0198c7 --json | jq -c .kind")]
pub(crate) struct EventsArguments {
    /// Any run of the tree: a run id, its unique beginning, or a session key; of a run below the root its subtree
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Go on with what happens, until the tree is over or its supervisor has gone
    #[arg(short, long)]
    pub(crate) follow: bool,
}
