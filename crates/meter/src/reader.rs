//! The use that an answer reports, read beside the bytes as they pass. Pure.
//!
//! Bytes pass as they come, with one exception: where a chat was made to tell its use, the piece with it is taken out again, for the program
//! has not asked for it. Then an event passes once its end has come.

use std::num::NonZeroUsize;

use hyper::body::{Buf, Bytes};
use serde_json::Value;
use sse_core::{SseDecoder, SseEvent};

use crate::protocol::Protocol;
use crate::usage::{Report, chat, may_tell};

/// Reads one answer.
pub(crate) struct Reader {
    protocol: Protocol,
    form: Form,
}

enum Form {
    Events(Box<Events>),
    /// One value, or several: its bytes so far, which it shares with what was passed on.
    Whole {
        pieces: Vec<Bytes>,
        length: usize,
    },
    /// Something that cannot be read.
    Unreadable,
}

struct Events {
    decoder: SseDecoder,
    /// Bytes of an event whose end has not come; none where everything passes as it comes.
    held: Option<Vec<Bytes>>,
}

/// An event or an answer longer than this is not read. Its use stays unknown, and is charged at the bound.
const MOST_BYTES: usize = 32 * 1024 * 1024;

impl Reader {
    /// For an answer of this kind. `removes` is whether the piece that tells the use of a chat is taken out.
    pub(crate) fn new(
        protocol: Protocol,
        content_type: &str,
        encoded: bool,
        removes: bool,
    ) -> Self {
        let form = if encoded {
            Form::Unreadable
        } else if content_type.starts_with("text/event-stream") {
            let most = NonZeroUsize::new(MOST_BYTES).expect("it is not zero");
            let held = removes.then(Vec::new);
            Form::Events(Box::new(Events { decoder: SseDecoder::with_limit(most), held }))
        } else {
            Form::Whole { pieces: Vec::new(), length: 0 }
        };
        Self { protocol, form }
    }

    /// True if all bytes pass, so that an announced length stays true.
    pub(crate) fn keeps_length(&self) -> bool {
        !matches!(&self.form, Form::Events(events) if events.held.is_some())
    }

    /// True if the answer is one whole text, and no stream: its provider has made all of it, whether or not it is read.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.form, Form::Whole { .. })
    }

    /// Takes bytes of the answer, and adds those that pass now.
    pub(crate) fn feed(
        &mut self,
        bytes: Bytes,
        report: &mut Report,
        passing: &mut impl Extend<Bytes>,
    ) {
        match &mut self.form {
            Form::Unreadable => passing.extend([bytes]),
            Form::Whole { pieces, length } => {
                *length += bytes.len();
                if *length > MOST_BYTES {
                    passing.extend([bytes]);
                    self.form = Form::Unreadable;
                    return;
                }
                pieces.push(bytes.clone());
                passing.extend([bytes]);
            }
            Form::Events(events) => {
                if !events.feed(self.protocol, bytes, report, passing) {
                    self.form = Form::Unreadable;
                }
            }
        }
    }

    /// Takes the end of the answer.
    pub(crate) fn finish(&mut self, report: &mut Report, passing: &mut impl Extend<Bytes>) {
        match std::mem::replace(&mut self.form, Form::Unreadable) {
            Form::Unreadable => {}
            Form::Whole { pieces, .. } => {
                let is_read = match &pieces[..] {
                    [one] => report.take(self.protocol, one),
                    several => report.take(self.protocol, &several.concat()),
                };
                if is_read {
                    report.end(self.protocol);
                }
            }
            Form::Events(mut events) => {
                let held = events.held.take();
                // An event without its empty line: many servers leave that out at the end.
                let mut end = Bytes::from_static(b"\n\n");
                while let Some(Ok(event)) = events.decoder.next(&mut end) {
                    read(self.protocol, &event, report);
                }
                report.all_came(self.protocol);
                passing.extend(held.into_iter().flatten());
            }
        }
    }
}

