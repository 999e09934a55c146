//! Values by the hash of their content: each a read-only file, stored once.
//!
//! ```text
//!  bytes ──────────────┐
//!  file ──copy, hash───┼──▶ blobs/.new-… ──fsync──▶ rename ──▶ blobs/ab/cdef…   mode 0444
//!  spooled file ──hash─┘
//! ```
//!
//! Promise: a file under its hash was whole and durable before it got that name. Mode 0444 keeps honest programs from
//! writing to it; a value of up to [`VERIFIED_ON_REUSE`] is compared with its hash before it is used a second time,
//! and replaced if it was changed.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use futures_util::future::BoxFuture;
use offshoot_model::{ContentHash, VariableRef};
use tempfile::NamedTempFile;

use crate::folder::{PREFIX, new_file};
use crate::{NewValue, Source, StoreError};

/// Values up to this size are read again before a second use; that costs a hundredth of a second. Larger ones are
/// trusted by size, unless somebody asks.
pub(crate) const VERIFIED_ON_REUSE: u64 = 16 << 20;

/// Copied, and then hashed by a second thread, in portions of this size: large enough to be cheap, small enough that
/// the copy is hashed while it is still in the processor's cache.
const PORTION: u64 = 4 << 20;
/// What the hash reads at once.
const BUFFER: usize = 256 << 10;

/// Takes in a value on a thread that may block.
pub(crate) fn put_on_thread(
    blobs: Blobs,
    value: NewValue,
) -> BoxFuture<'static, Result<VariableRef, StoreError>> {
    Box::pin(async move {
        let put = tokio::task::spawn_blocking(move || blobs.put(&value));
        // Blocking work is not cancelled except by a runtime that shuts down, and nobody is told anything then.
        put.await.unwrap_or(Err(StoreError::Closed))
    })
}

/// A folder of values.
#[derive(Clone, Debug)]
pub(crate) struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    /// Over a folder that exists.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where a value is, or would be: two digits of the hash name the folder, so that none gets too long.
    pub(crate) fn path(&self, hash: ContentHash) -> PathBuf {
        let digits = hash.to_string();
        self.folder.join(&digits[..2]).join(&digits[2..])
    }

    /// Takes in a value. Blocks for as long as copying takes.
    pub(crate) fn put(&self, value: &NewValue) -> Result<VariableRef, StoreError> {
        match &value.source {
            Source::Bytes(bytes) => self.put_bytes(value, bytes),
            Source::File(path) => self.put_file(value, path),
            Source::Adopt(path) => self.adopt(value, path),
        }
    }

    /// Reads a value's file once.
    pub(crate) fn verify(&self, reference: &VariableRef) -> Result<(), StoreError> {
        let path = self.path(reference.hash);
        let file = File::open(&path).map_err(|error| missing(reference.hash, &path, error))?;
        let (hash, size) = hash(&file).map_err(|error| StoreError::io("read", &path, error))?;
        match hash == reference.hash && size == reference.size {
            true => Ok(()),
            false => Err(StoreError::Corrupt { hash: reference.hash }),
        }
    }

    /// A value that fits in memory.
    pub(crate) fn read(&self, reference: &VariableRef) -> Result<Vec<u8>, StoreError> {
        let path = self.path(reference.hash);
        let bytes = fs::read(&path).map_err(|error| missing(reference.hash, &path, error))?;
        match ContentHash::of(&bytes) == reference.hash {
            true => Ok(bytes),
            false => Err(StoreError::Corrupt { hash: reference.hash }),
        }
    }

    fn put_bytes(&self, value: &NewValue, bytes: &[u8]) -> Result<VariableRef, StoreError> {
        let reference = VariableRef {
            hash: ContentHash::of(bytes),
            size: bytes.len() as u64,
            kind: value.kind,
        };
        if !self.has(&reference) {
            let mut new = self.new_file()?;
            let written = new.write_all(bytes).and_then(|()| new.as_file().sync_all());
            written.map_err(|error| StoreError::io("write", new.path(), error))?;
            self.publish_new(new, &reference)?;
        }
        Ok(reference)
    }

    fn put_file(&self, value: &NewValue, path: &Path) -> Result<VariableRef, StoreError> {
        let source = File::open(path).map_err(|error| StoreError::io("open", path, error))?;
        let new = self.new_file()?;
        // The copy can fail on either side; where there is no space left, that is ours.
        let (hash, size) = copy(&source, new.as_file()).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => StoreError::io("write", new.path(), error),
            _ => StoreError::io("copy", path, error),
        })?;
        let reference = VariableRef { hash, size, kind: value.kind };
        if !self.has(&reference) {
            self.publish_new(new, &reference)?;
        }
        Ok(reference)
    }

    fn adopt(&self, value: &NewValue, path: &Path) -> Result<VariableRef, StoreError> {
        let file = File::open(path).map_err(|error| StoreError::io("open", path, error))?;
        let (hash, size) = hash_beside(&file, || file.sync_all())
            .map_err(|error| StoreError::io("read", path, error))?;
        let reference = VariableRef { hash, size, kind: value.kind };
        let stored = self.has(&reference);
        if !stored && self.publish(&reference, |stored| rename_or_not(path, stored))? {
            return Ok(reference);
        }
        if !stored {
            // From another file system a file can only be copied.
            self.put_file(value, path)?;
        }
        fs::remove_file(path).map_err(|error| StoreError::io("remove", path, error))?;
        Ok(reference)
    }

    /// Whether the value is stored, and is what its hash says as far as that is cheap to know.
    fn has(&self, reference: &VariableRef) -> bool {
        let path = self.path(reference.hash);
        let has = match fs::metadata(&path) {
            Ok(there) if there.len() != reference.size => false,
            Ok(_) if reference.size <= VERIFIED_ON_REUSE => self.verify(reference).is_ok(),
            Ok(_) => true,
            Err(_) => false,
        };
        // In use again, though nothing on record may say so yet: a sweep leaves alone what is fresh. If it was faster,
        // the value is stored again.
        has && touch(&path).is_ok()
    }

    fn new_file(&self) -> Result<NamedTempFile, StoreError> {
        new_file(&self.folder, PREFIX)
            .map_err(|error| StoreError::io("write into", &self.folder, error))
    }

    fn publish_new(&self, new: NamedTempFile, reference: &VariableRef) -> Result<(), StoreError> {
        self.publish(reference, |path| {
            make_read_only(new.path())?;
            new.persist(path).map(drop).map_err(|error| error.error)
        })
    }

    /// Gives a durable file its name. Whatever stood there is replaced: it is the same, or damaged.
    fn publish<T>(
        &self,
        reference: &VariableRef,
        rename: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, StoreError> {
        let path = self.path(reference.hash);
        let folder = path.parent().expect("a value's path has a folder");
        let publish = || {
            match fs::create_dir(folder) {
                Ok(()) => sync_folder(&self.folder)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let renamed = rename(&path)?;
            // A name is durable only with the folder it stands in.
            sync_folder(folder)?;
            Ok(renamed)
        };
        publish().map_err(|error| StoreError::io("write", &path, error))
    }
}

/// Moves a file to its name in the store; false where that is another file system, and nothing was done.
fn rename_or_not(from: &Path, to: &Path) -> io::Result<bool> {
    match make_read_only(from).and_then(|()| fs::rename(from, to)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Ok(false),
        Err(error) => Err(error),
    }
}

fn make_read_only(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o444))
}

