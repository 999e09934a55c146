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

use offshoot_plugin_host::{Candidate, Checked, PACKAGE_FILE, PlaceOrigin};

use crate::arguments::{LimitArguments, PluginCommand, PluginPathArguments};
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;
use offshoot_host::Plugins;

pub(super) use check::suite;

/// Does what is asked about plugins.
pub(super) fn run(command: PluginCommand, cx: &Invocation) -> Result<(), Failure> {
    match command {
        PluginCommand::List(arguments) => list::run(&arguments, cx),
        PluginCommand::Inspect(arguments) => inspect::run(&arguments, cx),
        PluginCommand::New(arguments) => new::run(&arguments, cx),
        PluginCommand::Check(arguments) => check::run(&arguments, cx),
        PluginCommand::Trust(arguments) => trust::run(&arguments, cx),
        PluginCommand::Add(arguments) => add::run(&arguments, cx),
        PluginCommand::Remove(arguments) => remove::run(&arguments, cx),
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
    read.map_err(|error| Failure::file(FailureCode::CannotRead, "read", Path::new("-"), &error))?;
    Ok(bytes)
}