impl Events {
    /// False where an event is too long to be read.
    fn feed(
        &mut self,
        protocol: Protocol,
        bytes: Bytes,
        report: &mut Report,
        passing: &mut impl Extend<Bytes>,
    ) -> bool {
        let mut rest = bytes.clone();
        let Some(held) = &mut self.held else {
            passing.extend([bytes]);
            while let Some(event) = self.decoder.next(&mut rest) {
                let Ok(event) = event else { return false };
                read(protocol, &event, report);
            }
            return true;
        };
        loop {
            let before = rest.clone();
            let event = self.decoder.next(&mut rest);
            let taken = before.slice(..before.len() - rest.remaining());
            if !taken.is_empty() {
                held.push(taken);
            }
            match event {
                None => {
                    // Nothing but comments has come since the last event, so no event is cut by passing them on.
                    if held.last().is_some_and(|bytes| {
                        bytes.ends_with(b"\n\n") || bytes.ends_with(b"\r\n\r\n")
                    }) {
                        passing.extend(held.drain(..));
                    }
                    return true;
                }
                Some(Err(_)) => {
                    passing.extend(held.drain(..));
                    passing.extend([rest]);
                    return false;
                }
                Some(Ok(event)) => {
                    if read(protocol, &event, report) {
                        held.clear();
                    } else {
                        passing.extend(held.drain(..));
                    }
                }
            }
        }
    }
}

