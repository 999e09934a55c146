//! Values by the hash of their content: each a read-only file, stored once.
//!
//! ```text
//!  bytes ──────────────┐
//!  file ──copy, hash───┼──▶ blobs/.new-… ──fsync──▶ rename ──▶ blobs/ab/cdef…   mode 0444
//!  spooled file ──hash─┘
//! ```
//!
//! Promise: a file under its hash was whole and durable before it got that name, unless the record has its bytes too: that one is whole,
//! and is made durable when it is taken in as a value. Mode 0444 keeps honest programs from
//! writing to it; a value of up to [`VERIFIED_ON_REUSE`] is compared with its hash before it is used a second time,
//! and replaced if it was changed.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use futures_util::future::BoxFuture;
use offshoot_model::{ContentHash, ValueKind, VariableRef};
use rustix::fs::{
    CWD, FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens, renameat,
    unlinkat,
};
use rustix::io::retry_on_intr;

use crate::below::{Below, NewFile, PREFIX, There};
use crate::error::Doing;
use crate::value_reader::{FileHasher, GroupHasher, Groups, Known, ValueReader, hash_file};
use crate::{NewValue, Source, StoreError};

/// Values up to this size are read again before a second use; that costs a hundredth of a second. Larger ones are
/// trusted by size, unless the caller asks.
pub(crate) const VERIFIED_ON_REUSE: u64 = 16 << 20;

/// Copied, and then hashed by a second thread, in portions of this size: large enough to be cheap, small enough that
/// the copy is hashed while it is still in the processor's cache.
const PORTION: u64 = 4 << 20;

/// Takes in a value on a thread that may block.
pub(crate) fn put_on_thread(
    blobs: Blobs,
    value: NewValue,
) -> BoxFuture<'static, Result<VariableRef, StoreError>> {
    Box::pin(async move {
        let put = tokio::task::spawn_blocking(move || blobs.put(&value));
        let put = match put.await {
            // The threads are being shut down, and the caller is dropped with them: it is not told a failure of which nothing is known.
            Err(error) if error.is_cancelled() => std::future::pending().await,
            put => put.unwrap_or(Err(StoreError::Closed)),
        };
        if let Ok(VariableRef { hash, size: bytes, .. }) = &put {
            tracing::debug!(%hash, bytes, "value stored");
        }
        put
    })
}

/// A folder of values.
#[derive(Clone, Debug)]
pub(crate) struct Blobs {
    /// The data folder, from which values are taken over.
    data: Below,
    /// The name of the folder below that.
    name: &'static str,
    /// For each of the folders in it: true if it is known to be durable.
    durable: Arc<[AtomicBool; 256]>,
    known: Known,
}

/// The means by which a value outlives a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The file of the value is flushed, and the folders that it stands in.
    Flushed,
    /// The record has its bytes.
    OnRecord,
}

/// A value by its hash: two digits of it name the folder, so that none gets too long.
struct Name {
    folder: String,
    file: String,
}

impl Blobs {
    /// The values in the folder `name` below `data`.
    pub(crate) fn new(data: Below, name: &'static str) -> Self {
        let durable = Arc::new([const { AtomicBool::new(false) }; 256]);
        Self { data, name, durable, known: Known::default() }
    }

    /// Returns the path at which a value is, or would be.
    pub(crate) fn path(&self, hash: ContentHash) -> PathBuf {
        let Name { folder, file } = Name::of(hash);
        self.data.path().join(self.name).join(folder).join(file)
    }

    /// The file of a value.
    pub(crate) fn file(&self, hash: ContentHash) -> Result<File, StoreError> {
        let Name { folder, file } = Name::of(hash);
        let opened = self.data.read(Path::new(self.name).join(folder).join(file));
        opened.map_err(|error| missing(hash, &self.path(hash), error))
    }

    /// Takes in a value. Blocks for as long as copying takes.
    pub(crate) fn put(&self, value: &NewValue) -> Result<VariableRef, StoreError> {
        match &value.source {
            Source::Bytes(bytes) => self.put_bytes(value.kind, bytes, Durability::Flushed),
            Source::File(path) => {
                let source = File::open(path).doing("open", path)?;
                self.put_file(value, path, &source)
            }
            Source::Adopt(path) => self.adopt(value, path),
        }
    }

    /// Reads a value's file once.
    pub(crate) fn verify(&self, reference: &VariableRef) -> Result<(), StoreError> {
        self.hashed(reference, &self.file(reference.hash)?).map(drop)
    }

