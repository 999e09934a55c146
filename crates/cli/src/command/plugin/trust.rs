//! `offshoot plugin trust`.

use std::path::PathBuf;

use clap::Args;
use offshoot_model::{ContentHash, path_text};
use serde::Serialize;

use super::{Meant, OnePluginArguments};
use crate::code::{FailureCode, NoteCode};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::plugins::real;
use crate::trusted::Trusted;

/// `offshoot plugin trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustPluginArguments {
    #[command(flatten)]
    pub(crate) one: OnePluginArguments,

    /// Trust it no longer
    #[arg(long)]
    pub(crate) remove: bool,
}

/// A plugin that has just been trusted.
#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    #[serde(with = "path_text")]
    folder: PathBuf,
    digest: ContentHash,
}

/// Trusts a plugin as it is now, or no longer.
pub(super) fn run(arguments: &TrustPluginArguments, cx: &Invocation) -> Result<(), Failure> {
    let plugins = super::plugins(&arguments.one.path, cx)?;
    let Meant::Plugin(candidate) = Meant::of(&arguments.one.plugin, &plugins, cx)? else {
        return Err(Failure::input(
            FailureCode::NotAPluginFolder,
            "only a folder with a plugin.toml can be trusted",
        )
        .hint("a file is looked into with `offshoot plugin inspect`"));
    };
    let mut trusted = Trusted::read(&cx.environment)?;
    let folder = real(&candidate.folder);
    if arguments.remove {
        let was_trusted = trusted.remove_plugin(&folder)?;
        let folder = folder.display();
        if !was_trusted {
            let message = format_args!("{folder} is not trusted");
            return Err(Failure::input(FailureCode::NotTrusted, message)
                .hint("`offshoot plugin list` shows what is"));
        }
        cx.output.note(NoteCode::NoLongerTrusted, format_args!("no longer trusted: {folder}"));
        return Ok(());
    }
    // Everything but trust has to be in order: a plugin that cannot be used is not trusted.
    let examined = candidate.examine()?;
    let (name, digest) = (examined.name(), examined.digest());
    trusted.add_plugin(folder.clone(), digest)?;
    let added = Added { name, folder, digest };
    cx.output.result(&added, || {
        cx.output.line(format_args!("trusted {name} in {}", added.folder.display()))
    })
}
