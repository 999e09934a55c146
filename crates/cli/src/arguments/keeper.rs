//! `offshoot keeper`: the helper process that ends what a killed supervisor left behind. Not for people.

use clap::Args;

/// Watch over a supervisor's children until its pipe closes
#[derive(Debug, Args)]
pub(crate) struct KeeperArguments {
    /// Filter of the log, as in OFFSHOOT_LOG: the keeper has no environment
    #[arg(long, value_name = "DIRECTIVES")]
    pub(crate) log: Option<String>,
}
