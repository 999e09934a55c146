//! `offshoot plugin`: one file for each of its commands.

mod add;
mod check;
mod inspect;
mod list;
mod new;
mod remove;
mod trust;

use std::io::Read;
use std::path::Path;

use clap::{Args, Subcommand};
use offshoot_host::Plugins;
use offshoot_plugin_host::{Candidate, Checked, PACKAGE_FILE, PlaceOrigin};

use crate::arguments::{LimitArguments, PluginPathArguments};
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;

pub(super) use check::suite;

/// List, create, check and install plugins
///
/// A plugin is a folder with a plugin.toml and a library that offers runtimes or merges. It runs with all your rights:
/// nothing here is a sandbox.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  offshoot plugin new --runtime upper
  offshoot plugin check ./upper --hanging-task wait
  offshoot plugin add ./upper
  offshoot run --runtime upper hello")]
pub(crate) enum PluginCommand {
    /// List the plugins that there are, and which of them are shadowed or not trusted; nothing is loaded
    #[command(after_help = "\
Examples:
  offshoot plugin list
  offshoot plugin list --plugin-path ./plugins --json")]
    List(PluginPathArguments),
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
    New(new::NewPluginArguments),
    /// Run a plugin through everything that the contract asks, in a process of its own
    #[command(after_help = "\
Examples:
  offshoot plugin check upper
  offshoot plugin check ./upper")]
    Check(check::CheckPluginArguments),
    /// Let a plugin of a project take effect, as it is now
    #[command(after_help = "\
Examples:
  offshoot plugin trust upper
  offshoot plugin trust upper --remove")]
    Trust(trust::TrustPluginArguments),
    /// Take a plugin into your own folder of plugins
    #[command(after_help = "\
Examples:
  offshoot plugin add ./upper
  offshoot plugin add ./upper --replace")]
    Add(add::AddPluginArguments),
    /// Remove a plugin from your own folder of plugins
    #[command(after_help = "\
Example:
  offshoot plugin remove upper")]
    Remove {
        /// The name of the plugin
        #[arg(value_name = "NAME")]
        plugin: String,
    },
}

/// The plugin that a command is about.
#[derive(Debug, Args)]
pub(crate) struct OnePluginArguments {
    /// The name of a plugin, its folder, or the file of a library
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,

    #[command(flatten)]
    pub(crate) path: PluginPathArguments,
}

/// Does what is asked about plugins.
pub(super) fn run(command: PluginCommand, cx: &Invocation) -> Result<(), Failure> {
    match command {
        PluginCommand::List(path) => list::run(&path, cx),
        PluginCommand::Inspect(arguments) => inspect::run(&arguments, cx),
        PluginCommand::New(arguments) => new::run(&arguments, cx),
        PluginCommand::Check(arguments) => check::run(&arguments, cx),
        PluginCommand::Trust(arguments) => trust::run(&arguments, cx),
        PluginCommand::Add(arguments) => add::run(&arguments, cx),
        PluginCommand::Remove { plugin } => remove::run(&plugin, cx),
    }
}

/// Is the process in which a library is opened for the first time.
pub(super) fn trial(cx: &Invocation) -> Result<(), Failure> {
    let order = standard_input()?;
    let report = offshoot_plugin_host::trial(&order)
        .map_err(|error| Failure::told(Exit::BadInput, &error))?;
    cx.output.bytes(report.as_bytes())
}

/// The plugins that can be found.
fn plugins(path: &PluginPathArguments, cx: &Invocation) -> Result<Plugins, Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
    plugins::plugins(&path.plugin_path, &config, cx)
}

/// A plugin by its name or its folder; a bare library by its file.
enum Meant {
    Plugin(Box<Candidate>),
    File(Box<Checked>),
}

impl Meant {
    fn of(text: &str, plugins: &Plugins, cx: &Invocation) -> Result<Self, Failure> {
        let path = cx.absolute(text);
        let is_path = text.contains('/') || text == "." || text == "..";
        if is_path || path.join(PACKAGE_FILE).is_file() || path.is_file() {
            return Self::at(&path);
        }
        let candidate = plugins.search().plugin(text)?;
        Ok(Self::Plugin(Box::new(candidate)))
    }

    /// Returns the plugin at a path, which the user trusts by naming it.
    fn at(path: &Path) -> Result<Self, Failure> {
        if path.is_dir() {
            return Ok(Self::Plugin(Box::new(folder(path)?)));
        }
        Ok(Self::File(Box::new(Checked::file(path)?)))
    }

    fn check(self, plugins: &Plugins) -> Result<Checked, Failure> {
        match self {
            Self::Plugin(candidate) => Ok(plugins.check(*candidate)?),
            Self::File(checked) => Ok(*checked),
        }
    }
}

/// The plugin in this folder.
fn folder(path: &Path) -> Result<Candidate, Failure> {
    let real = path
        .canonicalize()
        .map_err(|error| Failure::file(FailureCode::CannotFind, "find", path, &error))?;
    if !real.join(PACKAGE_FILE).is_file() {
        return Err(Failure::new(
            FailureCode::NoPackage,
            Exit::NoRuntime,
            format_args!("there is no {PACKAGE_FILE} in {}", real.display()),
        )
        .hint("a plugin is a folder with one; `offshoot plugin new` makes one"));
    }
    Ok(Candidate::read(real, PlaceOrigin::Flag))
}

/// Reads the order of the trial of a plugin, which comes on standard input.
fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().read_to_end(&mut bytes);
    read.map_err(Failure::reading(Path::new("-")))?;
    Ok(bytes)
}
