//! `offshoot fanout`.

use std::path::PathBuf;

use clap::Args;

use super::{PieceArguments, WorkArguments};

/// Run different tasks over the same context, and make one answer of the answers
///
/// Each task is the standard input of one run of COMMAND, followed by where to read the context.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot fanout --task 'list the risks' --task 'list the chances' --context plan=plan.md -- my-agent
  offshoot fanout --tasks tasks.jsonl --merge structured -- my-agent
  printf '%s\\n' '{\"task\":\"2+2\"}' '{\"task\":\"3*3\"}' | offshoot fanout --tasks - -- sh -c 'echo $(($(cat)))'

A line of a --tasks file is an object: task, and if wanted label, agent, timeout (seconds). For an agent other than that of
the command line, its definition says what runs it and by which command, before --runtime and COMMAND.")]
pub(crate) struct FanoutArguments {
    /// A task; may be given more than once
    #[arg(long = "task", value_name = "TEXT", required_unless_present = "tasks")]
    pub(crate) task: Vec<String>,

    /// A file with one task a line, as JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pieces: PieceArguments,

    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// The program to run for each task, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
