//! Lines on their way out.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;

/// Lines that the other side has not taken yet.
#[derive(Debug)]
pub(crate) struct Outbox {
    stream: OwnedWriteHalf,
    /// Each with the descriptor that goes with its first bytes.
    lines: VecDeque<(Vec<u8>, Option<OwnedFd>)>,
    /// The number of bytes of the first line that are written.
    written: usize,
    /// The number of bytes in all lines.
    bytes: usize,
}

impl Outbox {
    pub(crate) fn new(stream: OwnedWriteHalf) -> Self {
        Self { stream, lines: VecDeque::new(), written: 0, bytes: 0 }
    }

    pub(crate) fn push(&mut self, line: Vec<u8>) {
        self.push_with(line, None);
    }

    pub(crate) fn push_with(&mut self, line: Vec<u8>, file: Option<OwnedFd>) {
        self.bytes += line.len();
        self.lines.push_back((line, file));
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns the number of bytes that are held of all lines.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Writes some of it; waits for ever while there is nothing. Nothing is lost or repeated when the future is dropped.
    pub(crate) async fn write_some(&mut self) -> io::Result<()> {
        let Some((line, file)) = self.lines.front_mut() else {
            return std::future::pending().await;
        };
        let rest = &line[self.written..];
        let written = match file {
            Some(attached) => {
                let written = send(self.stream.as_ref(), rest, attached).await?;
                // The other side has a descriptor of its own now.
                *file = None;
                written
            }
            None => self.stream.write(rest).await?,
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += written;
        if self.written == line.len() {
            self.bytes -= self.written;
            self.lines.pop_front();
            self.written = 0;
        }
        Ok(())
    }

    /// Writes all of it.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while !self.is_empty() {
            self.write_some().await?;
        }
        Ok(())
    }
}

/// Sends bytes with a descriptor, as many as fit.
async fn send(stream: &UnixStream, bytes: &[u8], file: &OwnedFd) -> io::Result<usize> {
    stream
        .async_io(Interest::WRITABLE, || {
            let files = [file.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)), "there is room for one");
            Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
        })
        .await
}
