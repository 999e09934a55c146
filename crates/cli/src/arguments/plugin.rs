//! `offshoot plugin`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{FormatArgument, PluginPathArguments};

/// List, create, check and install plugins
///
/// A plugin is a folder with a plugin.toml and a library that offers runtimes or merges. It runs with all your rights:
/// nothing here is a sandbox.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot plugin new --runtime upper
  offshoot plugin check ./upper --hanging-task wait
  offshoot plugin add ./upper
  offshoot run --runtime upper hello")]
pub(crate) struct PluginArguments {
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the plugins that there are, and which of them are shadowed or not trusted; nothing is loaded
    #[command(after_help = "\
Examples:
  offshoot plugin list
  offshoot plugin list --plugin-path ./plugins --json")]
    List(ListPluginsArguments),
    /// Open a plugin in a process of its own, and print what it says of itself
    #[command(after_help = "\
Examples:
  offshoot plugin inspect upper
  offshoot plugin inspect target/release/libupper.so --json")]
    Inspect(OnePluginArguments),
    /// Make a new plugin: a crate that builds, with a test and a README, or a program
    #[command(
        override_usage = "offshoot plugin new <--runtime <NAME>|--merge <NAME>> [OPTIONS]",
        after_help = "\
Examples:
  offshoot plugin new --runtime upper --language python
  offshoot plugin new --merge longest --sdk ~/src/offshoot/crates/plugin-sdk"
    )]
    New(NewPluginArguments),
    /// Run a plugin through everything that the contract asks, in a process of its own
    #[command(after_help = "\
Examples:
  offshoot plugin check upper
  offshoot plugin check ./upper")]
    Check(CheckPluginArguments),
    /// Let a plugin of a project take effect, as it is now
    #[command(after_help = "\
Examples:
  offshoot plugin trust upper
  offshoot plugin trust upper --remove")]
    Trust(TrustPluginArguments),
    /// Take a plugin into your own folder of plugins
    #[command(after_help = "\
Examples:
  offshoot plugin add ./upper
  offshoot plugin add ./upper --replace")]
    Add(AddPluginArguments),
    /// Remove a plugin from your own folder of plugins
    #[command(after_help = "\
Example:
  offshoot plugin remove upper")]
    Remove(RemovePluginArguments),
}

/// `offshoot plugin list`.
#[derive(Debug, Args)]
pub(crate) struct ListPluginsArguments {
    #[command(flatten)]
    pub(crate) path: PluginPathArguments,
}

/// `offshoot plugin inspect`.
#[derive(Debug, Args)]
pub(crate) struct OnePluginArguments {
    /// The name of a plugin, its folder, or the file of a library
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,

    #[command(flatten)]
    pub(crate) path: PluginPathArguments,
}

/// `offshoot plugin check`.
#[derive(Debug, Args)]
pub(crate) struct CheckPluginArguments {
    #[command(flatten)]
    pub(crate) one: OnePluginArguments,

    /// A task that the runtime completes by itself
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    pub(crate) task: String,

    /// A task that the runtime does not end before it is stopped; without one, stopping is not checked
    #[arg(long, value_name = "TEXT")]
    pub(crate) hanging_task: Option<String>,

    /// A task with which the runtime asks for a child, waits for it and completes; without one, children are not checked
    #[arg(long, value_name = "TEXT")]
    pub(crate) asking_task: Option<String>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// `offshoot plugin new`.
#[derive(Debug, Args)]
pub(crate) struct NewPluginArguments {
    /// A runtime of this name, in a folder of this name
    #[arg(long, value_name = "NAME", required_unless_present = "merge", conflicts_with = "merge")]
    pub(crate) runtime: Option<String>,

    /// A merge of this name, in a folder of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) merge: Option<String>,

    /// The language: a library or a program in Rust, or a program in Python, TypeScript or JavaScript without dependencies
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value = "rust")]
    pub(crate) language: Language,

    /// The source folder of the SDK [default: that from which this command was built]
    #[arg(long, value_name = "PATH")]
    pub(crate) sdk: Option<PathBuf>,
}

/// The language of a new plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// A library over the SDK.
    Rust,
    /// A program over the SDK.
    RustProcess,
    /// A program for Python 3.
    Python,
    /// A program for node, with types.
    Typescript,
    /// A program for node.
    Javascript,
}

/// `offshoot plugin trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustPluginArguments {
    #[command(flatten)]
    pub(crate) one: OnePluginArguments,

    /// Trust it no longer
    #[arg(long)]
    pub(crate) remove: bool,
}

/// `offshoot plugin add`.
#[derive(Debug, Args)]
pub(crate) struct AddPluginArguments {
    /// The folder of the plugin
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Take the place of a plugin of the same name
    #[arg(long)]
    pub(crate) replace: bool,
}

/// `offshoot plugin remove`.
#[derive(Debug, Args)]
pub(crate) struct RemovePluginArguments {
    /// The name of the plugin
    #[arg(value_name = "NAME")]
    pub(crate) plugin: String,
}

/// `offshoot plugin-trial`: the process in which a library is opened for the first time. Not for people.
#[derive(Debug, Args)]
pub(crate) struct PluginTrialArguments {}

/// `offshoot plugin-suite`: the process in which a plugin is run through the contract. Not for people.
#[derive(Debug, Args)]
pub(crate) struct PluginSuiteArguments {}
