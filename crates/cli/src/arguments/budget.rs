//! `offshoot budget`.

use clap::Args;
use offshoot_model::MicroUsd;

use super::value::{usd, whole};

/// Show the budget of a run, and add to that of one that is alive
///
/// Prints the budget as it is now, with all that was added to it, and the amounts that are used, reserved and left. A charge for a use that is not known counts as used.
///
/// With an amount, every budget above the run is raised by the same amount, so that no other run has less. Pieces
/// of a map or a fanout draw from the budget of their tree as they start, so they use what is added to that. Other runs that
/// were admitted before keep the part that they were given: name such a run to raise it. Only the user who opened the tree may do this, from a second terminal; it is recorded. A run that was started under a cap of its own, as
/// Claude Code is, keeps that cap until its next start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot budget last
  offshoot budget 0198c7 --add 2.50
  offshoot budget 0198c7 --add-tokens 200000")]
pub(crate) struct BudgetArguments {
    /// The id of the run; the id of the root for the tree as a whole
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// So many US dollars more
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub(crate) add: Option<MicroUsd>,

    /// So many tokens more
    #[arg(long, value_name = "TOKENS", value_parser = whole(0_u64, "20000"))]
    pub(crate) add_tokens: Option<u64>,
}
