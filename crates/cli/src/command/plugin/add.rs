//! `offshoot plugin add`: a copy in the user's own folder, with its digest written down.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use offshoot_plugin_host::{
    Candidate, Checked, Extent, LibraryFile, PACKAGE_FILE, Package, PlaceOrigin, target,
};
use serde::Serialize;

use crate::arguments::{AddPluginArguments, PluginPathArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::plugins::{real, unusable, user_folder};
use crate::trusted::Trusted;

/// A plugin that has just been taken in.
#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    version: &'a str,
    folder: &'a Path,
}

/// Takes a plugin in.
pub(super) fn run(arguments: &AddPluginArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let plugins = super::plugins(&PluginPathArguments::default(), cx)?;
    let candidate = super::folder(&cx.absolute(&arguments.folder))?;
    let checked = candidate.check(None).map_err(|error| unusable(&error, cx))?;
    plugins.describe(&checked, &Extent::default(), cx)?;
    let package = checked.package.as_ref().expect("a folder has one");
    let home = user_folder(cx)?;
    let folder = home.join(package.name.as_str());
    if folder.exists() && !arguments.replace {
        return Err(Failure::input(format_args!("there is {} already", folder.display()))
            .hint("--replace puts this one in its place"));
    }
    let failed = |error: &std::io::Error| Failure::file("write", &folder, error);
    fs::create_dir_all(&home).map_err(|error| failed(&error))?;
    let staging = tempfile::Builder::new().prefix(".new-").tempdir_in(&home);
    let staging = staging.map_err(|error| failed(&error))?;
    copy(&checked, package, staging.path()).map_err(|error| failed(&error))?;
    put(staging, &folder, &home).map_err(|error| failed(&error))?;
    let added = Candidate::read(folder.clone(), PlaceOrigin::User);
    let digest = added.digest().map_err(|error| unusable(&error, cx))?;
    Trusted::read(&cx.environment)?.add_plugin(real(&folder), digest)?;
    let (name, version) = (package.name.as_str(), package.version.as_str());
    if cx.output.wants_json() {
        cx.output.json(&Added { name, version, folder: &folder })?;
    } else {
        cx.output.line(format_args!("added {name} {version} in {}", folder.display()))?;
    }
    Ok(Exit::Done)
}

/// Copies what is needed on this machine.
fn copy(checked: &Checked, package: &Package, to: &Path) -> std::io::Result<()> {
    let name = PathBuf::from(checked.path().file_name().expect("a library has a name"));
    let library = LibraryFile { path: name.clone(), digest: Some(checked.digest()) };
    let package = Package { files: [(target(), library)].into(), ..package.clone() };
    fs::copy(checked.path(), to.join(&name))?;
    fs::write(to.join(PACKAGE_FILE), package.to_toml())?;
    // Nobody but the owner writes, whatever the mask is.
    for (path, mode) in
        [(to.join(&name), 0o755), (to.join(PACKAGE_FILE), 0o644), (to.into(), 0o755)]
    {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Puts a folder in its place by renaming: a library that is loaded keeps its file.
fn put(staging: tempfile::TempDir, folder: &Path, home: &Path) -> std::io::Result<()> {
    let old = tempfile::Builder::new().prefix(".old-").tempdir_in(home)?;
    let kept = old.path().join("plugin");
    if folder.exists() {
        fs::rename(folder, &kept)?;
    }
    let renamed = fs::rename(staging.path(), folder);
    match &renamed {
        // There is nothing left under that name to be removed.
        Ok(()) => drop(staging.keep()),
        // What was there before is worth more than a word on why it cannot come back.
        Err(_) if kept.exists() => drop(fs::rename(&kept, folder)),
        Err(_) => {}
    }
    renamed
}
