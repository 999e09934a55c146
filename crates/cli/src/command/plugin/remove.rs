//! `offshoot plugin remove`.

use std::fs;

use offshoot_plugin_host::{PACKAGE_FILE, PluginName};

use crate::arguments::PluginPathArguments;
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::plugins::{real, user_folder};
use crate::trusted::Trusted;

/// Removes a plugin from the user's own folder, and from there alone.
pub(super) fn run(name: &str, cx: &Invocation) -> Result<(), Failure> {
    let name = PluginName::parse(name).map_err(|error| Failure::of(Exit::BadInput, &error))?;
    let folder = user_folder(cx)?.join(name.as_str());
    if !folder.join(PACKAGE_FILE).is_file() {
        let failure = Failure::new(
            FailureCode::NoSuchPlugin,
            Exit::NoRuntime,
            format_args!("there is no plugin {}", folder.display()),
        );
        let plugins = super::plugins(&PluginPathArguments::default(), cx)?;
        return Err(match plugins.search().plugin(name.as_str()) {
            Ok(other) => failure.hint(format_args!(
                "there is one in {} ({}), which is not yours to manage here",
                other.folder.display(),
                other.origin
            )),
            Err(_) => failure.hint("`offshoot plugin list` shows what there is"),
        });
    }
    Trusted::read(&cx.environment)?.remove_plugin(&real(&folder))?;
    fs::remove_dir_all(&folder)
        .map_err(|error| Failure::file(FailureCode::CannotRemove, "remove", &folder, &error))?;
    cx.output.note(NoteCode::PluginRemoved, format_args!("removed {}", folder.display()));
    Ok(())
}