/// Reads an event; true where it tells the use of a chat and nothing else.
fn read(protocol: Protocol, event: &SseEvent, report: &mut Report) -> bool {
    let SseEvent::Message(message) = event else { return false };
    if protocol == Protocol::Chat && chat::is_end(&message.data) {
        report.end(protocol);
        return false;
    }
    let data = message.data.as_bytes();
    if !may_tell(protocol, data) {
        return false;
    }
    report.take(protocol, data);
    protocol == Protocol::Chat
        && serde_json::from_slice::<Value>(data).is_ok_and(|piece| {
            piece["usage"].is_object() && piece["choices"].as_array().is_some_and(Vec::is_empty)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes that passed, and the use that was reported, where the bytes are cut at these places.
    fn read_all(protocol: Protocol, removes: bool, text: &str, cuts: &[usize]) -> (String, Report) {
        let mut reader = Reader::new(protocol, "text/event-stream; charset=utf-8", false, removes);
        let mut report = Report::default();
        let mut passed: Vec<Bytes> = Vec::new();
        let mut rest = Bytes::from(text.to_owned());
        for cut in cuts {
            let piece = rest.split_to((*cut).min(rest.len()));
            reader.feed(piece, &mut report, &mut passed);
        }
        reader.feed(rest, &mut report, &mut passed);
        reader.finish(&mut report, &mut passed);
        (String::from_utf8(passed.concat()).expect("text"), report)
    }

    const WORD: &str =
        "data: {\"choices\":[{\"delta\":{\"content\":\"grüße\"}}],\"usage\":null}\n\n";
    const USED: &str =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    #[test]
    fn the_piece_that_was_not_asked_for_is_taken_out() {
        let stream = format!(": loading\n\n{WORD}{USED}{DONE}");
        let (passed, report) = read_all(Protocol::Chat, true, &stream, &[]);
        assert_eq!(passed, format!(": loading\n\n{WORD}{DONE}"));
        assert_eq!((report.tokens.input, report.tokens.output, report.is_whole()), (7, 3, true));
        let (passed, report) = read_all(Protocol::Chat, false, &stream, &[]);
        assert_eq!((passed, report.is_whole()), (stream, true));
        // Its last event has no empty line.
        let cut = format!("{WORD}{}", USED.trim_end());
        let (_, report) = read_all(Protocol::Chat, false, &cut, &[]);
        assert!(report.is_whole());
        let whole = USED.replace("[]", "[{\"delta\":{}}]");
        assert_eq!(
            read_all(Protocol::Chat, true, &whole, &[]).0,
            whole,
            "it holds more than the use"
        );
    }

    #[test]
    fn a_comment_is_not_held() {
        let mut reader = Reader::new(Protocol::Chat, "text/event-stream", false, true);
        let mut report = Report::default();
        let mut passed: Vec<Bytes> = Vec::new();
        reader.feed(Bytes::from_static(b": still there\n\n"), &mut report, &mut passed);
        assert_eq!(passed.concat(), b": still there\n\n");
        reader.feed(Bytes::from_static(b"data: {\"choices"), &mut report, &mut passed);
        assert_eq!(passed.concat(), b": still there\n\n");
        reader.feed(Bytes::from_static(b"\":[]}\n\n"), &mut report, &mut passed);
        assert_eq!(passed.concat(), b": still there\n\ndata: {\"choices\":[]}\n\n");
        assert!(!reader.keeps_length());
    }

    #[test]
    fn an_answer_that_is_one_value() {
        let answer = "{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}";
        let mut report = Report::default();
        let mut passed: Vec<Bytes> = Vec::new();
        let mut reader = Reader::new(Protocol::Chat, "application/json", false, true);
        assert!(reader.keeps_length());
        for piece in answer.as_bytes().chunks(5) {
            reader.feed(Bytes::copy_from_slice(piece), &mut report, &mut passed);
        }
        reader.finish(&mut report, &mut passed);
        assert_eq!((passed.concat(), report.is_whole()), (answer.as_bytes().to_vec(), true));
        // Compressed, although it was asked not to be.
        let mut report = Report::default();
        let mut reader = Reader::new(Protocol::Chat, "application/json", true, true);
        reader.feed(Bytes::from_static(answer.as_bytes()), &mut report, &mut passed);
        reader.finish(&mut report, &mut passed);
        assert!(!report.is_whole());
    }

    #[test]
    fn what_is_too_long_passes_unread() {
        let mut report = Report::default();
        let mut passed = 0;
        let mut reader = Reader::new(Protocol::Chat, "application/json", false, false);
        let block = Bytes::from(vec![b' '; 1 << 20]);
        for _ in 0..40 {
            let mut out: Vec<Bytes> = Vec::new();
            reader.feed(block.clone(), &mut report, &mut out);
            passed += out.iter().map(Bytes::len).sum::<usize>();
        }
        assert_eq!(passed, 40 << 20);
        assert!(matches!(reader.form, Form::Unreadable));
        let mut reader = Reader::new(Protocol::Chat, "text/event-stream", false, true);
        let mut out: Vec<Bytes> = Vec::new();
        reader.feed(Bytes::from_static(b"data: "), &mut report, &mut out);
        for _ in 0..40 {
            reader.feed(Bytes::from(vec![b'x'; 1 << 20]), &mut report, &mut out);
        }
        assert_eq!(out.iter().map(Bytes::len).sum::<usize>(), (40 << 20) + 6);
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_does_not_matter(cuts in prop::collection::vec(1usize..30, 0..60), removes: bool, crlf: bool) {
            let mut stream = format!(": x\n\n{WORD}{WORD}{USED}{DONE}");
            if crlf {
                stream = stream.replace('\n', "\r\n");
            }
            prop_assert_eq!(
                read_all(Protocol::Chat, removes, &stream, &cuts),
                read_all(Protocol::Chat, removes, &stream, &[])
            );
        }

        #[test]
        fn nothing_else_is_ever_taken_out(text in "[ -~\n\ré]{0,200}", cuts in prop::collection::vec(1usize..30, 0..10)) {
            prop_assume!(!text.contains("usage"));
            // Cuts fall between bytes, and what passes is the same bytes.
            let mut reader = Reader::new(Protocol::Chat, "text/event-stream", false, true);
            let (mut report, mut passed) = (Report::default(), Vec::<Bytes>::new());
            let mut rest = Bytes::from(text.clone());
            for cut in cuts {
                let piece = rest.split_to(cut.min(rest.len()));
                reader.feed(piece, &mut report, &mut passed);
            }
            reader.feed(rest, &mut report, &mut passed);
            reader.finish(&mut report, &mut passed);
            prop_assert_eq!(passed.concat(), text.into_bytes());
        }
    }
}
