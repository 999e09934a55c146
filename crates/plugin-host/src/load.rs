//! Opens a library and takes its functions: the one place that trusts bytes of others.
//!
//! ```text
//!   open ─▶ header: a plugin at all? ─▶ major version ─▶ layouts, in both directions ─▶ functions
//!     └ from here on, code of the plugin may run
//! ```
//!
//! The stock way to load a root module answers with the first library for ever, and refuses a plugin that is older than
//! its host. So the steps are taken one by one here.

mod mismatch;

use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use offshoot_model::error_chain;
use offshoot_plugin_abi::abi_stable::StableAbi;
use offshoot_plugin_abi::abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use offshoot_plugin_abi::abi_stable::library::{
    AbiHeaderRef, LibHeader, LibraryError, ROOT_MODULE_LOADER_NAME_WITH_NUL, RootModuleError,
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
    let header = header(path, kept)?;
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

/// Opens a library and finds its header, which says with what it was built.
///
/// `abi_stable`'s own function for it unloads a library that it refuses, although code of that library has run and threads of it
/// may; so the library is opened here, and never closed, whatever is found in it.
#[expect(
    unsafe_code,
    reason = "opening a library runs code of it, and a symbol has the type that we say"
)]
fn header(path: &Path, kept: &Path) -> Result<&'static LibHeader, PluginError> {
    // SAFETY: the library's own initializers run, of which nothing can be known. It was checked as a file, is trusted by its
    // digest, and a new one was opened in another process before.
    let library = unsafe { Library::open(Some(kept), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| PluginError::NotOpened {
        why: in_one_line(&error_chain(&error), kept),
        path: path.to_owned(),
    })?;
    let library = ManuallyDrop::new(library);
    let name = ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes();
    // SAFETY: a library that exports this name was made by `abi_stable`, which exports a reference to its header by it. `upgrade`
    // reads the first fields alone, which every version of `abi_stable` has, until they say that the rest is as it is here.
    let header = unsafe { library.get::<AbiHeaderRef>(name) };
    let header = header.map_err(|_| PluginError::NotAPlugin {
        path: path.to_owned(),
        why: "it does not export what a plugin exports".to_owned(),
    })?;
    header.upgrade().map_err(|error| no_header(path, error))
}

/// Checks that one side has all that the other one has. An older plugin has a part of what we have; of a newer one, we have a
/// part. Neither is a break: fields are only ever added at the end, and the side that knows more asks before it uses more.
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
    // SAFETY: the header comes from the library's own static, whose magic and C conventions `header` has checked; its major version is ours; and `check_layout` has just compared the layout of everything that can be
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

/// The refusal of a library whose header cannot be used.
fn no_header(path: &Path, error: LibraryError) -> PluginError {
    let path = path.to_owned();
    match error {
        LibraryError::InvalidAbiHeader(header) => PluginError::NotAPlugin {
            path,
            why: format!(
                "it was built with version {}.{} of `abi_stable`, this host with another",
                header.abi_major, header.abi_minor
            ),
        },
        other => PluginError::NotAPlugin { path, why: other.to_string().trim().replace('\n', " ") },
    }
}

/// The words of the loader, without the path that it was given: the message names the file anyway.
fn in_one_line(text: &str, path: &Path) -> String {
    let text = text.replace('\n', " ");
    text.replace(&format!("{}: ", path.display()), "").trim().to_owned()
}
