//! `offshoot fanout`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::{PieceArguments, WorkArguments};

/// Run different tasks over the same context, and make one answer of the answers
///
/// Each task is the standard input of one run of COMMAND, followed by where to read the context.
///
/// COMMAND has PATH, HOME, USER, SHELL, LANG, LC_*, TZ, TERM, TMPDIR, XDG_*, SSL_CERT_*, those of a proxy and OFFSHOOT_* in its environment,
/// and nothing else of yours: `runtimes.exec.env = ["NAME"]` in the configuration passes on more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot fanout --task 'list the risks' --task 'list the chances' --context plan=plan.md -- my-agent
  offshoot fanout --tasks tasks.jsonl --merge structured -- my-agent
  printf '%s\\n' '{\"task\":\"2+2\"}' '{\"task\":\"3*3\"}' | offshoot fanout --tasks - -- sh -c 'echo $(($(cat)))'
  offshoot fanout --tasks reviews.jsonl --budget-usd 5 --dry-run
  printf '%s\\n' '{\"id\":\"a\",\"task\":\"2+2\"}' '{\"needs\":[\"a\"],\"task\":\"sum up\"}' | offshoot fanout --tasks - -- my-agent

A line of a --tasks file is an object:
  task                    What to do; the only key that must be there
  label                   A short name that no other has; else the first words of the task. A label that stands twice gets a number
  id                      The name by which other lines need it; its label too, where it has none
  needs                   The ids of lines whose answers it needs. It starts when these have completed, and reads that of a as the context variable
                          need_a. What a line needs is in its order before it, wherever it stands in the file
  onNeedFailed            When one of these does not complete: skip (the default) ends it without a start, run starts it without that answer
  agent                   Another agent, by its id
  type                    The type of the task, such as validate_syntax, by which offshoot stats --delegation counts
  runtime                 Another runtime
  cwd                     Another folder to work in
  context                 Files that this run alone may read: {\"plan\": \"plan.md\"}
  model, thinking         Others than the configured ones
  schema                  The form that its answer must have, a JSON Schema: {\"type\": \"object\", \"required\": [\"risk\"]}
  isolation               The folder in which it works: none, worktree, worktree:COMMIT or copy
  timeout                 Seconds, or a text such as \"90s\"
  tools                   The only rights that it has: [\"read\"], or {\"allow\": [...], \"deny\": [...]}
  budget                  Dollars and tokens to reserve: {\"usd\": 0.5, \"tokens\": 20000}
  weight                  Its share of the budget, 1 where absent. Where a line has one, the budget is divided by weight
For an agent other than that of the command line, its definition says what runs it, by which command and, outside of an agent, in which folder, before
--runtime and COMMAND. Where each task has such an agent or a runtime, there need be no COMMAND. --dry-run shows what each runs.")]
#[command(group(ArgGroup::new("given").required(true).multiple(true).args(["task", "tasks"])))]
pub(crate) struct FanoutArguments {
    /// A task; may be given more than once
    #[arg(long = "task", value_name = "TEXT")]
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