    /// A value that fits in memory.
    pub(crate) fn read(&self, reference: &VariableRef) -> Result<Vec<u8>, StoreError> {
        let path = || self.path(reference.hash);
        let mut bytes = Vec::with_capacity(reference.size.try_into().unwrap_or(0));
        let read = self.file(reference.hash)?.read_to_end(&mut bytes);
        read.map_err(|error| StoreError::io("read", &path(), error))?;
        match ContentHash::of(&bytes) == reference.hash {
            true => Ok(bytes),
            false => Err(StoreError::Corrupt { hash: reference.hash }),
        }
    }

    /// A value, to be read from any place.
    pub(crate) fn open(&self, reference: &VariableRef) -> Result<ValueReader, StoreError> {
        let file = self.file(reference.hash)?;
        Ok(ValueReader::new(file, *reference, self.known.clone()))
    }

    /// The hashes of the groups of a value, which is read for that and compared with its hash.
    fn hashed(&self, reference: &VariableRef, file: &File) -> Result<Groups, StoreError> {
        let (hash, size, groups) = hash_file(file)
            .map_err(|error| StoreError::io("read", &self.path(reference.hash), error))?;
        if hash != reference.hash || size != reference.size {
            return Err(StoreError::Corrupt { hash: reference.hash });
        }
        self.known.remember(hash, &groups);
        Ok(groups)
    }

