//! A system without sealed memory: a library is mapped from its file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The library itself.
#[derive(Debug)]
pub(in super::super) struct Image {
    file: File,
    path: PathBuf,
}

impl Image {
    /// The image of a library, which is its file as it is.
    pub(in super::super) fn new(library: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(library)?, path: library.to_owned() })
    }

    /// Does nothing: the bytes are there already.
    pub(in super::super) fn add(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Nothing can be promised here.
    pub(in super::super) fn seal(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the file, to be read.
    pub(in super::super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path at which it can be opened.
    pub(in super::super) fn path(&self) -> &Path {
        &self.path
    }
}
