//! Lines on their way out.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Lines that the other side has not taken yet.
#[derive(Debug)]
pub(crate) struct Outbox<W> {
    stream: W,
    lines: VecDeque<Vec<u8>>,
    /// So many bytes of the first line are written.
    written: usize,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(crate) fn new(stream: W) -> Self {
        Self { stream, lines: VecDeque::new(), written: 0 }
    }

    pub(crate) fn push(&mut self, line: Vec<u8>) {
        self.lines.push_back(line);
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Writes some of it; waits for ever while there is nothing. Nothing is lost or repeated when the future is dropped.
    pub(crate) async fn write_some(&mut self) -> io::Result<()> {
        let Some(line) = self.lines.front() else { return std::future::pending().await };
        let written = self.stream.write(&line[self.written..]).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += written;
        if self.written == line.len() {
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
