//! What a run sees of its variables.
//!
//! A raw value is its own file, linked: whatever its size, nothing is copied. A JSON value is seen as
//! `{"ref": …, "value": …}`; that file is written once, beside the value, and linked as well.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use offshoot_model::{RunId, ValueKind, VariableRef};
use serde::Serialize;
use serde::ser::SerializeMap;

use super::{DataFolder, make_folder, write_whole};
use crate::name::{file_name, is_wrapped};
use crate::{Store, StoreError};

/// One line of a run's list of variables.
#[derive(Clone, Debug)]
pub struct ManifestEntry<'a> {
    /// The name the run knows it by.
    pub name: &'a str,
    /// The file to read: what [`DataFolder::context_link`] returned.
    pub path: &'a Path,
    /// The value behind it.
    pub value: VariableRef,
}

impl DataFolder {
    /// Gives a run a variable, as a read-only file in its folder, and returns the absolute path. The time it takes does
    /// not depend on the value's size, except for the first run that sees a JSON value.
    ///
    /// The file shares its blocks with the value where the file system can, else it *is* the value under another name
    /// (a hard link, or a symbolic one to another file system): a program that changes its mode and writes to it
    /// damages the value, which its hash tells.
    pub fn context_link(
        &self,
        store: &dyn Store,
        run: RunId,
        name: &str,
        value: &VariableRef,
    ) -> Result<PathBuf, StoreError> {
        let folder = self.run_folder(run).join("context");
        let path = folder.join(file_name(name, value.kind)?);
        let mut source = store.path(value)?;
        if is_wrapped(value.kind) {
            source = wrapped(&source, value)?;
        }
        make_folder(&folder)?;
        link(&source, &path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::Missing { hash: value.hash },
            _ => StoreError::io("link", &path, error),
        })?;
        Ok(path)
    }

    /// Writes the list of a run's variables, name → path, size, type, and returns its absolute path.
    pub fn write_manifest(
        &self,
        run: RunId,
        entries: &[ManifestEntry<'_>],
    ) -> Result<PathBuf, StoreError> {
        let folder = self.run_folder(run);
        make_folder(&folder)?;
        let lines: Vec<(&str, ManifestLine<'_>)> =
            entries.iter().map(manifest_line).collect::<Result<_, _>>()?;
        let path = folder.join("context.json");
        write_whole(&path, |file| {
            let mut json = serde_json::Serializer::pretty(&mut *file);
            let mut map = serde::Serializer::serialize_map(&mut json, Some(lines.len()))?;
            lines.iter().try_for_each(|(name, line)| map.serialize_entry(name, line))?;
            SerializeMap::end(map)?;
            file.write_all(b"\n")
        })?;
        Ok(path)
    }
}

#[derive(Serialize)]
struct ManifestLine<'a> {
    path: &'a str,
    size: u64,
    r#type: ValueKind,
}

fn manifest_line<'a>(entry: &ManifestEntry<'a>) -> Result<(&'a str, ManifestLine<'a>), StoreError> {
    let path = entry
        .path
        .to_str()
        .ok_or_else(|| StoreError::PathNotText { path: entry.path.to_owned() })?;
    Ok((entry.name, ManifestLine { path, size: entry.value.size, r#type: entry.value.kind }))
}

/// The file that shows a JSON value the way runs see it; written at the first use.
fn wrapped(source: &Path, value: &VariableRef) -> Result<PathBuf, StoreError> {
    // The reference is part of the text, so a result and a JSON value with the same bytes are two files.
    let path = source.with_extension(value.kind.as_str());
    let reference = serde_json::to_string(value).expect("a reference is plain data");
    let head = format!("{{\"ref\":{reference},\"value\":");
    let tail = "}\n";
    // By its length, because it is not flushed to the disk: after a power failure the name may hold less.
    let length = head.len() as u64 + value.size + tail.len() as u64;
    if fs::metadata(&path).is_ok_and(|there| there.len() == length) {
        return Ok(path);
    }
    let mut bare = File::open(source).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing { hash: value.hash },
        _ => StoreError::io("open", source, error),
    })?;
    write_whole(&path, |file| {
        file.write_all(head.as_bytes())?;
        io::copy(&mut bare, file)?;
        file.write_all(tail.as_bytes())?;
        file.get_ref().set_permissions(Permissions::from_mode(0o444))
    })?;
    Ok(path)
}

/// Links a file by the best means there is. A link that stands there already is replaced: the same name in the same run
/// is the same variable, asked for again.
fn link(source: &Path, path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if clone(source, path)? {
        return Ok(());
    }
    match fs::hard_link(source, path) {
        // Another file system, or more links than this one allows.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::CrossesDevices | io::ErrorKind::TooManyLinks
            ) =>
        {
            symlink(source, path)
        }
        linked => linked,
    }
}

/// A file of its own that shares its blocks; false where the file system cannot.
fn clone(source: &Path, path: &Path) -> io::Result<bool> {
    let from = File::open(source)?;
    let to = File::create_new(path)?;
    if rustix::fs::ioctl_ficlone(&to, &from).is_err() {
        fs::remove_file(path)?;
        return Ok(false);
    }
    to.set_permissions(Permissions::from_mode(0o444))?;
    Ok(true)
}
