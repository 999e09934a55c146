//! `offshoot context`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use offshoot_model::ValueKind;

use super::value::whole;
use super::words::{KIND, one_of};

/// Keep and read values, from inside an agent
///
/// A value has a name of the session's own. Children are given it with `spawn --give`; the result of a child is the value
/// `sub-result-RUN`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context put notes notes.txt
    \"$OFFSHOOT\" context get notes --grep TODO")]
pub(crate) struct ContextArguments {
    #[command(subcommand)]
    pub(crate) command: ContextCommand,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Print a value, a part of it, or some of its lines
    Get(ContextGetArguments),
    /// Keep a file or standard input under a name
    Put(ContextPutArguments),
    /// Say what a value is, or list all
    Info(ContextInfoArguments),
}

/// `offshoot context get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context get notes
    \"$OFFSHOOT\" context get log --offset 1000 --length 200
    \"$OFFSHOOT\" context get log --grep 'ERROR|WARN' --context-lines 2")]
pub(crate) struct ContextGetArguments {
    /// The name of the value
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// From this byte
    #[arg(long, value_name = "BYTE", value_parser = whole(0_u64, "4096"))]
    pub(crate) offset: Option<u64>,

    /// At most so many bytes
    #[arg(long, value_name = "BYTES", value_parser = whole(0_u64, "4096"))]
    pub(crate) length: Option<u64>,

    /// Only the lines in which this regular expression is found, with their numbers
    #[arg(long, value_name = "PATTERN")]
    pub(crate) grep: Option<String>,

    /// With --grep: so many lines around each
    #[arg(long, value_name = "N", value_parser = whole(0_u32, "2"), requires = "grep")]
    pub(crate) context_lines: Option<u32>,
}

/// `offshoot context put`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context put notes notes.txt
    git diff | \"$OFFSHOOT\" context put diff
    \"$OFFSHOOT\" context put plan --kind json plan.json")]
pub(crate) struct ContextPutArguments {
    /// The name to keep it under: any text up to 200 characters
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The file; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,

    /// The kind of the value [default: text where it is UTF-8, else bytes]
    #[arg(long, value_name = "KIND", value_parser = one_of(KIND))]
    pub(crate) kind: Option<ValueKind>,
}

/// `offshoot context info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context info
    \"$OFFSHOOT\" context info notes --json")]
pub(crate) struct ContextInfoArguments {
    /// The name of the value [default: all that the session has put or was given]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
