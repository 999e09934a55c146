//! `offshoot cancel`.

use clap::Args;

/// End a run with everything below it
///
/// Inside an agent: a run below it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot cancel 0198c7
    run=$(\"$OFFSHOOT\" spawn 'look for it' -- my-agent); \"$OFFSHOOT\" cancel $run")]
pub(crate) struct CancelArguments {
    /// The run to cancel
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Spare what is below it
    #[arg(long)]
    pub(crate) only: bool,
}
