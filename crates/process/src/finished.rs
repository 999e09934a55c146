//! How a child ended, what it printed, and what had to be done about it.

use std::io;
use std::path::PathBuf;

use crate::Rung;

/// The one result of a child. By now its group is gone, or declared lost.
#[derive(Debug)]
pub struct Finished {
    /// How the program itself ended.
    pub exit: Exit,
    /// The furthest rung that was used; none when nobody asked, or the program was faster.
    pub stop: Option<Rung>,
    /// What it printed.
    pub stdout: Output,
    /// What it said beside.
    pub stderr: Output,
    /// Why the input could not be read to its end. A child that stops reading is no error.
    pub input_error: Option<io::Error>,
    /// Processes that had outlived the program and were ended with it: of its group, or re-parented to us.
    pub stragglers: u32,
    /// Processes that nothing named as this program's or another's, and that were ended because this program was the last
    /// to live: daemons that left their session and erased their environment.
    pub strays: Vec<Stray>,
    /// Processes that could not be ended within [`Options::end_limit`](crate::Options).
    pub lost: u32,
}

/// A process that came to us when its parents had ended, and of which nothing tells whose it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Its number. It is gone.
    pub pid: u32,
    /// Its name, as the system shows it: 15 bytes at most, and chosen by itself.
    pub name: String,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It ended by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It did not end even when killed, or somebody else took its status. What is known is nothing.
    Lost,
}

/// What came out of one stream.
#[derive(Debug, Default)]
pub struct Output {
    /// What was kept.
    pub kept: Kept,
    /// Bytes that came, kept or not.
    pub total: u64,
    /// Whether some that came are not in [`kept`](Output::kept).
    pub truncated: bool,
    /// Whether a process that is not ours to end still had the stream open, so that more may have come later.
    pub held_open: bool,
    /// Why the file could not be written. What came afterwards was read and dropped, so that the child could go on.
    pub error: Option<io::Error>,
}

/// Where an output is.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// Here.
    Memory(Vec<u8>),
    /// All of it is in this file, which now belongs to the caller.
    File(PathBuf),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}
