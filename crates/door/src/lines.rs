//! Lines of bounded length from a stream.

use std::mem;

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much room is made for one reading. Most messages fit into it.
const BLOCK: usize = 8 * 1024;

/// Reads lines, and holds no more than one of the longest and what came with it.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// So many bytes of the buffer hold no line break.
    searched: usize,
    longest: usize,
}

/// Why there is no further line.
#[derive(Debug)]
pub(crate) enum LineError {
    /// It would be longer than a line may be.
    TooLong,
    /// The stream is broken: the other side is gone, and not with grace.
    Broken,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, longest: usize) -> Self {
        Self { stream, buffer: Vec::new(), searched: 0, longest }
    }

    /// The next line without its break; none at the end. Half a line before the end is none. Nothing is lost when
    /// the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            let length = end.map_or(self.buffer.len(), |end| self.searched + end);
            if length > self.longest {
                return Err(LineError::TooLong);
            }
            if end.is_some() {
                let rest = self.buffer.split_off(length + 1);
                let mut line = mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                line.truncate(length);
                return Ok(Some(line));
            }
            self.searched = length;
            self.buffer.reserve(BLOCK);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(_) => return Err(LineError::Broken),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn read(chunks: Vec<Vec<u8>>, longest: usize) -> (Vec<Vec<u8>>, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut writer, reader) = tokio::io::duplex(16);
            let write = async move {
                for chunk in chunks {
                    if writer.write_all(&chunk).await.is_err() {
                        return;
                    }
                }
            };
            let read = async move {
                let mut lines = Lines::new(reader, longest);
                let mut found = Vec::new();
                loop {
                    match lines.next().await {
                        Ok(Some(line)) => found.push(line),
                        Ok(None) => return (found, false),
                        Err(LineError::TooLong) => return (found, true),
                        Err(LineError::Broken) => panic!("it is in memory"),
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
        let mut lines = Lines::new(tokio::io::repeat(b'x'), 1000);
        assert!(matches!(lines.next().await, Err(LineError::TooLong)));
        assert!(lines.buffer.capacity() < 1000 + 2 * BLOCK);
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
