//! A stream of server-sent events, from bytes as they come. Pure.

/// One event beyond this is no event of a chat: the largest holds a whole answer.
const LONGEST: usize = 16 * 1024 * 1024;

/// Puts events together from pieces that are cut anywhere, in the middle of a character too. Of an event only its data
/// matters here.
#[derive(Debug, Default)]
pub struct Events {
    /// The line that has no end yet.
    line: Vec<u8>,
    /// The data of the event that has no end yet, its lines joined with a newline.
    data: Option<Vec<u8>>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
}

/// An event that grows without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {mib} MiB", mib = LONGEST >> 20)]
pub struct TooLong;

impl Events {
    /// Takes some bytes and answers the events that they end.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some((&first, behind)) = rest.split_first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = behind;
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let length = end.unwrap_or(rest.len());
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if held + length > LONGEST {
                return Err(TooLong);
            }
            self.line.extend_from_slice(&rest[..length]);
            let Some(end) = end else { break };
            self.after_return = rest[end] == b'\r';
            events.extend(self.end_line());
            rest = &rest[end + 1..];
        }
        Ok(events)
    }

    /// Returns the rest when the stream is over: an event without its empty line. It may be cut.
    pub fn finish(mut self) -> Option<String> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.data.map(text)
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take().map(text);
        }
        // A mark of the byte order may stand before the first line.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        let value = match line.strip_prefix(b"data:") {
            Some(value) => value.strip_prefix(b" ").unwrap_or(value),
            None if line == b"data" => b"",
            // Comments, and fields that say nothing about a chat.
            None => return None,
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        None
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let mut events = Events::default();
        let found =
            pieces.iter().flat_map(|piece| events.feed(piece).expect("the event is too long"));
        let found = found.collect();
        (found, events.finish())
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str], rest: Option<&str>) {
        let (found, left) = all(&[text.as_bytes()]);
        assert_eq!(
            (found.as_slice(), left.as_deref()),
            (&expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..], rest),
            "{text:?}"
        );
    }

    #[test]
    fn lines_become_events() {
        check("data: a\n\ndata:b\n\n", &["a", "b"], None);
        check("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"], None);
        check("data: one\ndata: two\ndata\n\n", &["one\ntwo\n"], None);
        check(": keeps alive\n\nevent: x\nid: 3\n\n", &[], None);
        check("event: x\ndata: a\nretry: 5\n\n", &["a"], None);
        check("\u{feff}data: a\n\n", &["a"], None);
        check("data: a\n\ndata: cu", &["a"], Some("cu"));
        check("data: a\n", &[], Some("a"));
        check("datax: a\n\n", &[], None);
        check("", &[], None);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let block = vec![b'x'; 1 << 20];
        let refused = (0..100).position(|_| events.feed(&block).is_err());
        assert_eq!(refused, Some(16));
    }

    proptest! {
        #[test]
        fn where_the_pieces_are_cut_does_not_matter(
            lines in prop::collection::vec("(data: ?)?[aä€😀:]{0,6}", 0..12),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 12),
            cuts in prop::collection::vec(1usize..5, 0..80),
        ) {
            let text: String = lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}{end}")).collect();
            let bytes = text.as_bytes();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                let to = (from + cut).min(bytes.len());
                pieces.push(&bytes[from..to]);
                from = to;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(all(&pieces), all(&[bytes]));
        }
    }
}
