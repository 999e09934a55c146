//! `offshoot show`.

use clap::Args;

/// Show one run: what it was asked, how it ended, what it answered
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot show 0198c7
  offshoot show 0198c7 --json
  offshoot show 0198c7 --answer > answer.txt")]
pub(crate) struct ShowArguments {
    /// A run id, its unique beginning, or a session key
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Print the answer alone, as it is
    #[arg(long)]
    pub(crate) answer: bool,
}
