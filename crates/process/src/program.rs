//! The program to start, its input, and the treatment of its output.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Limits;

/// A program to start. Nothing is taken from our own environment or folder.
#[derive(Debug)]
pub struct Program {
    /// Absolute: see [`resolve_program`](crate::resolve_program). A bare name would be looked up anew at each start,
    /// and off the fast path.
    pub path: PathBuf,
    /// Without the program itself.
    pub args: Vec<OsString>,
    /// The whole environment. [`MARK_VARIABLE`](crate::MARK_VARIABLE) is added.
    pub env: Vec<(OsString, OsString)>,
    /// The working folder.
    pub cwd: PathBuf,
    /// The input.
    pub stdin: Stdin,
    /// The treatment of standard output.
    pub stdout: Capture,
    /// The treatment of standard error.
    pub stderr: Capture,
    /// Bounds of each of its processes. In the first moment of all, before they are set, it may see ours.
    pub limits: Limits,
}

impl Program {
    /// A program without arguments, environment and input, of whose output nothing is kept.
    pub fn new(path: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            stdin: Stdin::Null,
            stdout: Capture::nothing(),
            stderr: Capture::nothing(),
            limits: Limits::default(),
        }
    }
}

/// The input of a program. A program that does not read to the end is no error.
#[derive(Clone, Debug, Default)]
pub enum Stdin {
    /// No input.
    #[default]
    Null,
    /// The bytes of the input.
    Bytes(Arc<[u8]>),
    /// Part of a file, carried in blocks. A file that turns out shorter is an
    /// [`input_error`](crate::Finished::input_error).
    Range {
        /// The file.
        path: PathBuf,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// A whole file, handed over as it is: nothing passes through us.
    File(PathBuf),
    /// A pipe that stays open: see [`Child::take_stdin`](crate::Child::take_stdin).
    Pipe,
}

/// The treatment of a stream.
#[derive(derive_more::Debug)]
#[debug("Capture({keep:?})")]
pub struct Capture {
    /// The part that is kept.
    pub keep: Keep,
    /// Sees each block as it comes, before it is known to be kept. It is called in the task that waits for the child:
    /// it must not block.
    pub tap: Option<Tap>,
}

/// Sees blocks as they come.
pub type Tap = Box<dyn FnMut(&[u8]) + Send>;

/// The part of a stream that is kept. Nothing is ever left unread, or the child would stand still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: the stream leads nowhere.
    Nothing,
    /// All of it: up to `memory` bytes here, beyond that all in the file.
    Whole {
        /// In bytes.
        memory: usize,
        /// Made only when needed. It must not exist.
        file: PathBuf,
        /// Bytes beyond this are dropped; none keeps all.
        limit: Option<u64>,
    },
    /// The first bytes.
    First(usize),
    /// The last bytes.
    Last(usize),
}

impl Capture {
    /// Nothing is kept or read.
    pub fn nothing() -> Self {
        Keep::Nothing.into()
    }
}

impl From<Keep> for Capture {
    fn from(keep: Keep) -> Self {
        Self { keep, tap: None }
    }
}
