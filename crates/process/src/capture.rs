//! The output of a child: into memory up to a bound, then into a file; or only its beginning, or its end.
//!
//! A reader never stops reading while the child lives, whatever becomes of the bytes: a child that writes into a full
//! pipe stands still.

mod spill;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, ioctl_fionread, read};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use crate::program::Tap;
use crate::watch::watch;
use crate::{Capture, Keep, Kept, Output};
use spill::Spill;

/// The first read: most answers are shorter.
const FIRST_BYTES: usize = 4 * 1024;

/// The largest read, and how much is gathered before it goes to the file.
const BLOCK_BYTES: usize = 256 * 1024;

/// The time for which a stream may still be open when all processes that could write are gone. Another start in this process
/// holds a copy of every descriptor until its program is executed; only a process that holds one longer has inherited it.
const LINGER: Duration = Duration::from_millis(250);

/// Reads one stream. A future of it may be dropped at any point and made again.
#[derive(derive_more::Debug)]
#[debug("Reader({keep:?})")]
pub(crate) struct Reader {
    /// None once the stream has ended, or where it is not read.
    pipe: Option<AsyncFd<OwnedFd>>,
    keep: Keep,
    /// Sees each block. Set once the program runs: a start that fails leaves the tap with the program.
    pub(crate) tap: Option<Tap>,
    /// Bytes that are kept, and have not gone to the file.
    held: Vec<u8>,
    spill: Option<Spill>,
    output: Output,
}

/// The child's side and ours.
pub(crate) fn prepare(capture: &Capture) -> io::Result<(OwnedFd, Reader)> {
    let keep = capture.keep.clone();
    let (theirs, pipe) = if keep == Keep::Nothing && capture.tap.is_none() {
        (crate::pipe::to_nowhere()?, None)
    } else {
        let (theirs, ours) = crate::pipe::from_child()?;
        (theirs, Some(watch(ours, Interest::READABLE)?))
    };
    let (held, spill, output) = (Vec::new(), None, Output::default());
    Ok((theirs, Reader { pipe, keep, tap: None, held, spill, output }))
}

impl Reader {
    /// Reads until the stream ends.
    pub(crate) async fn run(&mut self) {
        while let Some(pipe) = &self.pipe {
            let old = make_room(&mut self.held);
            let room = self.held.capacity() - old;
            let attempt =
                |pipe: &AsyncFd<OwnedFd>| Ok(read(pipe.get_ref(), spare_capacity(&mut self.held))?);
            let length = match pipe.readable().await {
                Ok(mut ready) => match ready.try_io(attempt) {
                    Ok(length) => {
                        // A read that leaves room has emptied the pipe: there is no need to try again to learn that.
                        if length.as_ref().is_ok_and(|length| *length < room) {
                            ready.clear_ready();
                        }
                        length
                    }
                    Err(_empty) => continue,
                },
                Err(error) => Err(error),
            };
            match length {
                Ok(0) => self.pipe = None,
                Ok(_) => self.take(old).await,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.output.error = Some(error);
                    self.pipe = None;
                }
            }
        }
    }

    /// Takes what is still in the pipe after all our processes that could write have ended, and returns what was kept. It
    /// takes no more than is there now: a process that is not ours may hold the other side, and write for ever.
    pub(crate) async fn finish(mut self) -> Output {
        let mut left = None;
        while let Some(pipe) = &self.pipe {
            let old = make_room(&mut self.held);
            match read(pipe, spare_capacity(&mut self.held)) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    let length = length as u64;
                    let left =
                        left.get_or_insert_with(|| ioctl_fionread(pipe).unwrap_or(0) + length);
                    *left = left.saturating_sub(length);
                    let through = *left == 0;
                    self.take(old).await;
                    if through {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    self.output.error = Some(error.into());
                    self.pipe = None;
                }
            }
        }
        self.linger().await;
        self.close().await
    }

    /// Waits a moment for the end of a stream in which nothing is left.
    async fn linger(&mut self) {
        let Some(pipe) = self.pipe.take() else { return };
        let old = make_room(&mut self.held);
        let attempt = |pipe: &OwnedFd| Ok(read(pipe, spare_capacity(&mut self.held))?);
        let last = timeout(LINGER, pipe.async_io(Interest::READABLE, attempt)).await;
        self.output.held_open = !matches!(last, Ok(Ok(0)));
        if self.held.len() > old {
            self.take(old).await;
        }
    }

    /// Looks at what has just been read behind the first `old` bytes, and keeps of it what is to be kept.
    async fn take(&mut self, old: usize) {
        let length = self.held.len() - old;
        self.output.total += length as u64;
        if let Some(tap) = &mut self.tap {
            tap(&self.held[old..]);
        }
        match self.keep {
            Keep::Nothing => self.held.clear(),
            Keep::First(most) => self.held.truncate(most),
            // Moving the rest to the front costs as much as it is long: only when as much again has come.
            Keep::Last(most) => {
                if self.held.len() >= most.saturating_mul(2).max(BLOCK_BYTES) {
                    self.held.drain(..self.held.len() - most);
                }
            }
            Keep::Whole { memory, limit, .. } => {
                if let Some(excess) = limit.and_then(|limit| self.output.total.checked_sub(limit)) {
                    let excess = usize::try_from(excess).unwrap_or(usize::MAX);
                    let dropped = excess.min(length);
                    self.held.truncate(self.held.len() - dropped);
                    self.output.truncated |= dropped > 0;
                }
                let full = match self.spill {
                    None => self.held.len() > memory,
                    Some(_) => self.held.len() >= BLOCK_BYTES,
                };
                if full {
                    self.spill().await;
                }
            }
        }
    }

    async fn spill(&mut self) {
        if self.spill.is_none()
            && let Keep::Whole { file, .. } = &self.keep
        {
            self.spill = Some(Spill::new(file.clone()));
        }
        if let Some(spill) = &mut self.spill {
            spill.settle().await;
            spill.write(&mut self.held);
        }
    }

    async fn close(mut self) -> Output {
        if self.spill.is_some() && !self.held.is_empty() {
            self.spill().await;
        }
        if let Some(spill) = self.spill {
            let (kept, error) = spill.close().await;
            self.output.truncated |= error.is_some();
            self.output.error = self.output.error.or(error);
            self.output.kept = kept;
            return self.output;
        }
        if let Keep::Last(most) = self.keep {
            self.held.drain(..self.held.len().saturating_sub(most));
        }
        self.output.truncated |= (self.held.len() as u64) < self.output.total;
        self.held.shrink_to_fit();
        self.output.kept = Kept::Memory(self.held);
        self.output
    }
}

/// Room behind what is held, as much as there is already. Answers how much that is.
fn make_room(held: &mut Vec<u8>) -> usize {
    if held.capacity() - held.len() < FIRST_BYTES {
        held.reserve(held.len().clamp(FIRST_BYTES, BLOCK_BYTES));
    }
    held.len()
}
