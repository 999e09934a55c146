//! The words of agents, kept beside the record.
//!
//! ```text
//!  AttemptOutput ── a slot is full, or ─▶ thread ──▶ output/{root}/{run}-{attempt}   a file of slots
//!       │           for two seconds
//!       │        └─ ended within a slot ▶        ──▶ output/{root}/small-{…}         many attempts in one file
//!       └ in memory: less than a slot                       ▲
//!                                             OutputReader ─┘   any process, while they are written
//! ```
//!
//! An attempt that says no more than a slot holds, and ends within a second or two after that, costs no file of its own. One that
//! says more has a file of so many slots as its bound allows: the first half of them keeps how it began, the others are written in
//! turn and keep how it ended. Each slot says how much was said before it, so that a reader names what is missing between two of them.
//!
//! Promises: nothing waits for the disk, and where that does not keep up the rest is missing and named. What was said before
//! [`OutputKeeper::settle`] is in the files. Nothing here is part of the record: it is bounded, not flushed, and after `kill -9`
//! of the supervisor what its agents said in the last two seconds may be missing, which a reader names too.

mod frame;
mod keeper;
mod reader;
mod remove;
mod slot;
mod writer;

use offshoot_model::{RunId, Stream, Timestamp};

pub use keeper::{AttemptOutput, OutputKeeper};
pub use reader::OutputReader;
pub(crate) use remove::remove_said;

/// The folder of all that is kept here, below the data folder.
pub(crate) const OUTPUT: &str = "output";

/// The beginning of the names of files that hold what many attempts said.
const SMALL: &str = "small-";

/// The bounds of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBounds {
    /// The number of bytes that are kept of each attempt of a run. 0 keeps nothing.
    pub run: u64,
    /// The number of bytes that are kept of all runs of a tree.
    pub tree: u64,
}

/// An attempt of a run. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{_0:024x}")]
pub struct AttemptId(u128);

/// One thing that an attempt said, as a reader finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The run.
    pub run: RunId,
    /// The attempt of the run.
    pub attempt: AttemptId,
    /// The part.
    pub what: SaidPart,
}

/// A part of what an attempt said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaidPart {
    /// Bytes, as they came.
    Bytes {
        /// The moment at which they came.
        at: Timestamp,
        /// The stream in which they came.
        stream: Stream,
        /// The bytes, without secrets.
        bytes: Vec<u8>,
    },
    /// So many bytes of both streams were not kept.
    Gap(u64),
    /// The attempt said nothing more.
    End,
}

impl AttemptId {
    fn new(began: Timestamp, count: u32) -> Self {
        Self(u128::from(began.as_micros()) << 32 | u128::from(count))
    }

    fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }

    /// The moment at which it began.
    pub fn began(self) -> Timestamp {
        Timestamp::from_micros((self.0 >> 32) as u64)
    }
}

#[cfg(test)]
mod tests;
