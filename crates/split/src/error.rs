//! Errors of inputs.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The reason why an input cannot be cut.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// No such file.
    #[error("no such file: {}", path.display())]
    NotFound {
        /// As it was asked for.
        path: PathBuf,
    },
    /// A directory where a file is needed.
    #[error("{} is a directory", path.display())]
    Directory {
        /// As it was asked for.
        path: PathBuf,
    },
    /// A file that the process may not read.
    #[error("no permission to read {}", path.display())]
    Permission {
        /// As it was asked for.
        path: PathBuf,
    },
    /// A pipe, a device or a socket: nothing that has ranges.
    #[error("{} is not a regular file", path.display())]
    NotRegular {
        /// As it was asked for.
        path: PathBuf,
    },
    /// Another size, another modification time, or gone since it was first looked at.
    #[error("{} changed while it was being cut", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file, or a folder above it, is a symbolic link by now: what it leads to is not what was cut.
    #[error(
        "{} is not read: {} became a symbolic link after the input was cut",
        path.display(),
        link.display()
    )]
    Link {
        /// The file.
        path: PathBuf,
        /// The first link on the way to it.
        link: PathBuf,
    },
    /// A file with fewer bytes than when it was cut.
    #[error("{} is shorter than it was when it was cut", path.display())]
    Shorter {
        /// The file.
        path: PathBuf,
    },
    /// A line of `jsonl` that is no JSON.
    #[error("{}:{line}:{column}: not JSON: {problem}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Counted from 1, blank ones included.
        line: u64,
        /// Byte within the line, counted from 1.
        column: usize,
        /// The problem that a JSON parser finds.
        problem: String,
    },
    /// More pieces than can be numbered (2³²).
    #[error("more than {most} pieces", most = u32::MAX)]
    TooManyPieces,
    /// A piece with a header could not be put together in a file of its own.
    #[error("cannot put a piece with its header into a file in {}", folder.display())]
    Spool {
        /// The folder of that file.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Anything else the system said.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl SplitError {
    /// Returns advice on what to do about the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Directory { .. } => Some("name the files in it: a directory is not searched"),
            Self::NotRegular { .. } => Some("pass it as standard input, with -"),
            Self::Link { .. } => {
                Some("put it back as it was, or run the command again as a new tree")
            }
            Self::Shorter { .. } => Some("run it again over a copy that nothing writes to"),
            Self::Changed { .. } => Some("cut a copy of a file that others still write to"),
            Self::NotJson { .. } => {
                Some("jsonl takes one JSON value a line; lines:N takes any line")
            }
            Self::TooManyPieces => Some("put more into each piece"),
            Self::NotFound { .. } => {
                Some("check the path, letter by letter: `ls` shows what is in a folder")
            }
            Self::Permission { .. } => {
                Some("`ls -l FILE` shows who may read it; `chmod` lets others")
            }
            Self::Spool { .. } => {
                Some("free space there, or keep the data elsewhere with --data-dir")
            }
            Self::Read { .. } => Some("look at the disk that it is on, or run it over a copy"),
        }
    }

    /// Returns true if the system had too few descriptors, which says nothing about the file.
    pub fn is_pressure(&self) -> bool {
        // Of the process, and of the system.
        const TOO_MANY_OPEN: [Errno; 2] = [Errno::MFILE, Errno::NFILE];
        let (Self::Read { source, .. } | Self::Spool { source, .. }) = self else { return false };
        Errno::from_io_error(source).is_some_and(|error| TOO_MANY_OPEN.contains(&error))
    }

    pub(crate) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            // `a-file/below` is no more there than a name that was never written.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound { path },
            io::ErrorKind::PermissionDenied => Self::Permission { path },
            io::ErrorKind::IsADirectory => Self::Directory { path },
            // The answer of the store to what is no file.
            io::ErrorKind::InvalidInput => Self::NotRegular { path },
            _ => Self::Read { path, source },
        }
    }
}