fn touch(path: &Path) -> rustix::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
    let at = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: at(UTIME_OMIT), last_modification: at(UTIME_NOW) };
    utimensat(CWD, path, &times, AtFlags::empty())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A value that cannot be opened is missing; anything else is trouble with the disk.
fn missing(hash: ContentHash, path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing { hash },
        _ => StoreError::io("open", path, error),
    }
}

/// Copies a file, makes the copy durable and hashes *the copy*: a source that changes meanwhile cannot give a value a
/// wrong name. Where the file system can share blocks, nothing is copied.
fn copy(source: &File, target: &File) -> io::Result<(ContentHash, u64)> {
    if rustix::fs::ioctl_ficlone(target, source).is_ok() {
        return hash_beside(target, || target.sync_all());
    }
    // No bound is needed: a message is one number, and there is one for each portion of the file.
    let (copied, portions) = mpsc::channel();
    std::thread::scope(|scope| {
        let hash = scope.spawn(move || {
            let mut hasher = Hasher::new(target);
            portions.iter().try_for_each(|portion| hasher.take_in(portion))?;
            Ok(hasher.finish())
        });
        let mut writer = target;
        loop {
            let portion = io::copy(&mut source.take(PORTION), &mut writer)?;
            if portion == 0 {
                break;
            }
            // A hash that has failed says so below.
            let _ = copied.send(portion);
        }
        drop(copied);
        target.sync_all()?;
        hash.join().expect("hashing does not panic")
    })
}

/// Hashes a file on one thread while `beside` runs on this one.
fn hash_beside(
    file: &File,
    beside: impl FnOnce() -> io::Result<()>,
) -> io::Result<(ContentHash, u64)> {
    std::thread::scope(|scope| {
        let hashed = scope.spawn(|| hash(file));
        beside()?;
        hashed.join().expect("hashing does not panic")
    })
}

fn hash(file: &File) -> io::Result<(ContentHash, u64)> {
    let mut hasher = Hasher::new(file);
    hasher.take_in(u64::MAX)?;
    Ok(hasher.finish())
}

/// Hashes a file from its beginning, by position: whoever writes it is not disturbed.
struct Hasher<'a> {
    file: &'a File,
    at: u64,
    state: blake3::Hasher,
    buffer: Box<[u8]>,
}

impl<'a> Hasher<'a> {
    fn new(file: &'a File) -> Self {
        Self { file, at: 0, state: blake3::Hasher::new(), buffer: vec![0; BUFFER].into() }
    }

    /// Takes in the next bytes, at most so many and not beyond the end.
    fn take_in(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let wanted = bytes.min(self.buffer.len() as u64) as usize;
            match self.file.read_at(&mut self.buffer[..wanted], self.at) {
                Ok(0) => break,
                Ok(read) => {
                    self.state.update(&self.buffer[..read]);
                    self.at += read as u64;
                    bytes -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn finish(self) -> (ContentHash, u64) {
        (ContentHash::from_bytes(*self.state.finalize().as_bytes()), self.at)
    }
}
