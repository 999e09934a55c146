//! Opens a library and takes its functions: the one place that trusts bytes of somebody else.
//!
//! ```text
//!   open ─▶ header: a plugin at all? ─▶ major version ─▶ layouts, in both directions ─▶ functions
//!     └ from here on, code of the plugin may run
//! ```
//!
//! The stock way to load a root module answers with the first library for ever, and refuses a plugin that is older than
//! its host. So the steps are taken one by one here.

mod mismatch;

use std::path::Path;

use offshoot_plugin_abi::abi_stable::StableAbi;
use offshoot_plugin_abi::abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use offshoot_plugin_abi::abi_stable::library::{
    LibHeader, LibraryError, RootModuleError, lib_header_from_path,
};
use offshoot_plugin_abi::{PluginRef, VERSION};

use crate::error::PluginError;
use crate::package::AbiVersion;

/// The functions of a library, and what it was built for.
#[derive(Clone, Copy)]
pub(crate) struct Opened {
    pub(crate) module: PluginRef,
    pub(crate) abi: AbiVersion,
}

/// The version of the interface that this host has.
pub fn abi_version() -> AbiVersion {
    AbiVersion::parse(VERSION).expect("the version of a package is three numbers")
}

/// Opens a library that was checked as a file, from where its bytes are kept. It stays open: nothing ever unloads one, because
/// threads of it may run.
pub(crate) fn open(path: &Path, kept: &Path) -> Result<Opened, PluginError> {
    let header = lib_header_from_path(kept).map_err(|error| refused(path, kept, error))?;
    let found = header.version_strings().version.as_str();
    let ours = abi_version();
    let abi = AbiVersion::parse(found).ok_or_else(|| PluginError::NotAPlugin {
        path: path.to_owned(),
        why: format!("its version of the interface is `{found}`"),
    })?;
    if abi.major != ours.major {
        return Err(PluginError::Version { path: path.to_owned(), found: abi, ours });
    }
    check_layout(path, header, abi)?;
    let module = take(path, header)?;
    Ok(Opened { module, abi })
}

/// Whether one side has all that the other one has. An older plugin has a part of what we have; of a newer one, we have a
/// part. Neither is a break: fields are only ever added at the end, and whoever knows more asks before it uses more.
fn check_layout(path: &Path, header: &LibHeader, abi: AbiVersion) -> Result<(), PluginError> {
    let Some(theirs) = header.layout() else {
        return Err(PluginError::NotAPlugin {
            path: path.to_owned(),
            why: "it was built to hide its layout".to_owned(),
        });
    };
    let ours = PluginRef::LAYOUT;
    let Err(as_newer) = check_layout_compatibility(ours, theirs) else { return Ok(()) };
    let Err(as_older) = check_layout_compatibility(theirs, ours) else { return Ok(()) };
    // What a plugin of the same version differs in is told in the direction that names ours as the expected side.
    let errors = if abi < abi_version() { as_older } else { as_newer };
    Err(PluginError::Layout {
        path: path.to_owned(),
        found: abi,
        ours: abi_version(),
        differences: mismatch::innermost(&errors),
        whole: errors.to_string(),
    })
}

#[expect(unsafe_code, reason = "the functions of a library are taken as what its layout says")]
fn take(path: &Path, header: &'static LibHeader) -> Result<PluginRef, PluginError> {
    // SAFETY: the header comes from the library's own static, whose magic and C conventions `lib_header_from_path` has
    // checked; its major version is ours; and `check_layout` has just compared the layout of everything that can be
    // reached from the root module with that of `PluginRef`, in both directions: one of them has all that the other
    // has, and what is missing lies behind the last prefix field, where each access asks first whether it is there.
    // The library is never unloaded, so the reference holds for the rest of the process.
    let module = unsafe { header.unchecked_layout::<PluginRef>() };
    module.map_err(|error| {
        let why = match error {
            RootModuleError::Returned(error) => error.to_string(),
            RootModuleError::Unwound => "it panicked while it gave its functions".to_owned(),
        };
        PluginError::NotOpened { path: path.to_owned(), why }
    })
}

/// What the loader says, in our words.
fn refused(path: &Path, kept: &Path, error: LibraryError) -> PluginError {
    let path = path.to_owned();
    match error {
        LibraryError::OpenError { err, .. } => {
            PluginError::NotOpened { why: in_one_line(&chain(&*err), kept), path }
        }
        LibraryError::GetSymbolError { .. } => PluginError::NotAPlugin {
            path,
            why: "it does not export what a plugin exports".to_owned(),
        },
        LibraryError::InvalidAbiHeader(header) => PluginError::NotAPlugin {
            path,
            why: format!(
                "it was built with version {}.{} of `abi_stable`, this host with another",
                header.abi_major, header.abi_minor
            ),
        },
        other => PluginError::NotOpened { path, why: other.to_string().trim().replace('\n', " ") },
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The loader repeats the path that it was given, and the message names the file anyway.
fn in_one_line(text: &str, path: &Path) -> String {
    let text = text.replace('\n', " ");
    text.replace(&format!("{}: ", path.display()), "").trim().to_owned()
}
