//! The input of a child: handed over, laid ready in the pipe, or carried in blocks while its output is read.
//!
//! What fits into the pipe is written before the child exists. That is most prompts and small pieces, and costs them
//! neither a task nor the reactor.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::io::{Errno, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::watch::watch;
use crate::{StartError, Stdin};

/// The number of bytes that a pipe holds by default on Linux, and that are laid ready at most.
const PIPE_BYTES: usize = 64 * 1024;

/// The number of bytes of a file that are read at once: enough that the hop to a blocking thread does not show, little enough
/// that many children at once do not either.
const BLOCK_BYTES: usize = 256 * 1024;

/// Our side of a child's input.
#[derive(Debug)]
pub(crate) enum Input {
    /// Nothing more to do.
    Done,
    /// To be carried.
    Pump(Box<Pump>),
    /// Another process writes it.
    Pipe(pipe::Sender),
}

/// Carries bytes into a pipe. A future of it may be dropped at any point and made again.
#[derive(Debug)]
pub(crate) struct Pump {
    pipe: AsyncFd<OwnedFd>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Bytes { bytes: Arc<[u8]>, written: usize },
    Range(Range),
}

#[derive(Debug)]
struct Range {
    file: Arc<File>,
    offset: u64,
    left: u64,
    block: Vec<u8>,
    written: usize,
    next: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

/// The child's side and ours.
pub(crate) fn prepare(stdin: Stdin, program: &Path) -> Result<(OwnedFd, Input), StartError> {
    let system = |source| StartError::System { path: program.to_owned(), source };
    match stdin {
        Stdin::Null => Ok((crate::pipe::to_nowhere().map_err(system)?, Input::Done)),
        Stdin::File(path) => Ok((open(&path)?.into(), Input::Done)),
        Stdin::Pipe => {
            let (theirs, ours) = crate::pipe::to_child().map_err(system)?;
            let sender = pipe::Sender::from_owned_fd(ours).map_err(system)?;
            Ok((theirs, Input::Pipe(sender)))
        }
        Stdin::Bytes(bytes) if bytes.is_empty() => {
            Ok((crate::pipe::to_nowhere().map_err(system)?, Input::Done))
        }
        Stdin::Bytes(bytes) => {
            let (theirs, ours) = crate::pipe::to_child().map_err(system)?;
            let written = lay_ready(&ours, &bytes).map_err(system)?;
            let rest = (written < bytes.len()).then_some(Source::Bytes { bytes, written });
            Ok((theirs, carry(ours, rest).map_err(system)?))
        }
        Stdin::Range { path, offset, length } => {
            let file = open(&path)?;
            let (theirs, ours) = crate::pipe::to_child().map_err(system)?;
            let rest = if length <= PIPE_BYTES as u64 {
                let block = read_block(&file, offset, length)
                    .map_err(|source| StartError::Input { path, source })?;
                let written = lay_ready(&ours, &block).map_err(system)?;
                (written < block.len()).then(|| Source::Bytes { bytes: block.into(), written })
            } else {
                let file = Arc::new(file);
                let (block, written, next) = (Vec::new(), 0, None);
                Some(Source::Range(Range { file, offset, left: length, block, written, next }))
            };
            Ok((theirs, carry(ours, rest).map_err(system)?))
        }
    }
}

impl Pump {
    /// Carries all there is. A child that reads no further is the end, not an error.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        loop {
            let (bytes, written) = match &mut self.source {
                Source::Bytes { bytes, written } => (&bytes[..], written),
                Source::Range(range) => {
                    if range.written == range.block.len() && !range.load().await? {
                        return Ok(());
                    }
                    (&range.block[..], &mut range.written)
                }
            };
            if *written == bytes.len() {
                return Ok(());
            }
            let rest = &bytes[*written..];
            let attempt = |pipe: &OwnedFd| Ok(write(pipe, rest)?);
            match self.pipe.async_io(Interest::WRITABLE, attempt).await {
                Ok(length) => *written += length,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Range {
    /// Takes the next block, and lets the one after it be read meanwhile. False at the end.
    async fn load(&mut self) -> io::Result<bool> {
        self.read_ahead();
        let Some(next) = &mut self.next else { return Ok(false) };
        let block = next.await;
        self.next = None;
        self.block = block.map_err(io::Error::other)??;
        self.written = 0;
        self.read_ahead();
        Ok(true)
    }

    fn read_ahead(&mut self) {
        if self.next.is_some() || self.left == 0 {
            return;
        }
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        let length = self.left.min(BLOCK_BYTES as u64);
        self.offset += length;
        self.left -= length;
        self.next = Some(spawn_blocking(move || read_block(&file, offset, length)));
    }
}

fn open(path: &Path) -> Result<File, StartError> {
    File::open(path).map_err(|source| StartError::Input { path: path.to_owned(), source })
}

/// Reads exactly so much: a file that has become shorter is an error.
fn read_block(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).expect("a block is small");
    let mut block = vec![0; length];
    file.read_exact_at(&mut block, offset)?;
    Ok(block)
}

/// Writes what the pipe takes at once, before the reader reads.
fn lay_ready(pipe: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match write(pipe, &bytes[written..]) {
            Ok(length) => written += length,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

fn carry(pipe: OwnedFd, rest: Option<Source>) -> io::Result<Input> {
    let Some(source) = rest else { return Ok(Input::Done) };
    Ok(Input::Pump(Box::new(Pump { pipe: watch(pipe, Interest::WRITABLE)?, source })))
}
