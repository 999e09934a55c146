//! The child's sides of its streams: pipes of which the child has a side that blocks, as programs expect, and we have
//! one that does not; or the file that holds nothing.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, pipe_with};

/// The file from which nothing comes and in which everything vanishes.
pub(crate) fn to_nowhere() -> io::Result<OwnedFd> {
    Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// A pipe the child reads: its side, then ours. Neither is inherited by chance.
pub(crate) fn to_child() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    ioctl_fionbio(&write, true)?;
    Ok((read, write))
}

/// A pipe the child writes: its side, then ours. Neither is inherited by chance.
pub(crate) fn from_child() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    ioctl_fionbio(&read, true)?;
    Ok((write, read))
}
