//! `offshoot logs`.

use std::time::Duration;

use clap::Args;
use offshoot_model::Stream;

use super::value::{duration, whole};

/// Print what an agent said: both streams of every attempt
///
/// A program has said what it printed on standard output and on standard error; a model what it wrote, and which tools it used. Of
/// a run that only holds pieces, and with --subtree of any run, the lines of all runs below it stand behind their labels.
/// The two streams of a program come by two ways: lines that it writes to both at about the same moment may stand in the other order.
/// On a terminal with colours, lines of standard error are yellow; with --json each line has its `stream`.
/// Lines of a second attempt stand below a line `── attempt 2 ──`; with --json each has its `attempt`.
/// Each attempt is kept up to `logs.keepOutputBytes`, beginning and end, and a line says how much is missing between them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot logs 0198c7
  offshoot logs 0198c7 --follow --subtree
  offshoot logs 0198c7 --stderr --tail 20 --timestamps
  offshoot logs 0198c7 --since 10m --json | jq -r .text")]
pub(crate) struct LogsArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Go on with what is said, until the run is over or its supervisor has gone
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Standard output alone
    #[arg(long, conflicts_with = "stderr")]
    pub(crate) stdout: bool,

    /// Standard error alone
    #[arg(long)]
    pub(crate) stderr: bool,

    /// The last lines alone, so many
    #[arg(long, value_name = "N", value_parser = whole(0_usize, "50"))]
    pub(crate) tail: Option<usize>,

    /// Lines of the last so much time alone, such as 90s, 10m or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<Duration>,

    /// The runs below it too
    #[arg(long)]
    pub(crate) subtree: bool,

    /// Begin each line with the time at which it was said
    #[arg(short, long)]
    pub(crate) timestamps: bool,

    /// Begin each line with the label of its run, or its agent; lines of several runs have that always
    #[arg(long)]
    pub(crate) tag: bool,
}

impl LogsArguments {
    /// True if this stream is wanted.
    pub(crate) const fn wants(&self, stream: Stream) -> bool {
        match stream {
            Stream::Stdout => !self.stderr,
            Stream::Stderr => !self.stdout,
        }
    }
}
