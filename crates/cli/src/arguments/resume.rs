//! `offshoot resume`.

use clap::Args;

/// Go on with a tree whose supervisor was killed
///
/// What had ended is not run again. Pieces of a map or a fanout that were interrupted are run again; another run goes
/// on where its runtime can do that, is run again where `onInterrupt` says so, and is lost otherwise.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot resume
  offshoot resume 0198c7")]
pub(crate) struct ResumeArguments {
    /// The tree, by any run of it: a run id, its unique beginning, or a session key [default: the only one that lost its
    /// supervisor]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}
