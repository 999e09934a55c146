//! Flags that `run`, `map` and `fanout` have in common.

use std::path::PathBuf;

use clap::Args;
use offshoot_host::runtimes::BuiltInRuntime;
use offshoot_merge::OnFailure;
use offshoot_runtime::OutputFormat;

use super::words::{ON_FAILURE, OUTPUT, one_of};
use super::{LimitArguments, PluginPathArguments, strategies};

/// The arguments by which agents are run.
#[derive(Debug, Default, Args)]
pub(crate) struct WorkArguments {
    /// The agent, by its id in the configuration [default: main]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    #[arg(help = runtimes())]
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,

    /// A short name for people, shown in the tree
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// A file that the agents may read, known to them by NAME; may be given more than once
    #[arg(long = "context", value_name = "NAME=FILE", value_parser = ContextArgument::parse)]
    pub(crate) context: Vec<ContextArgument>,

    /// Exit codes of a command that mean success
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_value = "0", value_parser = clap::value_parser!(i32).range(0..=255))]
    pub(crate) ok_exit: Vec<i32>,

    /// The form of an answer: json where it is an object or an array, else text
    #[arg(long, value_name = "FORMAT", value_parser = one_of(OUTPUT), default_value = "text")]
    pub(crate) output: OutputFormat,

    /// Print what would be run, and under which limits, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Go on with a tree of the very same command line that lost its supervisor, if there is one
    #[arg(long)]
    pub(crate) auto_resume: bool,

    /// True if the command is one from the configuration, on record: not of the command line.
    #[arg(skip)]
    pub(crate) program_configured: bool,

    #[command(flatten)]
    pub(crate) plugins: PluginPathArguments,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// Returns the help of the flag that names a runtime.
fn runtimes() -> String {
    let names: Vec<_> = BuiltInRuntime::names().collect();
    format!("What runs the agent: {}, or a runtime of a plugin", names.join(", "))
}

/// The arguments for many answers.
#[derive(Debug, Args)]
pub(crate) struct PieceArguments {
    #[arg(help = strategies("How the answers become one", "or a plugin's merge", ""))]
    #[arg(long, value_name = "STRATEGY", default_value = "concatenate")]
    pub(crate) merge: String,

    /// The treatment of a piece that did not complete
    #[arg(long, value_name = "POLICY", value_parser = one_of(ON_FAILURE), default_value = "fail")]
    pub(crate) on_failure: OnFailure,

    /// Cancel the rest once more than N pieces have failed
    #[arg(long, value_name = "N")]
    pub(crate) max_fail: Option<u32>,

    /// Start more than 20 agents of a paid runtime without being asked on a terminal
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// A pair `NAME=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContextArgument {
    /// The name that agents know it by.
    pub(crate) name: String,
    /// The file.
    pub(crate) path: PathBuf,
}

impl ContextArgument {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: path.into() })
            }
            _ => Err("expected a name, `=` and a file".to_owned()),
        }
    }
}
