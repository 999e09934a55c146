//! Context given with `--context NAME=FILE`: files become values of the store.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use offshoot_model::{ContentHash, ContextEntry, ValueKind, VariableRef};
use offshoot_store::{NAME_LIMIT, NewValue, Store, kind_of};

use crate::arguments::ContextArgument;
use crate::code::FailureCode;
use crate::failure::Failure;
use crate::invocation::Invocation;

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
            return Err(Failure::input(
                FailureCode::ContextTwice,
                format_args!("the context `{name}` is given twice"),
            )
            .hint("give each file a name of its own"));
        }
        if name.chars().count() > NAME_LIMIT {
            return Err(Failure::input(
                FailureCode::ContextName,
                format_args!("the name of a context has at most {NAME_LIMIT} characters"),
            )
            .hint("give the file a shorter name: --context NAME=FILE"));
        }
        let path = cx.absolute(path);
        let unreadable = |error| Failure::file(FailureCode::CannotRead, "read", &path, &error);
        let about = path.metadata().map_err(unreadable)?;
        // It is read more than once, and what comes out of a pipe comes once.
        if !about.is_file() && !about.is_dir() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            return Err(unreadable(error).hint("write its content into a file, and name that one"));
        }
        let kind = File::open(&path).and_then(kind_of).map_err(unreadable)?;
        files.push(ContextFile { name: name.clone(), path, kind });
    }
    Ok(files)
}

/// Returns the values as they would be stored, for a dry run.
pub(crate) fn read(files: &[ContextFile]) -> Result<Vec<ContextEntry>, Failure> {
    let entry = |ContextFile { name, path, kind }: &ContextFile| {
        let mut hasher = blake3::Hasher::new();
        File::open(path)
            .and_then(|file| hasher.update_reader(file).map(drop))
            .map_err(|error| Failure::file(FailureCode::CannotRead, "read", path, &error))?;
        let hash = ContentHash::from_bytes(*hasher.finalize().as_bytes());
        let value = VariableRef { hash, size: hasher.count(), kind: *kind };
        Ok(ContextEntry { name: name.as_str().into(), value })
    };
    files.iter().map(entry).collect()
}

/// Stores them all.
pub(crate) async fn store(
    files: Vec<ContextFile>,
    store: &dyn Store,
) -> Result<Vec<ContextEntry>, Failure> {
    let mut entries = Vec::with_capacity(files.len());
    for ContextFile { name, path, kind } in files {
        let value = store.put(NewValue::file(kind, path)).await?;
        entries.push(ContextEntry { name: name.into(), value });
    }
    Ok(entries)
}
