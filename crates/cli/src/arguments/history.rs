//! `offshoot history`.

use clap::Args;

use super::FormatArgument;
use super::value::whole;

/// Show what happened in a session
///
/// What it was asked, what it asked for, what it was given, and what it answered. Inside an agent: its own session, or
/// one below it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot history 0198c7
  offshoot history 0198c7 --after 12 --limit 5 --json")]
pub(crate) struct HistoryArguments {
    /// The session: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "KEY")]
    pub(crate) run: String,

    /// Only what came after this number
    #[arg(long, value_name = "SEQ", value_parser = whole(0_u64, "12"))]
    pub(crate) after: Option<u64>,

    /// Only so many entries
    #[arg(long, value_name = "N", value_parser = whole(1_u32, "20"))]
    pub(crate) limit: Option<u32>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}
