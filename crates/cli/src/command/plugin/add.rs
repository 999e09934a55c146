//! `offshoot plugin add`: a copy in the user's own folder, with its digest written down.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use offshoot_plugin_host::{Candidate, Checked, Extent, PACKAGE_FILE, PlaceOrigin};
use rustix::io::Errno;
use serde::Serialize;

use crate::arguments::PluginPathArguments;
use crate::code::FailureCode;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::plugins::{real, user_folder};
use crate::trusted::Trusted;

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

/// A plugin that has just been taken in.
#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    version: &'a str,
    folder: &'a Path,
}

/// Takes a plugin in.
pub(super) fn run(arguments: &AddPluginArguments, cx: &Invocation) -> Result<(), Failure> {
    let plugins = super::plugins(&PluginPathArguments::default(), cx)?;
    let candidate = super::folder(&cx.absolute(&arguments.folder))?;
    let checked = candidate.check(None)?;
    plugins.describe(&checked, &Extent::default())?;
    let package = checked.package.as_ref().expect("a folder has one");
    let home = user_folder(cx)?;
    let folder = home.join(package.name.as_str());
    if folder.exists() && !arguments.replace {
        return Err(Failure::input(
            FailureCode::PluginIsThere,
            format_args!("there is {} already", folder.display()),
        )
        .hint("--replace puts this one in its place"));
    }
    let failed = Failure::writing(&folder);
    let mut trusted = Trusted::read(&cx.environment)?;
    fs::create_dir_all(&home).map_err(&failed)?;
    let staging = tempfile::Builder::new().prefix(".new-").tempdir_in(&home);
    let staging = staging.map_err(&failed)?;
    let staged = staging.path().join(package.name.as_str());
    copy(&checked, &staged).map_err(&failed)?;
    // The plugin takes effect as a whole, after its copy was examined.
    let examined = Candidate::read(staged.clone(), PlaceOrigin::User).examine();
    let digest = examined?.digest();
    put(&staged, &folder).map_err(&failed)?;
    trusted.add_plugin(real(&folder), digest)?;
    let (name, version) = (package.name.as_str(), package.version.as_str());
    cx.output.result(&Added { name, version, folder: &folder }, || {
        cx.output.line(format_args!("added {name} {version} in {}", folder.display()))
    })
}

/// Writes what is needed on this machine: the library or the program as it was when it was checked, and its digest.
fn copy(checked: &Checked, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let package = checked.write_into(to)?;
    fs::write(to.join(PACKAGE_FILE), package.to_toml())?;
    // Only the owner may write, whatever the mask is.
    for (path, mode) in [(to.join(PACKAGE_FILE), 0o644), (to.into(), 0o755)] {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Puts a folder in its place by renaming: a library that is loaded keeps its file. What was there before is afterwards
/// where the new folder was.
fn put(staged: &Path, folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return fs::rename(staged, folder);
    }
    match exchange(staged, folder) {
        // A file system that cannot exchange two names at once.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let old = staged.with_file_name(".old");
            fs::rename(folder, &old)?;
            fs::rename(staged, folder).inspect_err(|_| {
                // The error of the rename is reported, not one of bringing the earlier plugin back.
                let _ = fs::rename(&old, folder);
            })
        }
        exchanged => Ok(exchanged?),
    }
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> Result<(), Errno> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}
