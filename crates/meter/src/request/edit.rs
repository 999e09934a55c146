//! Changes of a body: a place, and the text that comes there. Pure.

use std::fmt::Display;
use std::ops::Range;

use hyper::body::Bytes;

use super::Place;

/// A change of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The bytes that are replaced; empty where text is put in.
    pub at: Range<usize>,
    /// The text that comes there.
    pub text: String,
}

/// The body after these changes, in pieces: those of the body itself are shared with it. The changes stand in the order of their places.
pub(crate) fn pieces(body: &Bytes, edits: &[Edit]) -> Vec<Bytes> {
    let mut pieces = Vec::with_capacity(2 * edits.len() + 1);
    let mut from = 0;
    for edit in edits {
        pieces.push(body.slice(from..edit.at.start));
        pieces.push(Bytes::from(edit.text.clone()));
        from = edit.at.end;
    }
    pieces.push(body.slice(from..));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

impl Place {
    /// Puts `key: value` here.
    pub(super) fn plain(&self, key: &str, value: &str) -> Edit {
        match self {
            Self::Replace(at) | Self::NullTable(at) => {
                Edit { at: at.clone(), text: value.to_owned() }
            }
            Self::Behind(at, empty) | Self::NewTable(at, empty) => {
                let comma = if *empty { "" } else { "," };
                Edit { at: *at..*at, text: format!("\"{key}\":{value}{comma}") }
            }
        }
    }

    /// Puts `key: value` here, or a table with that where the table itself is missing.
    pub(super) fn nested(&self, table: &str, key: &str, value: impl Display) -> Edit {
        match self {
            Self::NewTable(..) | Self::NullTable(_) => {
                self.plain(table, &format!("{{\"{key}\":{value}}}"))
            }
            _ => self.plain(key, &value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_share_the_body() {
        let body = Bytes::from_static(b"0123456789");
        let edit = |at: Range<usize>, text: &str| Edit { at, text: text.to_owned() };
        let check = |edits: &[Edit], expected: &str| {
            let pieces = pieces(&body, edits);
            assert_eq!(pieces.concat(), expected.as_bytes());
            let shared = |piece: &&Bytes| body.as_ptr_range().contains(&piece.as_ptr());
            let shared: usize = pieces.iter().filter(shared).map(Bytes::len).sum();
            let replaced: usize = edits.iter().map(|edit| edit.at.len()).sum();
            assert_eq!(shared, body.len() - replaced);
        };
        check(&[], "0123456789");
        check(&[edit(1..1, "a")], "0a123456789");
        check(&[edit(0..0, "a"), edit(2..4, "b"), edit(10..10, "c")], "a01b456789c");
    }
}
