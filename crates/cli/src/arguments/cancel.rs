//! `offshoot cancel`.

use clap::Args;

/// End a run with everything below it
///
/// Inside an agent: a run below it. With --all every tree of this user that runs, or of the data folder that --data-dir names.
/// A tree whose supervisor was killed is ended as a whole: nothing of it is started.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot cancel 0198c7a2-41f3
  offshoot cancel --all
    run=$(\"$OFFSHOOT\" spawn 'look for it' -- my-agent); \"$OFFSHOOT\" cancel $run")]
pub(crate) struct CancelArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub(crate) run: Option<String>,

    /// Every tree of this user that runs; with --data-dir those of that folder
    #[arg(long, conflicts_with_all = ["run", "only"])]
    pub(crate) all: bool,

    /// Spare what is below it
    #[arg(long)]
    pub(crate) only: bool,
}
