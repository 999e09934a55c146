//! One result as text: `T(v)` and its relatives, written piecewise.
//!
//! Every form is a chain of small writers between the value and the output, so that a large value passes
//! through in blocks, whatever has to be done to it.

mod base64;
mod escape;
mod layout;
mod unescape;

use std::io::{self, Write};

use offshoot_model::{Payload, ValueKind, VariableRef};

use crate::values::Source;
use base64::Base64;
use escape::Escape;
use layout::Layout;
use unescape::Unescape;

pub(crate) use layout::Spacing;

/// `T(v)`: the string itself for strings, JSON in the given spacing otherwise. Bytes that are no UTF-8 pass as
/// they are.
pub(crate) fn plain(
    value: &Payload,
    spacing: Spacing,
    source: &mut Source<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match value {
        Payload::Text(text) => out.write_all(text.as_bytes()),
        Payload::Json(json) => plain_json(json.as_str(), spacing, out),
        Payload::Stored(reference) if is_json(reference) => {
            let mut either = PlainJson { spacing, out, state: State::Start };
            source.copy(reference, &mut either)?;
            either.finish()
        }
        Payload::Stored(reference) => source.copy_whole(reference, out),
    }
}

/// The value as compact JSON. Bytes that are no UTF-8, which most merges that write JSON have refused, are an object with their
/// Base64.
pub(crate) fn json(
    value: &Payload,
    source: &mut Source<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match value {
        Payload::Text(text) => string(text, out),
        Payload::Json(json) => {
            Layout::new(Spacing::Compact, out).write_all(json.as_str().as_bytes())
        }
        Payload::Stored(reference) if is_json(reference) => {
            source.copy(reference, &mut Layout::new(Spacing::Compact, out))
        }
        Payload::Stored(reference) if reference.kind == ValueKind::Bytes => {
            out.write_all(b"{\"base64\":\"")?;
            let mut encoder = Base64::new(&mut *out);
            source.copy(reference, &mut encoder)?;
            encoder.finish()?;
            out.write_all(b"\"}")
        }
        Payload::Stored(reference) => {
            out.write_all(b"\"")?;
            source.copy(reference, &mut Escape::new(&mut *out))?;
            out.write_all(b"\"")
        }
    }
}

/// The value's compact JSON text, as a JSON string: how a vote names it.
pub(crate) fn name(
    value: &Payload,
    source: &mut Source<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(b"\"")?;
    json(value, source, &mut Escape::new(&mut *out))?;
    out.write_all(b"\"")
}

/// A text as a JSON string.
pub(crate) fn string(text: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    Escape::new(&mut *out).write_all(text.as_bytes())?;
    out.write_all(b"\"")
}

/// Returns the text of a JSON string. Half a surrogate pair, which JSON can write and text cannot hold, becomes U+FFFD.
pub(crate) fn decoded(json_string: &str) -> Vec<u8> {
    let mut content = Vec::with_capacity(json_string.len());
    decode_into(json_string, &mut content);
    content
}

/// As [`decoded`], to the end of `content`.
pub(crate) fn decode_into(json_string: &str, content: &mut Vec<u8>) {
    decode(json_string, content).expect("writing to memory does not fail");
}

/// True if a stored value is JSON; all others pass byte for byte.
pub(crate) fn is_json(reference: &VariableRef) -> bool {
    matches!(reference.kind, ValueKind::Json | ValueKind::Result)
}

fn plain_json(json: &str, spacing: Spacing, out: &mut dyn Write) -> io::Result<()> {
    match json.starts_with('"') {
        true => decode(json, out),
        false => Layout::new(spacing, out).write_all(json.as_bytes()),
    }
}

fn decode(json_string: &str, out: &mut dyn Write) -> io::Result<()> {
    let inner = json_string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.unwrap_or(json_string);
    if !inner.contains('\\') {
        return out.write_all(inner.as_bytes());
    }
    let mut unescape = Unescape::new(out);
    unescape.write_all(inner.as_bytes())?;
    unescape.finish()
}

/// Stored JSON in plain form: whether it is a string shows with its first byte.
struct PlainJson<'a> {
    spacing: Spacing,
    out: &'a mut dyn Write,
    state: State,
}

/// The kind of the value as far as it was read.
enum State {
    Start,
    String(unescape::Pending),
    Other(layout::Position),
}

impl PlainJson<'_> {
    fn finish(self) -> io::Result<()> {
        match self.state {
            State::String(pending) => Unescape::resume(self.out, pending).finish(),
            State::Start | State::Other(_) => Ok(()),
        }
    }
}

impl Write for PlainJson<'_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let mut rest = block;
        if let State::Start = self.state {
            rest = block.trim_ascii_start();
            self.state = match rest {
                [] => State::Start,
                [b'"', inside @ ..] => {
                    rest = inside;
                    State::String(unescape::Pending::default())
                }
                [..] => State::Other(layout::Position::default()),
            };
        }
        match self.state {
            State::Start => {}
            State::String(pending) => {
                let mut unescape = Unescape::resume(self.out, pending);
                unescape.write_all(rest)?;
                self.state = State::String(unescape.pending());
            }
            State::Other(position) => {
                let mut layout = Layout::resume(self.spacing, self.out, position);
                layout.write_all(rest)?;
                self.state = State::Other(layout.position());
            }
        }
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
