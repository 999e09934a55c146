//! `offshoot cancel`.

use clap::Args;

/// End a run below the caller, from inside an agent
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    run=$(\"$OFFSHOOT\" spawn 'look for it' -- my-agent); \"$OFFSHOOT\" cancel $run")]
pub(crate) struct CancelArguments {
    /// Which
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Spare what is below it
    #[arg(long)]
    pub(crate) only: bool,
}
