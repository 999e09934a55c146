//! Lines of bounded length from a socket, with the descriptors that came with them.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::{self, MaybeUninit};
use std::os::fd::OwnedFd;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// The number of bytes that are read at once. Most messages fit into it.
const BLOCK: usize = 8 * 1024;

/// A line takes one descriptor; the system closes those for which there is no room.
const DESCRIPTORS: usize = 1;

/// Reads lines, and holds no more than one of the longest and what came with it.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: OwnedReadHalf,
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that hold no line break.
    searched: usize,
    /// The number of bytes of the stream that have left the buffer.
    taken: u64,
    longest: usize,
    /// Descriptors of lines that are not complete, each with the place in the stream where the piece ended with which it came.
    files: VecDeque<(u64, OwnedFd)>,
}

/// A line without its break.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: Vec<u8>,
    /// The descriptor that was sent with it.
    pub(crate) file: Option<OwnedFd>,
}

/// The reason why there is no further line.
#[derive(Debug)]
pub(crate) enum LineError {
    /// The line would be longer than a line may be.
    TooLong,
    /// The stream is broken: the other side is gone, and not with grace.
    Broken,
}

impl Lines {
    pub(crate) fn new(stream: OwnedReadHalf, longest: usize) -> Self {
        let (buffer, files) = Default::default();
        Self { stream, buffer, searched: 0, taken: 0, longest, files }
    }

