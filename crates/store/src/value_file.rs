//! A file into which whole values are copied: the kernel copies them, and another thread verifies the copies.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use offshoot_model::VariableRef;
use rustix::fs::{OFlags, fcntl_getfl};

use crate::ValueReader;
use crate::value_reader::CopyVerifier;

/// From this size on a value is copied by the kernel. A smaller one is gathered with its neighbours.
const WHOLE: u64 = 128 << 10;

/// A file that is written with values in it.
#[derive(Debug)]
pub struct ValueFile(File);

/// The writer of such a file. Values may be put between what is written.
#[derive(Debug)]
pub struct WholeCopies<'a> {
    file: &'a File,
    /// The place behind the last byte that was written here: another program that has the same open file moves the file's own.
    end: Cell<u64>,
    /// The copies for the thread that verifies. Without it values are not copied, because the copies could not be read again.
    made: Option<Sender<WholeCopy>>,
}

/// A copy of a value, to be verified.
#[derive(Debug)]
struct WholeCopy {
    value: VariableRef,
    /// The place of its first byte.
    at: u64,
}

impl ValueFile {
    /// Writes into this file, behind what was written there before.
    pub fn new(file: File) -> Self {
        Self(file)
    }

    /// Calls `write`. All copies are verified when this returns. No value is copied where other bytes stand behind the place of
    /// writing or may be appended to the file; each is then verified before it is written.
    ///
    /// # Errors
    ///
    /// Fails as `write` does. A copy that is not its value is an error ([`InvalidData`](io::ErrorKind::InvalidData)), and is cut off
    /// the file again, with everything that was written behind it here. Nothing is cut off where another program has written
    /// into the same open file meanwhile.
    pub fn fill(&self, write: impl FnOnce(&WholeCopies<'_>) -> io::Result<()>) -> io::Result<()> {
        let file = &self.0;
        let plainly = WholeCopies { file, end: Cell::new(0), made: None };
        let Some((verifier, end)) = reopened(file) else { return write(&plainly) };
        let (made, copies) = channel();
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("offshoot-verify".to_owned());
            let Ok(verifying) = thread.spawn_scoped(scope, || verify(verifier, copies)) else {
                // Without a thread each value is verified before it is written.
                return write(&plainly);
            };
            let copies = WholeCopies { file, end: Cell::new(end), made: Some(made) };
            let written = write(&copies);
            let end = copies.end.get();
            // The thread ends with the last copy.
            drop(copies);
            let wrong =
                verifying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let Some(WholeCopy { value, at }) = wrong else { return written };
            let mut file = file;
            if file.metadata()?.len() == end && file.stream_position()? == end {
                file.set_len(at)?;
                file.seek(SeekFrom::Start(at))?;
            }
            Err(changed(format!("value {} has been changed", value.hash)))
        })
    }
}

impl WholeCopies<'_> {
    /// True if a value of this size is copied; else it has to be read and written.
    pub fn takes(&self, value: &VariableRef) -> bool {
        let mut file = self.file;
        self.made.is_some()
            && value.size >= WHOLE
            && file.stream_position().is_ok_and(|at| at == self.end.get())
    }

    /// Copies a value behind what was written. Its bytes are verified after that.
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be copied, or has not its size.
    pub fn put(&self, value: ValueReader) -> io::Result<()> {
        let reference = *value.value();
        let mut file = self.file;
        let copied = io::copy(&mut value.into_file().take(reference.size), &mut file)?;
        if copied != reference.size {
            let (hash, size) = (reference.hash, reference.size);
            return Err(changed(format!("value {hash} has {copied} bytes, {size} were recorded")));
        }
        let at = self.end.get();
        if file.stream_position()? != at + copied {
            let text = "another program has written into the same open file meanwhile";
            return Err(changed(text.to_owned()));
        }
        self.end.set(at + copied);
        if let Some(made) = &self.made {
            // A thread that has found a wrong copy takes no further one: its finding is the error.
            let _ = made.send(WholeCopy { value: reference, at });
        }
        Ok(())
    }
}

impl Write for &WholeCopies<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&mut &*self.file).write(bytes)?;
        self.end.set(self.end.get() + written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&mut &*self.file).flush()
    }
}

