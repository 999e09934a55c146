//! Context given with `--context NAME=FILE`: files become values of the store.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use offshoot_model::{ContextEntry, ValueKind};
use offshoot_store::{NAME_LIMIT, NewValue, Store};

use crate::arguments::ContextArgument;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::failed;

/// A file that is there and can be read.
#[derive(Debug)]
pub(crate) struct ContextFile {
    name: String,
    path: PathBuf,
    kind: ValueKind,
}

/// Looks at all files before anything is started.
pub(crate) fn look(
    arguments: &[ContextArgument],
    cx: &Invocation,
) -> Result<Vec<ContextFile>, Failure> {
    let mut names: HashSet<&str> = HashSet::new();
    let mut files = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let ContextArgument { name, path } = argument;
        if !names.insert(name.as_str()) {
            return Err(Failure::input(format_args!("the context `{name}` is given twice")));
        }
        if name.chars().count() > NAME_LIMIT {
            return Err(Failure::input(format_args!(
                "the name of a context has at most {NAME_LIMIT} characters"
            )));
        }
        let path = cx.absolute(path);
        let kind = kind(&path).map_err(|error| Failure::file("read", &path, &error))?;
        files.push(ContextFile { name: name.clone(), path, kind });
    }
    Ok(files)
}

/// Stores them all.
pub(crate) async fn store(
    files: Vec<ContextFile>,
    store: &dyn Store,
) -> Result<Vec<ContextEntry>, Failure> {
    let mut entries = Vec::with_capacity(files.len());
    for ContextFile { name, path, kind } in files {
        let value = store.put(NewValue::file(kind, path)).await.map_err(|error| failed(&error))?;
        entries.push(ContextEntry { name: name.into(), value });
    }
    Ok(entries)
}

/// Text where all of it is UTF-8, else bytes. Reads the file once, a block at a time.
pub(crate) fn kind(path: &Path) -> io::Result<ValueKind> {
    kind_of(File::open(path)?)
}

/// Returns the same for a file that is open, read from its place on.
pub(crate) fn kind_of(mut file: impl Read) -> io::Result<ValueKind> {
    const BLOCK: usize = 64 * 1024;
    /// The longest beginning of a character that a block can end with.
    const CARRY: usize = 3;
    let mut block = vec![0; CARRY + BLOCK];
    let mut held = 0;
    loop {
        let read = file.read(&mut block[held..])?;
        let end = held + read;
        match std::str::from_utf8(&block[..end]) {
            Ok(_) if read == 0 => return Ok(ValueKind::Text),
            Ok(_) => held = 0,
            Err(error) if error.error_len().is_none() && read > 0 => {
                block.copy_within(error.valid_up_to()..end, 0);
                held = end - error.valid_up_to();
            }
            Err(_) => return Ok(ValueKind::Bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf8_is_text() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("file");
        // Three bytes to a character, so that blocks end within one.
        let long = "€".repeat(100_000);
        for (content, expected) in [
            (&b""[..], ValueKind::Text),
            (long.as_bytes(), ValueKind::Text),
            (&long.as_bytes()[..299_999], ValueKind::Bytes),
            (b"caf\xe9", ValueKind::Bytes),
            (b"\xff\xfe\0", ValueKind::Bytes),
        ] {
            std::fs::write(&path, content).expect("there is room");
            assert_eq!(kind(&path).expect("it is there"), expected, "{} bytes", content.len());
        }
        assert!(kind(folder.path()).is_err());
    }
}
