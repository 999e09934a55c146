//! `offshoot events`.

use clap::Args;

use super::FormatArgument;

/// Print what happened in a tree, in order
///
/// With --json one event a line, in a form that stays: docs/events.schema.json describes it. New kinds and fields may
/// be added; pass over what you do not know.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot events
  offshoot events 0198c7a2-41f3 --follow
  offshoot events last --json | jq -c .kind.type")]
pub(crate) struct EventsArguments {
    /// Any run of the tree: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`; of a run below the root its
    /// subtree
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,

    /// Go on with what happens, until the tree is over or its supervisor has gone
    #[arg(short, long)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}
