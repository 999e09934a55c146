//! `offshoot cancel`.

use clap::Args;

/// End a run below the caller, from inside an agent
#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// Which
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Spare what is below it
    #[arg(long)]
    pub(crate) only: bool,
}
