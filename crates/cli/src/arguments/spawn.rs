//! `offshoot spawn`.

use clap::Args;
use offshoot_model::Cleanup;

use super::ContextArgument;
use super::words::{CLEANUP, one_of};

/// Ask for a child, from inside an agent
///
/// Prints the id of the run as soon as it is admitted; with --wait its answer. The child belongs to the session that
/// asks, whatever this command is told: who asks is known from its ticket.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  One child for a part of the work, and its answer:
    \"$OFFSHOOT\" spawn --wait --label docs docs -- my-agent
  Several at once, then all their answers:
    for part in a b c; do \"$OFFSHOOT\" spawn \"$part\" -- my-agent >/dev/null; done; \"$OFFSHOOT\" wait")]
pub(crate) struct SpawnArguments {
    /// The agent, by its id in the configuration [default: the caller's own]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// A short name for people, shown in the tree
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// A file that the child may read, known to it by NAME; may be given more than once
    #[arg(long = "context", value_name = "NAME=FILE", value_parser = ContextArgument::parse)]
    pub(crate) context: Vec<ContextArgument>,

    /// A value of this session that the child may read, or `sub-result-RUN`; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) give: Vec<String>,

    /// Seconds it may run; never more than the session that asks
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,

    /// Keep or delete its session once its answer was handed over: delete removes its folder and leaves it out of `tree`; an
    /// explicit keep above it holds [default: as configured]
    #[arg(long, value_name = "WHAT", value_parser = one_of(CLEANUP))]
    pub(crate) cleanup: Option<Cleanup>,

    /// Wait for its answer and print that
    #[arg(long)]
    pub(crate) wait: bool,

    /// The task of the child
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    /// The program to run, with its arguments; needs the right `exec`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
