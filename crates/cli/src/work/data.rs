//! An answer inside of JSON.

use std::fmt;
use std::io::{self, Write};

use data_encoding::BASE64;
use offshoot_merge::{Answer, AnswerKind, Values};
use offshoot_model::Payload;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The answer as a JSON value: a string that is escaped while it is written, or the JSON it is. Bytes that are no text are
/// `{"base64": "…"}`.
pub(crate) enum Data<'a> {
    /// Of many pieces.
    Merged(&'a Answer, &'a dyn Values),
    /// Of one run.
    Payload(Payload),
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        match self {
            Self::Payload(Payload::Text(text)) => serializer.serialize_str(text),
            Self::Payload(Payload::Json(json)) => json.serialize(serializer),
            Self::Payload(Payload::Stored(reference)) => {
                serializer.collect_map([("ref", reference)])
            }
            Self::Merged(answer, values) => match answer.kind() {
                AnswerKind::Text => {
                    let is_base64 = !is_utf8(answer, *values).map_err(S::Error::custom)?;
                    let text =
                        format_args!("{}", Characters { answer, values: *values, is_base64 });
                    match is_base64 {
                        true => serializer.collect_map([("base64", text)]),
                        false => serializer.collect_str(&text),
                    }
                }
                AnswerKind::Json => {
                    let mut json = Vec::new();
                    answer.write_to(&mut json, *values).map_err(S::Error::custom)?;
                    let json = serde_json::from_slice::<&RawValue>(&json);
                    json.map_err(S::Error::custom)?.serialize(serializer)
                }
            },
        }
    }
}

/// An answer as characters, written piece by piece: as they are, or in base64 where it is no UTF-8, as JSON has no bytes.
struct Characters<'a> {
    answer: &'a Answer,
    values: &'a dyn Values,
    is_base64: bool,
}

impl fmt::Display for Characters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut write = |block: &[u8]| match self.is_base64 {
            true => BASE64.encode_write(block, f),
            false => f.write_str(std::str::from_utf8(block).map_err(|_| fmt::Error)?),
        };
        let whole: fn(&[u8]) -> usize = match self.is_base64 {
            true => threes,
            false => |held| utf8_up_to(held).unwrap_or(held.len()),
        };
        let mut out = Blocks { held: Vec::new(), whole, write: &mut write };
        self.answer.write_to(&mut out, self.values).map_err(|_| fmt::Error)?;
        let rest = out.held;
        write(&rest)
    }
}

/// True if an answer is UTF-8.
fn is_utf8(answer: &Answer, values: &dyn Values) -> io::Result<bool> {
    let mut is_utf8 = true;
    let mut look = |block: &[u8]| {
        is_utf8 &= utf8_up_to(block).is_some();
        Ok(())
    };
    let whole = |held: &[u8]| utf8_up_to(held).unwrap_or(held.len());
    let mut out = Blocks { held: Vec::new(), whole, write: &mut look };
    answer.write_to(&mut out, values)?;
    // A character whose end is missing.
    let is_whole = out.held.is_empty();
    Ok(is_utf8 && is_whole)
}

/// Returns how many of the bytes are whole groups of three, which base64 writes as four characters.
fn threes(held: &[u8]) -> usize {
    held.len() - held.len() % 3
}

/// Returns the bytes before a character whose end may follow: all of them where none does. `None` where the bytes are no UTF-8.
fn utf8_up_to(block: &[u8]) -> Option<usize> {
    match std::str::from_utf8(block) {
        Ok(_) => Some(block.len()),
        Err(error) if error.error_len().is_none() => Some(error.valid_up_to()),
        Err(_) => None,
    }
}

/// Hands on as many of the bytes written as `whole` says; the rest waits for those that follow.
struct Blocks<'a, W> {
    held: Vec<u8>,
    whole: W,
    write: &'a mut dyn FnMut(&[u8]) -> fmt::Result,
}

impl<W: Fn(&[u8]) -> usize> Write for Blocks<'_, W> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(block);
        let whole = (self.whole)(&self.held);
        (self.write)(&self.held[..whole]).map_err(io::Error::other)?;
        self.held.drain(..whole);
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use offshoot_merge::{Fold, NothingStored, OnFailure, Strategy};

    use super::*;

    fn shown(strategy: Strategy, answers: &[Payload]) -> String {
        let mut fold = Fold::new(strategy, OnFailure::Fail);
        for (place, answer) in (0..).zip(answers) {
            fold.push(place, place.to_string().into(), Ok(answer.clone()));
        }
        let answer = fold.into_partial();
        serde_json::to_string(&Data::Merged(&answer, &NothingStored))
            .expect("plain data does not serialise")
    }

    #[test]
    fn text_is_escaped_and_json_is_not() {
        let answers = [Payload::text("a\"\n"), Payload::text("ß")];
        assert_eq!(shown(Strategy::Concatenate, &answers), r#""a\"\n\n---\nß""#);
        assert_eq!(shown(Strategy::Structured, &answers), r#"{"0":"a\"\n","1":"ß"}"#);
        assert_eq!(shown(Strategy::Sum, &[]), "0");
    }

    /// Writes the bytes in blocks of this size.
    fn blocks(bytes: &[u8], size: usize, whole: fn(&[u8]) -> usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut write = |block: &[u8]| {
            found.push(block.to_vec());
            Ok(())
        };
        let mut out = Blocks { held: Vec::new(), whole, write: &mut write };
        bytes.chunks(size).try_for_each(|block| out.write_all(block)).expect("memory takes it");
        let rest = out.held;
        found.push(rest);
        found
    }

    #[test]
    fn characters_and_groups_of_three_survive_any_cut() {
        let bytes = "x€y🦀ßz".as_bytes();
        for size in 1..=bytes.len() {
            let found = blocks(bytes, size, |held| utf8_up_to(held).expect("it is UTF-8"));
            assert!(found.iter().all(|block| std::str::from_utf8(block).is_ok()), "{size}");
            assert_eq!(found.concat(), bytes, "{size}");
            let found = blocks(bytes, size, threes);
            let (rest, before) = found.split_last().expect("there is a rest");
            assert!(before.iter().all(|block| block.len() % 3 == 0) && rest.len() < 3, "{size}");
        }
        assert_eq!(utf8_up_to(b"a\xff"), None);
    }
}
