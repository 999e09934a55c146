//! `offshoot pause` and `offshoot unpause`.

use clap::Args;

/// Start nothing more in a tree for now; what runs goes on
///
/// Agents that ask for a child meanwhile are refused, what stands in line stays there, and time limits go on. From a second
/// terminal, by the person who opened the tree; `resume` of an interrupted tree begins unpaused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot pause 0198c7a2-41f3
  offshoot pause --all")]
pub(crate) struct PauseArguments {
    #[command(flatten)]
    pub(crate) which: Which,
}

/// Let a paused tree go on
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot unpause 0198c7a2-41f3")]
pub(crate) struct UnpauseArguments {
    #[command(flatten)]
    pub(crate) which: Which,
}

/// The tree that is meant, or all.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Any run of the tree: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub(crate) run: Option<String>,

    /// Every tree of this user; with --data-dir those of that folder
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
}
