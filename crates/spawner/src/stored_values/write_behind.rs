//! Writing on a thread of its own, while the next bytes are read and verified.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of bytes that are handed to the thread at once.
const BLOCK: usize = 256 << 10;

/// The most blocks that wait to be written. One is written meanwhile, and one is filled.
const WAITING: usize = 2;

/// Hands blocks to the thread, and gets them back empty.
struct WriteBehind {
    block: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
}

/// Calls `write` with a writer whose bytes come to `out` on another thread. All of them are written when this returns. Where the
/// system has no further thread, they are written on this one.
///
/// # Errors
///
/// Where `out` fails with its error, else with that of `write`.
pub(super) fn write_behind(
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    write_on(thread::Builder::new().name("offshoot-write".to_owned()), out, write)
}

fn write_on(
    writer: thread::Builder,
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A thread that cannot be started takes what it was given with it, so the writer is lent to it.
    let out = Mutex::new(out);
    let lock = || out.lock().unwrap_or_else(PoisonError::into_inner);
    let (full, blocks) = sync_channel::<Vec<u8>>(WAITING);
    let (emptied, empty) = channel();
    thread::scope(|scope| {
        let writing = move || {
            let mut out = lock();
            for mut block in blocks {
                out.write_all(&block)?;
                block.clear();
                // Once everything has been handed over no block is wanted back.
                let _ = emptied.send(block);
            }
            out.flush()
        };
        let Ok(writer) = writer.spawn_scoped(scope, writing) else { return write(&mut **lock()) };
        let mut behind = WriteBehind { block: Vec::with_capacity(BLOCK), full, empty };
        let written = write(&mut behind).and_then(|()| behind.flush());
        // The thread ends with the last block.
        drop(behind);
        let ended = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Where it has failed, nothing more could be handed over.
        ended.and(written)
    })
}

impl Write for WriteBehind {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == BLOCK {
            self.flush()?;
        }
        Ok(taken)
    }

    /// Hands over what there is. It is written later.
    fn flush(&mut self) -> io::Result<()> {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        let block = std::mem::replace(&mut self.block, next);
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the writing thread has ended");
        self.full.send(block).map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails after so many bytes.
    struct Narrow(usize);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.0);
            self.0 -= fits;
            match fits {
                0 => Err(io::ErrorKind::StorageFull.into()),
                fits => Ok(fits),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn content(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
    }

    #[test]
    fn every_byte_arrives_in_its_order() {
        for (size, portion) in
            [(0, 1), (1, 1), (BLOCK, BLOCK), (3 * BLOCK + 7, 1000), (BLOCK * 9, BLOCK * 2)]
        {
            let bytes = content(size);
            let mut out = Vec::new();
            write_behind(&mut out, |behind| {
                bytes.chunks(portion).try_for_each(|part| behind.write_all(part))
            })
            .expect("there is memory");
            assert!(out == bytes, "{size} in portions of {portion}");
        }
    }

    #[test]
    fn without_a_thread_it_is_written_at_once() {
        // No system has room for such a stack.
        let no_thread = || thread::Builder::new().stack_size(1 << 60);
        let bytes = content(3 * BLOCK + 7);
        let mut out = Vec::new();
        let written = write_on(no_thread(), &mut out, |direct| direct.write_all(&bytes));
        written.expect("writing to memory failed");
        assert!(out == bytes);
        let full = write_on(no_thread(), &mut Narrow(5), |direct| direct.write_all(&bytes));
        assert_eq!(full.expect_err("it is full").kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn the_error_is_that_of_the_side_that_failed() {
        let bytes = content(20 * BLOCK);
        let full = write_behind(&mut Narrow(BLOCK + 5), |behind| behind.write_all(&bytes));
        assert_eq!(full.expect_err("it is full").kind(), io::ErrorKind::StorageFull);
        let mut out = Vec::new();
        let unread = write_behind(&mut out, |behind| {
            behind.write_all(&bytes[..BLOCK + 5])?;
            Err(io::ErrorKind::InvalidData.into())
        });
        assert_eq!(unread.expect_err("it cannot be read").kind(), io::ErrorKind::InvalidData);
        assert!(out == bytes[..BLOCK], "whole blocks before the error");
    }
}
