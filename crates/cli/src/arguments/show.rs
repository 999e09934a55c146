//! `offshoot show`.

use clap::Args;

use super::FormatArgument;

/// Show one run: what it was asked, how it ended, what it answered
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot show 0198c7
  offshoot show 0198c7 --json
  offshoot show 0198c7 --answer > answer.txt
  offshoot show 0198c7 --patch | git apply --stat")]
pub(crate) struct ShowArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Print the answer alone, as it is
    #[arg(long)]
    pub(crate) answer: bool,

    /// Print the changes that it made in a folder of its own, as a patch
    #[arg(long, conflicts_with = "answer")]
    pub(crate) patch: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}
