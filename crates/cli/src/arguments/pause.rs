//! `offshoot pause` and `offshoot unpause`.

use clap::Args;

/// Start nothing more in a tree for now; what runs goes on
///
/// Agents that ask for a child meanwhile are refused, what stands in line stays there, and time limits go on. From a second
/// terminal, by the person who opened the tree; `resume` of an interrupted tree begins unpaused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot pause 0198c7
  offshoot unpause 0198c7")]
pub(crate) struct PauseArguments {
    /// Any run of the tree
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

/// Let a paused tree go on
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot unpause 0198c7")]
pub(crate) struct UnpauseArguments {
    /// Any run of the tree
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}
