//! Calls about the same text, counted: a call that is repeated may end otherwise.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A counter of calls by their text.
#[derive(Debug)]
pub enum Asks {
    /// Between processes: a file for each call.
    Folder(PathBuf),
    /// Within one process.
    Memory(Mutex<HashMap<blake3::Hash, u32>>),
}

impl Asks {
    /// Counts a call, and returns the number of those before it.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written.
    pub fn count(&self, text: &str) -> io::Result<u32> {
        let hash = blake3::hash(text.as_bytes());
        match self {
            Self::Folder(folder) => {
                let mut ask = 0;
                loop {
                    let path = folder.join(format!("{}-{ask}", hash.to_hex()));
                    match OpenOptions::new().write(true).create_new(true).open(path) {
                        Ok(_) => return Ok(ask),
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => ask += 1,
                        Err(error) => return Err(error),
                    }
                }
            }
            Self::Memory(counts) => {
                let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                let count = counts.entry(hash).or_default();
                *count += 1;
                Ok(*count - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_their_text() {
        let folder = tempfile::tempdir().expect("a folder");
        for asks in [Asks::Folder(folder.path().into()), Asks::Memory(Mutex::default())] {
            let count = |text| asks.count(text).expect("counted");
            assert_eq!([count("a"), count("b"), count("a"), count("a")], [0, 0, 1, 2], "{asks:?}");
        }
    }
}
