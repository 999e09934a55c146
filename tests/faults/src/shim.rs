//! A layer below SQLite that lets a chosen operation on a file fail, or the process die in its place.
//!
//! It stands in front of the system's own layer and hands everything on. Only one fault is set at a time, for the whole
//! process: a test that uses this is alone in its process, or takes turns.
#![expect(unsafe_code, reason = "the interface of the database is one of raw pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

use rusqlite::ffi;

/// What can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Bytes into a file.
    Write = 1,
    /// What was written is to be durable.
    Flush = 2,
    /// A file is cut.
    Truncate = 3,
    /// A file is removed.
    Remove = 4,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Truncate => "truncation",
            Self::Remove => "removal",
        })
    }
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// An error of the device.
    Error = 1,
    /// No space is left.
    Full = 2,
    /// Half of it is written, and the process is killed.
    Death = 3,
}

/// Which operation is to fail.
static OPERATION: AtomicU8 = AtomicU8::new(0);
static FAULT: AtomicU8 = AtomicU8::new(0);
/// How many of them go well before.
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);
/// How many there were.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// The layer below.
struct Below(*mut ffi::sqlite3_vfs);

// SAFETY: SQLite's own layer may be called from any thread; the pointer is read only and stays valid for ever.
unsafe impl Send for Below {}
// SAFETY: as above.
unsafe impl Sync for Below {}

static BELOW: OnceLock<Below> = OnceLock::new();

/// An open file: ours, and behind it in the same memory the one of the layer below.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
}

/// Puts the shim under every database that is opened from now on. Again is nothing.
///
/// # Panics
///
/// Where SQLite has no layer of its own.
pub fn install() {
    BELOW.get_or_init(|| {
        // SAFETY: asks for the default layer, which SQLite registers itself and never frees.
        let below = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        assert!(!below.is_null(), "SQLite knows how to use files");
        // SAFETY: a layer that is registered is a valid value, and all its fields may be copied.
        let mut shim = unsafe { *below };
        shim.zName = c"faulty".as_ptr();
        shim.szOsFile += c_int::try_from(size_of::<File>()).expect("a small number");
        shim.xOpen = Some(open);
        shim.xDelete = Some(delete);
        shim.pNext = ptr::null_mut();
        // It is registered for ever, so it lives for ever.
        let shim = Box::leak(Box::new(shim));
        // SAFETY: the value is complete, never moves and is never freed.
        let registered = unsafe { ffi::sqlite3_vfs_register(shim, 1) };
        assert_eq!(registered, ffi::SQLITE_OK);
        Below(below)
    });
}

/// From now on the operation after so many more fails, once.
pub fn set(operation: Operation, after: u64, fault: Fault) {
    SEEN.store(0, Ordering::SeqCst);
    FAULT.store(fault as u8, Ordering::SeqCst);
    OPERATION.store(operation as u8, Ordering::SeqCst);
    LEFT.store(i64::try_from(after).expect("fewer than that"), Ordering::SeqCst);
}

/// Nothing fails any more. How many operations of the kind there were since [`set`].
pub fn remove() -> u64 {
    OPERATION.store(0, Ordering::SeqCst);
    seen()
}

/// How many operations of the kind there were since [`set`].
pub fn seen() -> u64 {
    SEEN.load(Ordering::SeqCst)
}

/// The answer in place of an operation, where it is the one that fails.
fn fails(operation: Operation, error: c_int) -> Option<c_int> {
    if OPERATION.load(Ordering::SeqCst) != operation as u8 {
        return None;
    }
    SEEN.fetch_add(1, Ordering::SeqCst);
    if LEFT.fetch_sub(1, Ordering::SeqCst) != 0 {
        return None;
    }
    match FAULT.load(Ordering::SeqCst) {
        full if full == Fault::Full as u8 => Some(ffi::SQLITE_FULL),
        death if death == Fault::Death as u8 => std::process::abort(),
        _ => Some(error),
    }
}

