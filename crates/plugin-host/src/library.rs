//! The file of a library, before anything of it runs: that it is there, a library, and for this machine.

mod elf;
mod image;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;

use crate::error::PluginError;
use crate::guard;

/// A file that looks as it should and that nobody else can change.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) path: PathBuf,
    pub(crate) digest: ContentHash,
}

impl Library {
    /// Reads and checks a file.
    pub(crate) fn check(path: &Path) -> Result<Self, PluginError> {
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(PluginError::Missing { path: path.to_owned() });
            }
            Err(error) => return Err(PluginError::read(path, error)),
        };
        if path.is_dir() {
            return Err(PluginError::NotALibrary { path, what: "a folder".into() });
        }
        guard::check(&path)?;
        let bytes = fs::read(&path).map_err(|error| PluginError::read(&path, error))?;
        elf::check(&bytes).map_err(|fault| fault.of(&path))?;
        Ok(Self { digest: ContentHash::of(&bytes), path })
    }

    /// The path from which it is opened, which has the bytes that were checked whatever becomes of the file.
    pub(crate) fn keep(&self) -> Result<PathBuf, PluginError> {
        let path = &self.path;
        let bytes = fs::read(path).map_err(|error| PluginError::read(path, error))?;
        if ContentHash::of(&bytes) != self.digest {
            return Err(PluginError::Swapped { path: path.clone() });
        }
        image::keep(path, &bytes).map_err(|error| PluginError::NotOpened {
            path: path.clone(),
            why: format!("it cannot be copied into memory: {error}"),
        })
    }
}