    /// The next line; none at the end. Half a line before the end is none. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, LineError> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            let length = end.map_or(self.buffer.len(), |end| self.searched + end);
            if length > self.longest {
                return Err(LineError::TooLong);
            }
            if end.is_some() {
                let rest = self.buffer.split_off(length + 1);
                let mut text = mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                self.taken += text.len() as u64;
                text.truncate(length);
                return Ok(Some(Line { text, file: self.file() }));
            }
            self.searched = length;
            match self.receive().await {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(_) => return Err(LineError::Broken),
            }
        }
    }

    /// The first descriptor of the line that was just taken. The others of it are closed.
    fn file(&mut self) -> Option<OwnedFd> {
        let of_line = self.files.iter().take_while(|(place, _)| *place <= self.taken).count();
        self.files.drain(..of_line).next().map(|(_, file)| file)
    }

    /// Reads once into the buffer.
    async fn receive(&mut self) -> io::Result<usize> {
        let stream: &UnixStream = self.stream.as_ref();
        loop {
            stream.readable().await?;
            let held = self.buffer.len();
            // A buffer that has grown for a long line is filled in large pieces.
            self.buffer.reserve(BLOCK);
            self.buffer.resize(self.buffer.capacity(), 0);
            let received =
                stream.try_io(Interest::READABLE, || receive(stream, &mut self.buffer[held..]));
            let read = received.as_ref().map_or(0, |(read, _)| *read);
            self.buffer.truncate(held + read);
            match received {
                Ok((read, file)) => {
                    // The system ends a piece behind the bytes that a descriptor came with.
                    let place = self.taken + self.buffer.len() as u64;
                    self.files.extend(file.map(|file| (place, file)));
                    // A line of many pieces, each with a descriptor, holds the first one alone.
                    self.files.truncate(MOST_PIECES);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Descriptors that came with pieces of lines that have not been taken yet: as many lines may be in a block.
const MOST_PIECES: usize = 16;

fn receive(stream: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(into)];
    let received = recvmsg(stream, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.next().and_then(|mut files| files.next());
    Ok((received.bytes, file))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use proptest::prelude::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn pair(longest: usize) -> (UnixStream, Lines) {
        let (writer, reader) = UnixStream::pair().unwrap();
        (writer, Lines::new(reader.into_split().0, longest))
    }

    fn read(chunks: Vec<Vec<u8>>, longest: usize) -> (Vec<Vec<u8>>, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let (mut writer, mut lines) = pair(longest);
            let write = async move {
                for chunk in chunks {
                    if writer.write_all(&chunk).await.is_err() {
                        return;
                    }
                    // So that it is read piece by piece.
                    tokio::task::yield_now().await;
                }
            };
            let read = async move {
                let mut found = Vec::new();
                loop {
                    match lines.next().await {
                        Ok(Some(line)) => found.push(line.text),
                        Ok(None) => return (found, false),
                        Err(LineError::TooLong) => return (found, true),
                        Err(LineError::Broken) => panic!("it is open"),
                    }
                }
            };
            tokio::join!(write, read).1
        })
    }

    #[test]
    fn lines_end_with_a_break() {
        let check = |text: &str, expected: &[&str], too_long: bool| {
            let found = read(vec![text.into()], 5);
            let expected = expected.iter().map(|line| line.as_bytes().to_vec()).collect();
            assert_eq!(found, (expected, too_long), "{text:?}");
        };
        check("", &[], false);
        check("a\nbc\n\nd\n", &["a", "bc", "", "d"], false);
        check("a\nhalf", &["a"], false);
        check("12345\n", &["12345"], false);
        check("a\n123456\nb\n", &["a"], true);
        check("a\n123456", &["a"], true);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_line_without_end_costs_no_memory() {
        let (mut writer, mut lines) = pair(1000);
        writer.try_write(&[b'x'; 100_000]).unwrap();
        assert!(matches!(lines.next().await, Err(LineError::TooLong)));
        assert!(lines.buffer.capacity() < 1000 + 4 * BLOCK);
        writer.shutdown().await.unwrap();
    }

    /// Sends a text in one piece, with the descriptors of files of these contents.
    fn send(stream: &UnixStream, text: &str, contents: &[&str]) {
        let files: Vec<_> = contents
            .iter()
            .map(|content| {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(content.as_bytes()).unwrap();
                file
            })
            .collect();
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        }
        let text = [io::IoSlice::new(text.as_bytes())];
        sendmsg(stream, &text, &mut control, SendFlags::empty()).unwrap();
    }

    fn content(file: &OwnedFd) -> String {
        let mut bytes = [0; 100];
        let read = rustix::io::pread(file, &mut bytes, 0).unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_descriptor_belongs_to_the_line_with_which_it_was_sent() {
        let (writer, mut lines) = pair(100_000);
        send(&writer, "one\n", &[]);
        send(&writer, "two\n", &["of two"]);
        send(&writer, "three\n", &["of three", "too many"]);
        send(&writer, "fo", &["of four"]);
        send(&writer, "ur\nfive\n", &[]);
        send(&writer, "si", &[]);
        send(&writer, "x", &["of six"]);
        send(&writer, "\n", &["late"]);
        send(&writer, "seven\n", &[]);
        send(&writer, &format!("{}\n", "8".repeat(50_000)), &["of eight"]);
        send(&writer, "nine\n", &[]);
        let of = |what: &str| Some(format!("of {what}"));
        for expected in
            [None, of("two"), of("three"), of("four"), None, of("six"), None, of("eight"), None]
        {
            let line = lines.next().await.unwrap().unwrap();
            assert_eq!(line.file.as_ref().map(content), expected, "{:?}", line.text);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn descriptors_without_a_line_are_bounded() {
        let (writer, mut lines) = pair(100_000);
        for _ in 0..100 {
            send(&writer, "x", &["one", "more"]);
        }
        send(&writer, "\n", &[]);
        assert!(lines.next().await.unwrap().unwrap().file.is_some());
        assert!(lines.files.is_empty());
        for _ in 0..100 {
            send(&writer, "x", &["one", "more"]);
        }
        for _ in 0..100 {
            lines.receive().await.unwrap();
        }
        assert_eq!(lines.files.len(), MOST_PIECES);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_arrive(
            lines in proptest::collection::vec("[a-z]{0,40}", 0..20),
            cut in 1usize..30,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let chunks = text.as_bytes().chunks(cut).map(<[u8]>::to_vec).collect();
            let (found, too_long) = read(chunks, 40);
            prop_assert!(!too_long);
            let found: Vec<_> = found.iter().map(|line| String::from_utf8_lossy(line)).collect();
            prop_assert_eq!(found, lines);
        }
    }
}
