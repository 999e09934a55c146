//! The files in which a run sees its variables.
//!
//! A raw value is its own file, linked: whatever its size, nothing is copied. A JSON value is seen as
//! `{"ref": …, "value": …}`; that file is written once, beside the value, and linked as well.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use offshoot_model::{RunId, VariableRef};
use rustix::fs::{AtFlags, CWD, linkat};
use rustix::io::Errno;

use super::{BLOBS, DataFolder, RUNS, SPOOL};
use crate::below::{Below, PREFIX, There};
use crate::error::Doing;
use crate::name::{file_name, is_wrapped};
use crate::{Store, StoreError};

/// A value up to this size is read and compared with its hash before a run sees it: that takes less than a millisecond.
/// A larger one is handed on as it is, so that a hundred runs do not wait for a hundred readings.
pub(super) const VERIFIED_ON_LINK: u64 = 1 << 20;

impl DataFolder {
    /// Gives a run a variable, as a read-only file in its folder, and returns the absolute path. The time it takes does
    /// not depend on the size of a large value, except for the first run that sees a JSON value.
    ///
    /// The file shares its blocks with the value where the file system can, else it *is* the value under another name:
    /// a program that changes its mode and writes to it damages the value, which its hash tells. On another file
    /// system it is a copy.
    pub fn context_link(
        &self,
        store: &dyn Store,
        run: RunId,
        name: &str,
        value: &VariableRef,
    ) -> Result<PathBuf, StoreError> {
        self.link_variable(&Path::new(RUNS).join(run.to_string()), store, name, value)
    }

    /// The same in a folder below the data folder.
    pub(super) fn link_variable(
        &self,
        within: &Path,
        store: &dyn Store,
        name: &str,
        value: &VariableRef,
    ) -> Result<PathBuf, StoreError> {
        let within = within.join("context");
        let name = file_name(name, value.kind)?;
        let path = self.path().join(&within).join(&name);
        if value.size <= VERIFIED_ON_LINK {
            store.verify(value)?;
        }
        let file = match is_wrapped(value.kind) {
            true => self.wrapped(store, value)?,
            false => store.open(value)?.into_file(),
        };
        let folder = self.below.make_folder(&within);
        let linked = folder.and_then(|folder| link(&file, &folder, &name, &self.clones));
        linked.doing("link", &path)?;
        Ok(path)
    }

    /// The file that shows a JSON value the way runs see it; written at the first use, beside the value.
    fn wrapped(&self, store: &dyn Store, value: &VariableRef) -> Result<File, StoreError> {
        let digits = value.hash.to_string();
        let folder = Path::new(BLOBS).join(&digits[..2]);
        // The reference is part of the text, so a result and a JSON value with the same bytes are two files.
        let name = format!("{}.{}", &digits[2..], value.kind.as_ref());
        let reference = serde_json::to_string(value).expect("a reference is plain data");
        let head = format!("{{\"ref\":{reference},\"value\":");
        let tail = "}\n";
        let path = self.path().join(&folder).join(&name);
        let folder = self.below.make_folder(folder).doing("write", &path)?;
        let there = folder.read(&name).ok();
        let sound = if value.size <= VERIFIED_ON_LINK {
            let bare = store.read(value)?;
            let whole = [head.as_bytes(), &bare, tail.as_bytes()].concat();
            there.filter(|_| folder.read(&name).is_ok_and(|file| reads(&file, &whole)))
        } else {
            // At least its length: it is not flushed to the disk, so after a power failure the name may hold less.
            let length = head.len() as u64 + value.size + tail.len() as u64;
            there.filter(|file| There::of(file).is_ok_and(|there| there.length() == length))
        };
        if let Some(file) = sound {
            return Ok(file);
        }
        let mut bare = store.open(value)?;
        let written = self.below.folder(SPOOL).and_then(|spool| {
            spool.write_whole(&folder, &name, |file| {
                file.write_all(head.as_bytes())?;
                io::copy(&mut bare, file)?;
                file.write_all(tail.as_bytes())?;
                file.get_ref().set_permissions(Permissions::from_mode(0o444))
            })
        });
        written.and_then(|()| folder.read(&name)).doing("write", &path)
    }
}

/// True if a file holds these bytes and no more.
fn reads(file: &File, expected: &[u8]) -> bool {
    let mut bytes = Vec::with_capacity(expected.len());
    let most = expected.len() as u64 + 1;
    io::Read::take(file, most).read_to_end(&mut bytes).is_ok() && bytes == expected
}

/// Gives a file one more name by the best means there is. Another file that stands there already is replaced: the same name in the same
/// folder is the same variable, asked for again.
fn link(source: &File, folder: &Below, name: &str, clones: &AtomicBool) -> io::Result<()> {
    match link_new(source, folder, name, clones) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if is_same(source, folder, name)? {
                return Ok(());
            }
            replace(source, folder, name, clones)
        }
        linked => linked,
    }
}

/// True if a file stands there that is the source, or has its bytes as far as it is small. Agents may be reading it.
fn is_same(source: &File, folder: &Below, name: &str) -> io::Result<bool> {
    let Ok(file) = folder.read(name) else { return Ok(false) };
    let (there, wanted) = (There::of(&file)?, There::of(source)?);
    if there.is(&wanted) {
        return Ok(true);
    }
    if there.length() != wanted.length() || wanted.length() > VERIFIED_ON_LINK {
        return Ok(false);
    }
    let mut bytes = vec![0; wanted.length() as usize];
    source.read_exact_at(&mut bytes, 0)?;
    Ok(reads(&file, &bytes))
}

/// Puts the file in the place of what stands there, of which a reader sees the one or the other.
fn replace(source: &File, folder: &Below, name: &str, clones: &AtomicBool) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let aside = format!("{PREFIX}{}-{count}", std::process::id());
    link_new(source, folder, &aside, clones)?;
    folder.rename(&aside, folder, name).or_else(|_| {
        // A folder that an agent has put there.
        folder.remove_all(name)?;
        folder.rename(&aside, folder, name)
    })
}

fn link_new(source: &File, folder: &Below, name: &str, clones: &AtomicBool) -> io::Result<()> {
    if clones.load(Ordering::Relaxed) {
        match copy(folder, name, |to| Ok(rustix::fs::ioctl_ficlone(to, source)?)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                clones.store(false, Ordering::Relaxed);
            }
            copied => return copied,
        }
    }
    // By its descriptor: what stands under its path may be something else by now.
    let open = format!("/proc/self/fd/{}", source.as_raw_fd());
    match linkat(CWD, open, &folder.folder, name, AtFlags::SYMLINK_FOLLOW) {
        // Another file system, more links than this one allows, a system that lets users link only what is theirs, or one
        // without `/proc`.
        Err(Errno::XDEV | Errno::MLINK | Errno::PERM | Errno::NOENT) => {
            let mut source = source;
            copy(folder, name, |mut to| io::copy(&mut source, &mut to).map(drop))
        }
        linked => Ok(linked?),
    }
}

/// A read-only file of its own.
fn copy(folder: &Below, name: &str, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let file = folder.create_new(name)?;
    let filled = fill(&file).and_then(|()| file.set_permissions(Permissions::from_mode(0o444)));
    if filled.is_err() {
        folder.remove(name)?;
    }
    filled
}
