//! `offshoot merge`.

use std::path::PathBuf;

use clap::Args;

use super::PluginPathArguments;

/// Make one answer of many results
///
/// Results are JSON lines, each `{"key": …, "value": …}`, or stored results of runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  printf '%s\\n' '{\"key\":\"a\",\"value\":2}' '{\"key\":\"b\",\"value\":3}' | offshoot merge --strategy sum
  offshoot merge --strategy structured results.jsonl
  offshoot merge --strategy sum --children 0198c7")]
pub(crate) struct MergeArguments {
    /// How: concatenate, structured, vote, summarize, sum, first, quorum:N, plugin:NAME,
    /// plugin:NAME=PARAMETERS
    #[arg(long, value_name = "STRATEGY", default_value = "concatenate")]
    pub(crate) strategy: String,

    /// A file of results; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,

    /// The stored result of RUN instead: a run id, its unique beginning, or a session key; may be given more than once
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub(crate) result: Vec<String>,

    /// The stored results of everything that completed directly below RUN instead
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "result"])]
    pub(crate) children: Option<String>,

    #[command(flatten)]
    pub(crate) plugins: PluginPathArguments,
}
