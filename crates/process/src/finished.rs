//! The end of a child: its exit, its output, and how it had to be stopped.

use std::io;
use std::path::PathBuf;

use crate::{Reached, Rung};

/// The one result of a child. By now its group is gone, or declared lost.
#[derive(Debug)]
pub struct Finished {
    /// The exit of the program itself.
    pub exit: Exit,
    /// The bound of the kernel that ended it; none where none is known to have.
    pub reached: Option<Reached>,
    /// The furthest rung that was used; none without a request, or where the program was faster.
    pub stop: Option<Rung>,
    /// The standard output.
    pub stdout: Output,
    /// The standard error.
    pub stderr: Output,
    /// The error that ended the reading of the input. A child that stops reading is no error.
    pub input_error: Option<io::Error>,
    /// Processes that had outlived the program and were ended with it: of its group, or re-parented to us.
    pub stragglers: u32,
    /// Processes that nothing named as this program's or another's, and that were ended because this program was the last
    /// to live: daemons that left their session and erased their environment.
    pub strays: Vec<Stray>,
    /// Processes that could not be ended within [`Options::end_limit`](crate::Options).
    pub lost: u32,
}

impl Finished {
    /// A child of which only the exit is known: it wrote nothing and left nothing.
    pub fn of(exit: Exit) -> Self {
        Self {
            exit,
            reached: None,
            stop: None,
            stdout: Output::default(),
            stderr: Output::default(),
            input_error: None,
            stragglers: 0,
            strays: Vec::new(),
            lost: 0,
        }
    }
}

/// A process that came to us when its parents had ended, and of which nothing tells whose it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The process id. The process is gone.
    pub pid: u32,
    /// The name of the process, as the system shows it: 15 bytes at most, and chosen by itself.
    pub name: String,
}

/// The exit of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The program ended by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The program did not end even when killed, or another part of this process took its status. Nothing is known.
    Lost,
}

/// The output of one stream.
#[derive(Debug, Default)]
pub struct Output {
    /// The bytes that were kept.
    pub kept: Kept,
    /// Bytes that came, kept or not.
    pub total: u64,
    /// True if some bytes that came are not in [`kept`](Output::kept).
    pub truncated: bool,
    /// True if a process that is not ours to end still had the stream open, so that more may have come later.
    pub held_open: bool,
    /// The error for which the file could not be written. Later output was read and dropped, so that the child could continue.
    pub error: Option<io::Error>,
}

/// The place of an output.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// In memory.
    Memory(Vec<u8>),
    /// All of it is in this file, which now belongs to the caller.
    File(PathBuf),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}
