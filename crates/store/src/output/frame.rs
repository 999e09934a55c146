//! A part of what was said, as bytes: a head of fixed length, then the part.

use offshoot_model::{Stream, Timestamp};

/// The bytes of the head: kind, length, moment.
pub(super) const HEAD: usize = 16;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Said(Stream),
    /// The attempt is over. The frame holds how many bytes it said in all.
    End,
}

/// A frame that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    pub(super) at: Timestamp,
    pub(super) bytes: &'a [u8],
}

/// Adds a frame.
pub(super) fn push(into: &mut Vec<u8>, kind: Kind, at: Timestamp, bytes: &[u8]) {
    let word: u32 = match kind {
        Kind::Said(Stream::Stdout) => 1,
        Kind::Said(Stream::Stderr) => 2,
        Kind::End => 3,
    };
    let length = u32::try_from(bytes.len()).expect("a frame is smaller than a slot");
    into.extend_from_slice(&word.to_le_bytes());
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(&at.as_micros().to_le_bytes());
    into.extend_from_slice(bytes);
}

/// Takes the first frame; none where what is left is none, as after a crash.
pub(super) fn take<'a>(from: &mut &'a [u8]) -> Option<Frame<'a>> {
    let (head, rest) = from.split_at_checked(HEAD)?;
    let kind = match number(&head[..4]) {
        1 => Kind::Said(Stream::Stdout),
        2 => Kind::Said(Stream::Stderr),
        3 => Kind::End,
        _ => return None,
    };
    let (bytes, rest) = rest.split_at_checked(number(&head[4..8]) as usize)?;
    *from = rest;
    Some(Frame { kind, at: Timestamp::from_micros(number(&head[8..])), bytes })
}

/// A number of at most eight bytes, the lowest first.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
