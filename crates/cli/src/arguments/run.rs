//! `offshoot run`.

use clap::Args;

use super::WorkArguments;

/// Run one agent and print its answer
///
/// The task is the standard input of COMMAND, byte for byte, followed by where to read the context.
///
/// COMMAND has PATH, HOME, USER, SHELL, LANG, LC_*, TZ, TERM, TMPDIR, XDG_*, SSL_CERT_*, those of a proxy and OFFSHOOT_* in its environment,
/// and nothing else of yours: `runtimes.exec.env = ["NAME"]` in the configuration passes on more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot run 'summarize the plan' --context plan=plan.md -- my-agent
  offshoot run --timeout 60 --json 'hello' -- tr a-z A-Z")]
pub(crate) struct RunArguments {
    /// The task of the agent
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// The program to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
