//! `offshoot budget`.

use clap::Args;

/// Add to the budget of a run that is alive
///
/// Every budget above the run is raised by as much, so that nobody has less for it. From a second terminal, by the person who
/// opened the tree; it stands in the record. What was started under a cap of its own, as Claude Code is, keeps that cap until
/// its next start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot budget 0198c7 --add 2.50
  offshoot budget 0198c7 --add-tokens 200000")]
pub(crate) struct BudgetArguments {
    /// Which; its root for the whole tree
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// So many US dollars more
    #[arg(long, value_name = "USD", required_unless_present = "add_tokens")]
    pub(crate) add: Option<f64>,

    /// So many tokens more
    #[arg(long, value_name = "TOKENS")]
    pub(crate) add_tokens: Option<u64>,
}