/// Opens a regular file once more, for reading; none where it is no such file, or must not be read. Nor where bytes stand behind
/// the place of writing, or other programs may append some: these would be cut off with a wrong copy.
///
/// The second value is the place of writing.
fn reopened(mut file: &File) -> Option<(CopyVerifier, u64)> {
    let length = file.metadata().ok().filter(|about| about.is_file())?.len();
    let appends = fcntl_getfl(file).ok()?.contains(OFlags::APPEND);
    if appends || file.stream_position().ok()? != length {
        return None;
    }
    // By its descriptor: another file may have the name by now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::open(path).ok().map(|file| (CopyVerifier::new(file), length))
}

/// Returns the first copy that is not its value, if there is one.
fn verify(
    mut verifier: CopyVerifier,
    copies: Receiver<WholeCopy>,
) -> io::Result<Option<WholeCopy>> {
    for copy in copies {
        if !verifier.holds(copy.at, &copy.value)? {
            return Ok(Some(copy));
        }
    }
    Ok(None)
}

fn changed(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use offshoot_model::ValueKind;

    use super::*;
    use crate::{DataFolder, NewValue, SqliteStore, Store};

    /// A store with values of these sizes, and the files of the values.
    fn setup(folder: &Path, sizes: &[u64]) -> (SqliteStore, Vec<VariableRef>, Vec<PathBuf>) {
        let store = SqliteStore::open(&DataFolder::open(folder).unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let put = |(salt, &size): (u64, &u64)| {
            let byte = |at: u64| ((at ^ salt).wrapping_mul(0x9e37_79b9) >> 13) as u8;
            let bytes: Vec<u8> = (0..size).map(byte).collect();
            runtime.block_on(store.put(NewValue::bytes(ValueKind::Bytes, bytes))).unwrap()
        };
        let values: Vec<VariableRef> = (0..).zip(sizes).map(put).collect();
        let paths = values.iter().map(|value| store.path(value).unwrap()).collect();
        (store, values, paths)
    }

    /// Writes the values with a mark before each.
    fn fill(file: File, store: &SqliteStore, values: &[VariableRef]) -> io::Result<()> {
        ValueFile::new(file).fill(|mut copies| {
            for value in values {
                copies.write_all(b"mark\n")?;
                let mut reader = store.open(value).unwrap();
                match copies.takes(value) {
                    true => copies.put(reader)?,
                    false => drop(io::copy(&mut reader, &mut copies)?),
                }
            }
            Ok(())
        })
    }

    #[test]
    fn every_byte_is_there_behind_what_was_there_before() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [0, 7, WHOLE - 1, WHOLE, 3, 5 * WHOLE + 9, 1];
        let (store, values, paths) = setup(&folder.path().join("data"), &sizes);
        let marked = |path| [b"mark\n", &*fs::read(path).unwrap()].concat();
        let expected: Vec<u8> = paths.iter().flat_map(marked).collect();
        let path = folder.path().join("out");
        for append in [false, true] {
            fs::write(&path, "").unwrap();
            let mut file = File::options().write(true).append(append).open(&path).unwrap();
            file.write_all(b"before\n").unwrap();
            fill(file.try_clone().unwrap(), &store, &values).unwrap();
            file.write_all(b"after").unwrap();
            let found = fs::read(&path).unwrap();
            assert!(found == [b"before\n", &*expected, b"after"].concat(), "append: {append}");
        }
        let (mut reader, writer) = io::pipe().unwrap();
        let reading = thread::spawn(move || {
            let mut found = Vec::new();
            reader.read_to_end(&mut found).map(|_| found)
        });
        fill(std::os::fd::OwnedFd::from(writer).into(), &store, &values).unwrap();
        assert!(reading.join().unwrap().unwrap() == expected, "a pipe");
    }

    #[test]
    fn what_another_program_writes_into_the_same_open_file_is_never_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let (store, values, paths) = setup(&folder.path().join("data"), &[WHOLE, WHOLE]);
        let mut bytes = fs::read(&paths[1]).unwrap();
        bytes[9] ^= 1;
        fs::remove_file(&paths[1]).unwrap();
        fs::write(&paths[1], bytes).unwrap();
        let open = |value: usize| store.open(&values[value]).unwrap();
        let path = folder.path().join("out");
        // Between two copies it is seen before the second, which is then verified before it is written.
        let mut file = File::create(&path).unwrap();
        ValueFile::new(file.try_clone().unwrap())
            .fill(|copies| {
                copies.put(open(0))?;
                file.write_all(b"others")?;
                assert!(!copies.takes(&values[0]), "the place of writing is no longer its own");
                Ok(())
            })
            .unwrap();
        // Behind a wrong copy.
        let mut file = File::create(&path).unwrap();
        let error = ValueFile::new(file.try_clone().unwrap())
            .fill(|copies| {
                copies.put(open(1))?;
                file.write_all(b"others")
            })
            .unwrap_err();
        assert!(error.to_string().contains("has been changed"), "{error}");
        assert!(fs::read(&path).unwrap().ends_with(b"others"));
        // Behind a wrong copy, by a program that has opened the file for itself.
        let error = ValueFile::new(File::create(&path).unwrap())
            .fill(|copies| {
                copies.put(open(1))?;
                File::options().append(true).open(&path)?.write_all(b"others")
            })
            .unwrap_err();
        assert!(error.to_string().contains("has been changed"), "{error}");
        assert!(fs::read(&path).unwrap().ends_with(b"others"));
        // What is written behind the error stands behind what is left.
        let mut file = File::create(&path).unwrap();
        file.write_all(b"before").unwrap();
        let shared = ValueFile::new(file.try_clone().unwrap());
        shared.fill(|copies| copies.put(open(1))).unwrap_err();
        file.write_all(b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"beforeafter");
    }

    #[test]
    fn a_copy_that_is_not_its_value_is_cut_off_again() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [WHOLE, 3 * WHOLE, WHOLE];
        for (at, is_short) in [(0, false), (1, false), (2, false), (1, true)] {
            let data = folder.path().join(format!("{at}{is_short}"));
            let (store, values, paths) = setup(&data, &sizes);
            let mut bytes = fs::read(&paths[at]).unwrap();
            match is_short {
                true => bytes.truncate(9),
                false => bytes[100_000] ^= 1,
            }
            fs::remove_file(&paths[at]).unwrap();
            fs::write(&paths[at], bytes).unwrap();
            let path = folder.path().join("out");
            let error = fill(File::create(&path).unwrap(), &store, &values).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
            let before: u64 = sizes[..at].iter().map(|size| size + 5).sum();
            let rest = if is_short { 9 } else { 0 };
            assert_eq!(fs::metadata(&path).unwrap().len(), before + 5 + rest, "{at} {error}");
        }
    }

    #[test]
    fn bytes_of_others_in_the_file_are_never_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let (store, values, paths) = setup(&folder.path().join("data"), &[2 * WHOLE]);
        let mut bytes = fs::read(&paths[0]).unwrap();
        bytes[100_000] ^= 1;
        fs::remove_file(&paths[0]).unwrap();
        fs::write(&paths[0], bytes).unwrap();
        let path = folder.path().join("out");
        let write = |append, others: &dyn Fn()| {
            fs::write(&path, "before, and behind").unwrap();
            let mut file = File::options().write(true).append(append).open(&path).unwrap();
            file.write_all(b"before").unwrap();
            let filled = ValueFile::new(file).fill(|mut copies| {
                copies.write_all(b"mark")?;
                others();
                let mut reader = store.open(&values[0]).unwrap();
                match copies.takes(&values[0]) {
                    true => copies.put(reader),
                    false => io::copy(&mut reader, &mut copies).map(drop),
                }
            });
            assert_eq!(filled.unwrap_err().kind(), io::ErrorKind::InvalidData);
            fs::read_to_string(&path).unwrap()
        };
        // In the middle of a file.
        assert_eq!(write(false, &|| ()), "beforemarkd behind");
        // In a file to which another program appends as well.
        let append = || {
            let other = File::options().append(true).open(&path);
            other.unwrap().write_all(b"another").unwrap();
        };
        assert_eq!(write(true, &append), "before, and behindbeforemarkanother");
    }
}
