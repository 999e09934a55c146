//! `offshoot merge`.

use std::path::PathBuf;

use clap::Args;
use offshoot_merge::OnFailure;

use super::words::{ON_FAILURE, one_of};
use super::{LimitArguments, PluginPathArguments, strategies};

/// Make one answer of many results
///
/// Results are JSON lines, each `{"key": …, "value": …}`, or stored results of runs. Inside an agent these are runs below
/// it, and the answer is kept as a value of its own, by the name that --json tells. A merge that asks an agent or a program opens a
/// tree of its own outside of agents, which `resume` goes on with; it takes the stored results of runs. `patch` is a merge of
/// `offshoot fanout` and `offshoot map` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  printf '%s\\n' '{\"key\":\"a\",\"value\":2}' '{\"key\":\"b\",\"value\":3}' | offshoot merge --strategy sum
  offshoot merge --strategy structured results.jsonl
  offshoot merge --strategy sum --children 0198c7
  offshoot merge --strategy summarize-with=writer --children 0198c7 --budget-usd 2
  offshoot merge --strategy 'command:sort -u' --children last
    \"$OFFSHOOT\" wait >/dev/null; \"$OFFSHOOT\" merge --strategy sum")]
pub(crate) struct MergeArguments {
    #[arg(help = strategies("How", "or a plugin's merge", ""))]
    #[arg(long, value_name = "STRATEGY", default_value = "concatenate")]
    pub(crate) strategy: String,

    /// A file of results; - is standard input [default: standard input; inside an agent, all its children that have ended]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The stored result of RUN instead: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`; may be given more than once
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub(crate) result: Vec<String>,

    /// Inside an agent: what a run that did not complete means [default: fail]
    #[arg(long, value_name = "POLICY", value_parser = one_of(ON_FAILURE))]
    pub(crate) on_failure: Option<OnFailure>,

    /// The stored results of everything that completed directly below RUN instead
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "result"])]
    pub(crate) children: Option<String>,

    #[command(flatten)]
    pub(crate) plugins: PluginPathArguments,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}
