//! A file that a caller has opened itself. It may be sandboxed, and have other files than this process, or other rights: what
//! it has open is what it may read, and nothing else is opened here on its word.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use offshoot_door::CallError;
use offshoot_model::{ValueKind, json_error, plain};
use offshoot_store::{DataFolder, NewValue, kind_of};
use rustix::fs::{FsWord, OFlags, PROC_SUPER_MAGIC, fcntl_getfl, fstatfs};
use serde::de::IgnoredAny;

use super::searches::Gone;
use super::{failed, invalid};

/// The bytes that are copied before each check that the caller still waits.
const BLOCK: usize = 256 * 1024;

/// File systems whose files are made when they are read, some of them with the rights of the reader: proc and sysfs.
const MADE_UP: [FsWord; 2] = [PROC_SUPER_MAGIC, 0x6265_6572];

/// A plain file that is open for reading.
pub(super) struct GivenFile {
    file: File,
    /// The caller's name for it.
    title: String,
}

impl GivenFile {
    /// Looks at what came with a request.
    pub(super) fn new(title: String, file: Option<OwnedFd>) -> Result<Self, CallError> {
        let file = file.ok_or_else(|| invalid("value", "no descriptor came with the request"))?;
        let wrong = |what: &str| invalid("value", format!("`{title}` is {what}"));
        let unread = |error: io::Error| wrong(&format!("unreadable: {}", plain(&error)));
        let flags = fcntl_getfl(&file).map_err(|error| unread(error.into()))?;
        if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE == OFlags::WRONLY {
            return Err(wrong("not open for reading"));
        }
        let kind = fstatfs(&file).map_err(|error| unread(error.into()))?.f_type;
        let file = File::from(file);
        // Reading a pipe, for example, might never end.
        if !file.metadata().map_err(unread)?.is_file() {
            return Err(wrong("not a regular file"));
        }
        if MADE_UP.contains(&kind) {
            return Err(wrong("not a file on a disk"));
        }
        Ok(Self { file, title })
    }

    /// Copies it, and then looks at the copy: the caller may go on writing into its file.
    pub(super) fn copy(
        self,
        folder: &DataFolder,
        kind: Option<ValueKind>,
        gone: &Gone,
    ) -> Result<NewValue, CallError> {
        let (mut into, path) = folder.spool_file().map_err(failed)?;
        let copied = self.copy_into(&mut into, gone).map_err(|error| {
            CallError::failed(format!("cannot copy `{}`: {}", self.title, plain(&error)))
        });
        let kind = copied.and_then(|()| self.kind(&mut into, kind));
        match kind {
            Ok(kind) => Ok(NewValue::adopt(kind, path)),
            Err(error) => {
                // A file that is left is removed with the folder.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// From its beginning, wherever the caller has read it to.
    fn copy_into(&self, into: &mut File, gone: &Gone) -> io::Result<()> {
        let mut block = vec![0; BLOCK];
        let mut place = 0;
        loop {
            gone.check()?;
            let read = self.file.read_at(&mut block, place)?;
            if read == 0 {
                return Ok(());
            }
            into.write_all(&block[..read])?;
            place += read as u64;
        }
    }

    /// Returns the kind of the copy. Fails if the copy is not of the kind that was asked for.
    fn kind(&self, copy: &mut File, kind: Option<ValueKind>) -> Result<ValueKind, CallError> {
        let failed = |error: io::Error| CallError::failed(format!("cannot read a copy: {error}"));
        let wrong = |what: &str| invalid("value", format!("`{}` is not {what}", self.title));
        if kind == Some(ValueKind::Bytes) {
            return Ok(ValueKind::Bytes);
        }
        copy.rewind().map_err(failed)?;
        let found = kind_of(&*copy).map_err(failed)?;
        let Some(kind) = kind else { return Ok(found) };
        if found == ValueKind::Bytes {
            return Err(wrong("UTF-8"));
        }
        if kind == ValueKind::Json {
            copy.rewind().map_err(failed)?;
            let parsed = serde_json::from_reader::<_, IgnoredAny>(io::BufReader::new(&*copy));
            parsed.map_err(|error| wrong(&format!("JSON: {}", json_error("", &error))))?;
        }
        Ok(kind)
    }
}
