//! The file of a library, before anything of it runs: that it is there, a library, and for this machine.
//!
//! It is read once. What is hashed, checked and opened are the bytes of that one reading.

mod elf;
mod image;

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use image::Image;
use offshoot_model::ContentHash;

use crate::error::PluginError;
use crate::guard;

/// The number of bytes that are read at once: small enough to be hashed and written before it leaves the processor's cache.
const BUFFER: usize = 64 * 1024;

/// A file that looks as it should and that no other user can change.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) path: PathBuf,
    pub(crate) digest: ContentHash,
    image: Arc<Image>,
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
        let (image, digest) = read(guard::open(&path)?, &path)?;
        let checked = elf::check(image.file()).map_err(|error| PluginError::read(&path, error))?;
        checked.map_err(|fault| fault.of(&path))?;
        Ok(Self { path, digest, image: Arc::new(image) })
    }

    /// Writes the bytes that were checked.
    pub(crate) fn write_to(&self, to: &mut impl Write) -> io::Result<u64> {
        // Opened anew, to be read from its beginning however often it is written.
        io::copy(&mut File::open(self.image.path())?, to)
    }

    /// The path from which it is opened, which has the bytes that were checked whatever becomes of the file.
    ///
    /// They stay where they are for the rest of the process: the loader knows libraries by their paths, and would take
    /// another plugin at the same one for this one.
    pub(crate) fn keep(&self) -> &Path {
        std::mem::forget(Arc::clone(&self.image));
        self.image.path()
    }
}

/// Copies and hashes a file in one pass.
fn read(mut file: File, path: &Path) -> Result<(Image, ContentHash), PluginError> {
    let unread = |error| PluginError::read(path, error);
    let no_image = |error: io::Error| PluginError::NotOpened {
        path: path.to_owned(),
        why: format!("it cannot be copied into memory: {error}"),
    };
    let mut image = Image::new(path).map_err(no_image)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                hasher.update(&buffer[..length]);
                image.add(&buffer[..length]).map_err(no_image)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unread(error)),
        }
    }
    image.seal().map_err(no_image)?;
    Ok((image, ContentHash::from_bytes(*hasher.finalize().as_bytes())))
}
