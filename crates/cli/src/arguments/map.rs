//! `offshoot map`.

use std::path::PathBuf;

use clap::Args;

use super::value::whole;
use super::{PieceArguments, WorkArguments};

/// Run the same task on every piece of the input, and make one answer of the answers
///
/// The input is cut into pieces, each piece is the standard input of one run of COMMAND, and what the runs print is
/// merged in the order of the pieces. Inside an agent the runs are children of that agent, and a budget is divided among them.
///
/// COMMAND has PATH, HOME, USER, SHELL, LANG, LC_*, TZ, TERM, TMPDIR, XDG_*, SSL_CERT_*, those of a proxy and OFFSHOOT_* in its environment,
/// and nothing else of yours: `runtimes.exec.env = ["NAME"]` in the configuration passes on more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  Count lines with ERROR in a log of any size; grep exits 1 where a piece has none:
    offshoot map --split bytes:1m@lines --merge sum --ok-exit 0,1 big.log -- grep -c ERROR
  One run for each file, four at once, as one JSON object:
    offshoot map --max-concurrent 4 --merge structured --json src/*.rs -- wc -l
  Standard input, a hundred lines to a piece:
    journalctl | offshoot map --split lines:100 - -- my-agent
  A table in eight pieces, each with the line that names the columns:
    offshoot map --split chunks:8 --header 1 sales.csv -- my-agent
  Three stages; each piece goes on as it ends, and the answers of the last stage are merged:
    offshoot map urls.txt --split lines:1 -- ./fetch --then -- ./extract --then -- ./rate
  What would be run:
    offshoot map --dry-run --split chunks:8 big.csv -- my-agent

`--then -- COMMAND` behind a command is a further stage. It reads what the one before it printed
for the same piece, and starts as soon as that has completed. A piece that fails in a stage starts
no later one, and is named with its stage. A command that has the words `--then --` among its own
arguments is written as `sh -c '...'`.")]
pub(crate) struct MapArguments {
    /// Files to cut into pieces; - is standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Cuts into: files, lines:N, chunks:N, chunks:N@bytes, bytes:N, bytes:N@lines, paragraphs:N, jsonl:N
    #[arg(long, value_name = "SPLIT", default_value = "files")]
    pub(crate) split: String,

    /// Repeat the first N lines of each file in every piece of it, such as the names of the columns of a table; they are no part
    /// of what is cut, and --split files needs none
    #[arg(long, value_name = "N", value_parser = whole(1_u64, "1"))]
    pub(crate) header: Option<u64>,

    /// The task of each piece; a command finds it in OFFSHOOT_TASK [default: the line of COMMAND]
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,

    #[command(flatten)]
    pub(crate) pieces: PieceArguments,

    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// The program to run for each piece, with its arguments; `--then -- COMMAND` behind it adds a stage
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
