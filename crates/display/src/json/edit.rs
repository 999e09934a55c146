//! Edits of a JSON text at named places, without a copy of the rest.

use std::fmt;
use std::ops::Range;

use offshoot_model::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The places of a value that are edited.
#[derive(Debug)]
pub(super) enum Place {
    /// Microseconds, which become RFC 3339.
    Time,
    /// An object whose first field `kind` says what it is: it is called `type`.
    Tag,
    /// A word, or an object with one word as its key: an object with this word as its `type`, and the fields of what the word
    /// was the key of. What has no fields is its `value`. Places of single words are edited as well.
    Kind(&'static [(&'static str, Place)]),
    /// Fields of an object.
    In(&'static [(&'static str, Place)]),
    /// The elements of an array.
    Each(&'static Place),
    /// The same as another one.
    Same(&'static Place),
    /// All of these, of the same value.
    All(&'static [Place]),
}

/// The fields of an object, as they are written.
struct Fields<'a>(Vec<(&'a str, &'a RawValue)>);

/// Replacements of parts of a text.
struct Edits<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

/// The text with the places edited.
pub(super) fn edited(text: String, place: &Place) -> String {
    let mut edits = Edits { text: &text, edits: Vec::new() };
    edits.value(text.trim(), place);
    let Edits { mut edits, .. } = edits;
    edits.sort_by_key(|(range, _)| range.start);
    let mut whole = String::with_capacity(text.len() + 16 * edits.len());
    let mut at = 0;
    for (range, new) in edits {
        whole.push_str(&text[at..range.start]);
        whole.push_str(&new);
        at = range.end;
    }
    whole.push_str(&text[at..]);
    whole
}

impl<'a> Edits<'a> {
    fn value(&mut self, value: &'a str, place: &Place) {
        match place {
            Place::Time => self.time(value),
            Place::Tag => self.tag(value),
            Place::Kind(places) => self.kind(value, places),
            Place::In(places) => self.fields(value, places),
            Place::Each(place) => {
                for element in read::<Vec<&RawValue>>(value).into_iter().flatten() {
                    self.value(element.get(), place);
                }
            }
            Place::Same(place) => self.value(value, place),
            Place::All(places) => places.iter().for_each(|place| self.value(value, place)),
        }
    }

    fn fields(&mut self, value: &'a str, places: &[(&str, Place)]) {
        for (name, field) in read::<Fields<'_>>(value).into_iter().flat_map(|Fields(fields)| fields)
        {
            if let Some((_, place)) = places.iter().find(|(place, _)| *place == name) {
                self.value(field.get(), place);
            }
        }
    }

    fn time(&mut self, value: &'a str) {
        if let Some(micros) = read(value) {
            let at = Timestamp::from_micros(micros);
            self.replace(value, format!("\"{at}\""));
        }
    }

    fn tag(&mut self, value: &'a str) {
        if let Some(Fields(fields)) = read(value)
            && let Some(("kind", _)) = fields.first()
        {
            self.replace(fields[0].0, "type".to_owned());
        }
    }

    fn kind(&mut self, value: &'a str, places: &[(&str, Place)]) {
        if value.starts_with('"') {
            return self.replace(value, format!("{{\"type\":{value}}}"));
        }
        let Some(Fields(fields)) = read(value) else { return };
        let [(word, inner)] = fields.as_slice() else { return };
        let (from, inner) = (self.place_of(value), inner.get());
        let (to, start) = (from.end, self.place_of(inner));
        let tag = match read(inner) {
            Some(Fields(fields)) => {
                // Into the object itself, whose own braces stay.
                let comma = if fields.is_empty() { "" } else { "," };
                self.edits.push((start.end..to, String::new()));
                self.edits
                    .push((from.start..start.start + 1, format!("{{\"type\":\"{word}\"{comma}")));
                if let Some((_, place)) = places.iter().find(|(place, _)| place == word) {
                    self.value(inner, place);
                }
                return;
            }
            None => format!("{{\"type\":\"{word}\",\"value\":"),
        };
        self.edits.push((from.start..start.start, tag));
    }

    fn replace(&mut self, old: &'a str, new: String) {
        self.edits.push((self.place_of(old), new));
    }

    /// The place of a part of the text in the whole.
    fn place_of(&self, part: &str) -> Range<usize> {
        let start = part.as_ptr().addr() - self.text.as_ptr().addr();
        start..start + part.len()
    }
}

/// Reads a value; none where it is another.
fn read<'a, T: Deserialize<'a>>(value: &'a str) -> Option<T> {
    serde_json::from_str(value).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static NODE: Place = Place::In(&[("reason", Place::Tag), ("below", Place::Each(&NODE))]);

    const KIND: Place = Place::Kind(&[("ended", Place::In(&[("reason", Place::Tag)]))]);

    #[test]
    fn only_named_places_change() {
        #[track_caller]
        fn check(place: &Place, text: &str, expected: &str) {
            assert_eq!(edited(text.to_owned(), place), expected);
        }
        check(&Place::Time, "1754049600001999", r#""2025-08-01T12:00:00.001999Z""#);
        check(&Place::Time, "0", r#""1970-01-01T00:00:00Z""#);
        check(&Place::Time, "null", "null");
        check(&Place::Time, r#""noon""#, r#""noon""#);
        check(&Place::Tag, r#"{"kind":"idle","seconds":2}"#, r#"{"type":"idle","seconds":2}"#);
        check(&Place::Tag, "{ \"kind\" : \"idle\" }", "{ \"type\" : \"idle\" }");
        check(&Place::Tag, "null", "null");
        check(&Place::Tag, r#"{"by":"me","kind":"x"}"#, r#"{"by":"me","kind":"x"}"#);
        check(&KIND, r#""starting""#, r#"{"type":"starting"}"#);
        check(&KIND, r#"{"letter":{"text":"a}{"}}"#, r#"{"type":"letter","text":"a}{"}"#);
        check(&KIND, r#"{"empty":{}}"#, r#"{"type":"empty"}"#);
        check(&KIND, r#"{"broken":"so"}"#, r#"{"type":"broken","value":"so"}"#);
        check(&KIND, "null", "null");
        check(
            &KIND,
            r#"{"ended":{"output":{"json":{"kind": 1e400,"kind":"x" }},"reason":{"kind":"deadline"}}}"#,
            r#"{"type":"ended","output":{"json":{"kind": 1e400,"kind":"x" }},"reason":{"type":"deadline"}}"#,
        );
        check(
            &KIND,
            "{\n  \"letter\": {\n    \"a\": 1\n  }\n}",
            "{\"type\":\"letter\",\n    \"a\": 1\n  }",
        );
        check(
            &NODE,
            r#"{"below":[{"reason":{"kind":"idle"},"below":[]},{"reason":null}],"kind":"x"}"#,
            r#"{"below":[{"reason":{"type":"idle"},"below":[]},{"reason":null}],"kind":"x"}"#,
        );
        check(&NODE, "not JSON", "not JSON");
    }
}
