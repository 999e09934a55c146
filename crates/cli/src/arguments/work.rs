//! Flags that `run`, `map` and `fanout` have in common.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use offshoot_host::runtimes::BuiltInRuntime;
use offshoot_merge::OnFailure;
use offshoot_model::{Isolation, JsonText};
use offshoot_runtime::OutputFormat;

use super::value::{WrongValue, exit_code, named_file, seconds, value, whole};
use super::words::{ON_FAILURE, OUTPUT, one_of};
use super::{FormatArgument, LimitArguments, PluginPathArguments, strategies};

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
    #[arg(long = "context", value_name = "NAME=FILE", value_parser = ContextArgument::parser())]
    pub(crate) context: Vec<ContextArgument>,

    /// Exit codes of a command that mean success
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_value = "0", value_parser = exit_code)]
    pub(crate) ok_exit: Vec<i32>,

    /// The form of an answer: json where it is an object or an array, else text
    #[arg(long, value_name = "FORMAT", value_parser = one_of(OUTPUT), default_value = "text")]
    pub(crate) output: OutputFormat,

    /// The form that an answer must have, as a file with a JSON Schema [default: that of the agent]
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,

    /// The folder in which each agent works: none, worktree (a git worktree of its own), worktree:COMMIT or copy; its changes come
    /// back as a patch [default: as configured]
    #[arg(long, value_name = "KIND", value_parser = value::<Isolation>(Isolation::FORMS, "worktree"))]
    pub(crate) isolation: Option<Isolation>,

    /// Print what would be run, and under which limits, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Go on with a tree of the very same command line that lost its supervisor, if there is one
    #[arg(long)]
    pub(crate) auto_resume: bool,

    /// True if the command is one from the configuration, on record: not of the command line.
    #[arg(skip)]
    pub(crate) program_configured: bool,

    /// The schema, where it comes from the record.
    #[arg(skip)]
    pub(crate) recorded_schema: Option<JsonText>,

    /// True if all of this comes from the record of a tree, and not from a command line.
    #[arg(skip)]
    pub(crate) recorded: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,

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
    #[arg(help = strategies(
        "How the answers become one",
        "or a plugin's merge",
        "; patches of runs with folders of their own: patch, outside of agents"
    ))]
    #[arg(long, value_name = "STRATEGY", default_value = "concatenate")]
    pub(crate) merge: String,

    /// With --merge patch: a command for sh that must succeed with all patches applied; those with which it fails are found and left
    /// out
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Option<String>,

    /// Time that each run of --check has, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = seconds, default_value = "1800", requires = "check")]
    pub(crate) check_timeout: u64,

    /// The treatment of a piece that did not complete
    #[arg(long, value_name = "POLICY", value_parser = one_of(ON_FAILURE), default_value = "fail")]
    pub(crate) on_failure: OnFailure,

    /// Cancel the rest once more than N pieces have failed
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX, "3"))]
    pub(crate) max_fail: Option<u32>,

    /// Text between two answers that are concatenated, in place of a line `---`; with --stream, what follows each, in
    /// place of a newline
    #[arg(long, value_name = "TEXT")]
    pub(crate) separator: Option<String>,

    /// A zero byte as the separator
    #[arg(long, conflicts_with = "separator")]
    pub(crate) null: bool,

    /// Print each answer as it comes, and no merged one
    #[arg(long)]
    pub(crate) stream: bool,

    /// Print what came of each piece as it comes, one line of JSON each: its key, and its envelope or refusal
    #[arg(long, conflicts_with_all = ["stream", "separator", "null"])]
    pub(crate) jsonl: bool,

    /// Print what --stream and --jsonl print in the order of the request
    #[arg(long)]
    pub(crate) keep_order: bool,

    /// Write a line to FILE for each run that is over, in the columns of GNU parallel's job log
    #[arg(long, value_name = "FILE")]
    pub(crate) joblog: Option<PathBuf>,

    /// Write what came of the pieces to FILE, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

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
    /// Returns the reader of a pair.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|pair| {
            let (name, path) = named_file(&pair)?;
            Ok::<_, WrongValue>(Self { name: name.to_owned(), path: path.into() })
        })
    }
}