fn below() -> *mut ffi::sqlite3_vfs {
    BELOW.get().expect("a file system is installed before it is called").0
}

/// The file of the layer below.
///
/// # Safety
///
/// `file` was opened by this layer, with room for both.
unsafe fn inner(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: SQLite reserves `szOsFile` bytes, ours first.
    unsafe { file.cast::<File>().add(1).cast() }
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are SQLite's, handed on as they are; the memory of the file has room for both.
    unsafe {
        let open = (*below()).xOpen.expect("every layer opens files");
        let inside = inner(file);
        let opened = open(below(), name, inside, flags, out);
        // No methods means that there is nothing to close.
        let usable = !(*inside).pMethods.is_null();
        (*file).pMethods = if usable { &METHODS } else { ptr::null() };
        opened
    }
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    if let Some(error) = fails(Operation::Remove, ffi::SQLITE_IOERR_DELETE) {
        return error;
    }
    // SAFETY: the arguments are SQLite's, handed on as they are.
    unsafe { (*below()).xDelete.expect("every layer removes files")(below(), name, sync) }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as below; half of what may be read may be read.
    let half = |part: c_int| unsafe {
        let inside = inner(file);
        (*(*inside).pMethods).xWrite.expect("every layer writes")(inside, bytes, part, at)
    };
    if OPERATION.load(Ordering::SeqCst) == Operation::Write as u8
        && LEFT.load(Ordering::SeqCst) == 0
    {
        // What goes wrong goes wrong in the middle.
        half(length / 2);
    }
    match fails(Operation::Write, ffi::SQLITE_IOERR_WRITE) {
        Some(error) => error,
        None => half(length),
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    if let Some(error) = fails(Operation::Truncate, ffi::SQLITE_IOERR_TRUNCATE) {
        return error;
    }
    // SAFETY: the file was opened by this layer.
    unsafe {
        let inside = inner(file);
        (*(*inside).pMethods).xTruncate.expect("every layer cuts files")(inside, size)
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    if let Some(error) = fails(Operation::Flush, ffi::SQLITE_IOERR_FSYNC) {
        return error;
    }
    // SAFETY: the file was opened by this layer.
    unsafe {
        let inside = inner(file);
        (*(*inside).pMethods).xSync.expect("every layer flushes")(inside, flags)
    }
}

/// Hands a call on as it is.
macro_rules! hand_on {
    ($( $name:ident => $method:ident ( $($argument:ident : $type:ty),* ) $(-> $answer:ty)?; )*) => {
        $(
            unsafe extern "C" fn $name(
                file: *mut ffi::sqlite3_file,
                $($argument: $type),*
            ) $(-> $answer)? {
                // SAFETY: the file was opened by this layer, and the rest is SQLite's own.
                unsafe {
                    let inside = inner(file);
                    let methods = &*(*inside).pMethods;
                    methods.$method.expect("the layer below has what its version promises")(
                        inside,
                        $($argument),*
                    )
                }
            }
        )*
    };
}

hand_on! {
    close => xClose() -> c_int;
    read => xRead(into: *mut c_void, length: c_int, at: ffi::sqlite3_int64) -> c_int;
    file_size => xFileSize(size: *mut ffi::sqlite3_int64) -> c_int;
    lock => xLock(level: c_int) -> c_int;
    unlock => xUnlock(level: c_int) -> c_int;
    check_reserved_lock => xCheckReservedLock(out: *mut c_int) -> c_int;
    file_control => xFileControl(operation: c_int, argument: *mut c_void) -> c_int;
    sector_size => xSectorSize() -> c_int;
    device_characteristics => xDeviceCharacteristics() -> c_int;
    shm_map => xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int;
    shm_lock => xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int;
    shm_barrier => xShmBarrier();
    shm_unmap => xShmUnmap(delete: c_int) -> c_int;
}

/// Version 2: with shared memory, which the log needs, and without mapped reads.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
