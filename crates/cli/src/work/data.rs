//! An answer inside of JSON.

use std::fmt;
use std::io::{self, Write};

use offshoot_merge::{Answer, AnswerKind, Values};
use offshoot_model::Payload;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The answer as a JSON value: a string that is escaped while it is written, or the JSON it is.
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
                AnswerKind::Text => serializer.collect_str(&Text(answer, *values)),
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

/// An answer as characters, written piece by piece: what is no UTF-8 becomes the replacement character, as JSON has
/// no bytes.
struct Text<'a>(&'a Answer, &'a dyn Values);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Characters { out: f, held: Vec::new() };
        self.0.write_to(&mut out, self.1).and_then(|()| out.finish()).map_err(|_| fmt::Error)
    }
}

/// Bytes in, characters out; the beginning of a character waits for its end.
struct Characters<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    held: Vec<u8>,
}

impl Characters<'_, '_> {
    fn finish(self) -> io::Result<()> {
        self.out.write_str(&String::from_utf8_lossy(&self.held)).map_err(io::Error::other)
    }
}

impl Write for Characters<'_, '_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(block);
        let mut rest = self.held.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.out.write_str(text).map_err(io::Error::other)?;
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (text, after) = rest.split_at(error.valid_up_to());
                    let text = std::str::from_utf8(text).expect("the error says that it is valid");
                    self.out.write_str(text).map_err(io::Error::other)?;
                    let Some(length) = error.error_len() else {
                        rest = after;
                        break;
                    };
                    self.out.write_str("\u{fffd}").map_err(io::Error::other)?;
                    rest = &after[length..];
                }
            }
        }
        self.held = rest.to_vec();
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

    #[test]
    fn characters_survive_any_cut() {
        struct Cut<'a>(&'a [u8], usize);
        impl fmt::Display for Cut<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut out = Characters { out: f, held: Vec::new() };
                let written = self.0.chunks(self.1).try_for_each(|block| out.write_all(block));
                written.and_then(|()| out.finish()).map_err(|_| fmt::Error)
            }
        }
        let bytes = b"x\xe2\x82\xac\xffy\xf0\x9f\xa6\x80\xe2\x82";
        for size in 1..=bytes.len() {
            assert_eq!(Cut(bytes, size).to_string(), "x€\u{fffd}y🦀\u{fffd}", "{size}");
        }
    }
}
