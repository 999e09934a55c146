//! What a run sees of its variables.
//!
//! A raw value is its own file, linked: whatever its size, nothing is copied. A JSON value is seen as
//! `{"ref": …, "value": …}`; that file is written once, beside the value, and linked as well.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use offshoot_model::{RunId, ValueKind, VariableRef};
use serde::Serialize;

use super::{DataFolder, make_folder, write_whole};
use crate::name::{file_name, is_wrapped};
use crate::{Store, StoreError};

/// A value up to this size is read and compared with its hash before a run sees it: that takes less than a millisecond.
/// A larger one is handed on as it is, so that a hundred runs do not wait for a hundred readings.
const VERIFIED_ON_LINK: u64 = 1 << 20;

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
    /// not depend on the size of a large value, except for the first run that sees a JSON value.
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
        if value.size <= VERIFIED_ON_LINK {
            store.verify(value)?;
        }
        if is_wrapped(value.kind) {
            source = wrapped(&self.spool_folder(), &source, value)?;
        }
        make_folder(&folder)?;
        link(&source, &path, &self.clones).map_err(|error| match error.kind() {
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
        let lines: BTreeMap<&str, ManifestLine<'_>> =
            entries.iter().map(manifest_line).collect::<Result<_, _>>()?;
        let path = folder.join("context.json");
        write_whole(&self.spool_folder(), &path, |file| {
            serde_json::to_writer_pretty(&mut *file, &lines)?;
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
fn wrapped(spool: &Path, source: &Path, value: &VariableRef) -> Result<PathBuf, StoreError> {
    // The reference is part of the text, so a result and a JSON value with the same bytes are two files.
    let path = source.with_extension(value.kind.as_str());
    let reference = serde_json::to_string(value).expect("a reference is plain data");
    let head = format!("{{\"ref\":{reference},\"value\":");
    let tail = "}\n";
    let trouble = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing { hash: value.hash },
        _ => StoreError::io("read", source, error),
    };
    let sound = if value.size <= VERIFIED_ON_LINK {
        let bare = fs::read(source).map_err(trouble)?;
        fs::read(&path).is_ok_and(|text| text == [head.as_bytes(), &bare, tail.as_bytes()].concat())
    } else {
        // At least its length: it is not flushed to the disk, so after a power failure the name may hold less.
        let length = head.len() as u64 + value.size + tail.len() as u64;
        fs::metadata(&path).is_ok_and(|there| there.len() == length)
    };
    if sound {
        return Ok(path);
    }
    let mut bare = File::open(source).map_err(trouble)?;
    write_whole(spool, &path, |file| {
        file.write_all(head.as_bytes())?;
        io::copy(&mut bare, file)?;
        file.write_all(tail.as_bytes())?;
        file.get_ref().set_permissions(Permissions::from_mode(0o444))
    })?;
    Ok(path)
}

/// Links a file by the best means there is. A link that stands there already is replaced: the same name in the same run
/// is the same variable, asked for again.
fn link(source: &Path, path: &Path, clones: &AtomicBool) -> io::Result<()> {
    match link_new(source, path, clones) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            link_new(source, path, clones)
        }
        linked => linked,
    }
}

fn link_new(source: &Path, path: &Path, clones: &AtomicBool) -> io::Result<()> {
    if clones.load(Ordering::Relaxed) {
        if clone(source, path)? {
            return Ok(());
        }
        clones.store(false, Ordering::Relaxed);
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