    /// Takes in bytes. Of those that stand in the record too nothing is flushed: after a power failure they may be missing or damaged here,
    /// and are taken in again.
    pub(crate) fn put_bytes(
        &self,
        kind: ValueKind,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<VariableRef, StoreError> {
        let mut hasher = GroupHasher::new();
        hasher.update(bytes);
        let reference = self.reference(kind, hasher.finish());
        if !self.has(&reference, durability) {
            let new = self.new_file()?;
            let written = (&new.file).write_all(bytes).and_then(|()| match durability {
                Durability::Flushed => new.file.sync_all(),
                Durability::OnRecord => Ok(()),
            });
            written.doing("write", &new.path())?;
            self.publish_new(new, &reference, durability)?;
        }
        Ok(reference)
    }

    fn put_file(
        &self,
        value: &NewValue,
        path: &Path,
        source: &File,
    ) -> Result<VariableRef, StoreError> {
        let new = self.new_file()?;
        // The copy can fail on either side; where there is no space left, that is ours.
        let hashed = copy(source, &new.file).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => StoreError::io("write", &new.path(), error),
            _ => StoreError::io("copy", path, error),
        })?;
        let reference = self.reference(value.kind, hashed);
        if !self.has(&reference, Durability::Flushed) {
            self.publish_new(new, &reference, Durability::Flushed)?;
        }
        Ok(reference)
    }

    fn adopt(&self, value: &NewValue, path: &Path) -> Result<VariableRef, StoreError> {
        let own = self.own(path).doing("open", path)?;
        let opened = match &own {
            Some((folder, name)) => folder.read(name),
            None => File::open(path),
        };
        let file = opened.doing("open", path)?;
        let hashed = hash_beside(&file, || file.sync_all()).doing("read", path)?;
        let reference = self.reference(value.kind, hashed);
        let stored = self.has(&reference, Durability::Flushed);
        let rename = |to: &Below, name: &str| {
            make_read_only(&file)?;
            match &own {
                Some((folder, own)) => folder.rename(own, to, name),
                None => Ok(renameat(CWD, path, &to.folder, name)?),
            }
        };
        if !stored {
            match self.publish(&reference, Durability::Flushed, rename) {
                Ok(()) => return Ok(reference),
                // From another file system a file can only be copied.
                Err(StoreError::Io { source, .. })
                    if source.kind() == io::ErrorKind::CrossesDevices =>
                {
                    self.put_file(value, path, &file)?;
                }
                Err(error) => return Err(error),
            }
        }
        let removed = match &own {
            Some((folder, name)) => folder.remove(name),
            None => unlinkat(CWD, path, rustix::fs::AtFlags::empty()).map_err(io::Error::from),
        };
        removed.doing("remove", path)?;
        Ok(reference)
    }

    /// Returns the folder and the name of a file that is in the data folder itself.
    fn own(&self, path: &Path) -> io::Result<Option<(Below, String)>> {
        let Ok(within) = path.strip_prefix(self.data.path()) else { return Ok(None) };
        let (Some(folder), Some(name)) = (within.parent(), within.file_name()) else {
            return Ok(None);
        };
        let Some(name) = name.to_str() else { return Ok(None) };
        Ok(Some((self.data.folder(folder)?, name.to_owned())))
    }

    fn reference(
        &self,
        kind: ValueKind,
        (hash, size, groups): (ContentHash, u64, Groups),
    ) -> VariableRef {
        self.known.remember(hash, &groups);
        VariableRef { hash, size, kind }
    }

    /// True if the value is stored, is durable where it has to be, and is what its hash says as far as that is cheap to know.
    fn has(&self, reference: &VariableRef, durability: Durability) -> bool {
        self.reused(reference, durability).unwrap_or(false)
    }

    fn reused(&self, reference: &VariableRef, durability: Durability) -> io::Result<bool> {
        let Name { folder, file: name } = Name::of(reference.hash);
        let folder = Path::new(self.name).join(folder);
        let Ok(folder) = self.data.folder(folder) else { return Ok(false) };
        let Ok(file) = folder.read(&name) else { return Ok(false) };
        if There::of(&file)?.length() != reference.size {
            return Ok(false);
        }
        if reference.size <= VERIFIED_ON_REUSE && self.hashed(reference, &file).is_err() {
            return Ok(false);
        }
        // The process that wrote the file may have died before its name, or its bytes, were durable.
        if durability == Durability::Flushed {
            file.sync_all()?;
            folder.sync()?;
            self.sync_once(reference.hash)?;
        }
        // In use again, though nothing on record may say so yet: a sweep leaves alone what is fresh, and holds this lock
        // while it looks and removes. If it was faster, the value is stored again.
        retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
        let at = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let times = Timestamps { last_access: at(UTIME_OMIT), last_modification: at(UTIME_NOW) };
        futimens(&file, &times)?;
        let ours = There::of(&file)?;
        Ok(folder.there(&name).is_ok_and(|there| there.is(&ours)))
    }

    fn new_file(&self) -> Result<NewFile, StoreError> {
        let new = self.data.make_folder(self.name).and_then(|folder| folder.new_file(PREFIX));
        new.map_err(|error| StoreError::io("write into", &self.data.path().join(self.name), error))
    }

    fn publish_new(
        &self,
        new: NewFile,
        reference: &VariableRef,
        durability: Durability,
    ) -> Result<(), StoreError> {
        self.publish(reference, durability, |folder, name| {
            make_read_only(&new.file)?;
            new.name(folder, name)
        })
    }

    /// Gives a file its name. Whatever stood there is replaced: it is the same, or damaged.
    fn publish(
        &self,
        reference: &VariableRef,
        durability: Durability,
        rename: impl FnOnce(&Below, &str) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let Name { folder, file } = Name::of(reference.hash);
        let publish = || {
            let folder = self.data.make_folder(Path::new(self.name).join(folder))?;
            if durability == Durability::OnRecord {
                return rename(&folder, &file);
            }
            self.sync_once(reference.hash)?;
            rename(&folder, &file)?;
            // A name is durable only with the folder it stands in.
            folder.sync()
        };
        publish().map_err(|error| StoreError::io("write", &self.path(reference.hash), error))
    }

    /// Makes the folder of a value durable, whichever process made it; once is enough.
    fn sync_once(&self, hash: ContentHash) -> io::Result<()> {
        let durable = &self.durable[usize::from(hash.as_bytes()[0])];
        if !durable.load(Ordering::Relaxed) {
            self.data.folder(self.name)?.sync()?;
            durable.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Name {
    fn of(hash: ContentHash) -> Self {
        let mut folder = hash.to_string();
        let file = folder.split_off(2);
        Self { folder, file }
    }
}

fn make_read_only(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o444))
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
fn copy(source: &File, target: &File) -> io::Result<(ContentHash, u64, Groups)> {
    if rustix::fs::ioctl_ficlone(target, source).is_ok() {
        return hash_beside(target, || target.sync_all());
    }
    // No bound is needed: a message is one number, and there is one for each portion of the file.
    let (copied, portions) = mpsc::channel();
    std::thread::scope(|scope| {
        let hash = scope.spawn(move || {
            let mut hasher = FileHasher::new(target);
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
) -> io::Result<(ContentHash, u64, Groups)> {
    std::thread::scope(|scope| {
        let hashed = scope.spawn(|| hash_file(file));
        beside()?;
        hashed.join().expect("hashing does not panic")
    })
}
