//! A table of JSON by its keys, with the places of its values in the text. Pure.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scan::Text;
use super::{Malformed, Place};

/// A table, as it stands in a text.
pub(super) struct Table<'t> {
    whole: &'t str,
    /// The place in the whole at which the text of this table begins.
    from: usize,
    entries: Vec<(Cow<'t, str>, &'t RawValue)>,
    /// Keys may be written with underlines where they have capitals.
    snake: bool,
}

impl<'t> Table<'t> {
    /// Reads the outermost table. With `snake`, `max_tokens` is the key `maxTokens`.
    pub(super) fn read(text: &'t str, snake: bool) -> Result<Self, Malformed> {
        Self::of(text, text, snake)
    }

    /// Reads a table that is one of the values of this one.
    pub(super) fn inside(&self, value: &'t RawValue) -> Result<Self, Malformed> {
        Self::of(self.whole, value.get(), self.snake)
    }

    fn of(whole: &'t str, text: &'t str, snake: bool) -> Result<Self, Malformed> {
        let Entries(mut entries) =
            serde_json::from_str(text).map_err(|error| Malformed::Json(error.to_string()))?;
        for (key, _) in entries.iter_mut().filter(|_| snake) {
            if key.contains('_') {
                *key = Cow::Owned(camel(key));
            }
        }
        let mut keys: Vec<_> = entries.iter().map(|(key, _)| (folded(key), &**key)).collect();
        keys.sort_unstable();
        if let Some(twice) = keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Malformed::Twice(twice[0].1.to_owned()));
        }
        // Gemini's words have capitals of their own, and no server takes them in another case.
        let decides = |key: &&str| DECIDING.contains(&folded(key).as_str()) && folded(key) != **key;
        if let Some(key) = entries.iter().map(|(key, _)| &**key).find(decides).filter(|_| !snake) {
            return Err(Malformed::Case(key.to_owned()));
        }
        Ok(Self { whole, from: offset(whole, text), entries, snake })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'t RawValue)> {
        self.entries.iter().map(|(key, value)| (&**key, *value))
    }

    pub(super) fn find(&self, key: &str) -> Option<&'t RawValue> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| *value)
    }

    /// A whole number from zero, also where it is written with a fraction of zero.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<u64>, Malformed> {
        let wrong = Malformed::Value { key, expected: "a whole number" };
        let Some(raw) = self.set(key) else { return Ok(None) };
        if let Ok(number) = raw.parse() {
            return Ok(Some(number));
        }
        // A text with digits is a number to some servers.
        let digits = raw.trim_matches('"');
        match digits.parse::<f64>() {
            Ok(number) if number.fract() == 0.0 && (0.0..1e15).contains(&number) => {
                Ok(Some(number as u64))
            }
            _ => Err(wrong),
        }
    }

    pub(super) fn flag(&self, key: &'static str) -> Result<bool, Malformed> {
        match self.set(key) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Malformed::Value { key, expected: "true or false" }),
        }
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>, Malformed> {
        let wrong = |_| Malformed::Value { key, expected: "a text" };
        self.set(key).map(|raw| serde_json::from_str(raw).map_err(wrong)).transpose()
    }

    /// The place of a key's value, or where the key would come.
    pub(super) fn place(&self, key: &str) -> Place {
        match self.find(key) {
            Some(raw) => Place::Replace(self.range(raw)),
            None => self.behind(),
        }
    }

    /// The place of a table's first entry, where the table is missing or null.
    pub(super) fn missing_table(&self, key: &str) -> Place {
        match self.find(key) {
            Some(raw) => Place::NullTable(self.range(raw)),
            None => {
                let (at, empty) = self.begin();
                Place::NewTable(at, empty)
            }
        }
    }

    /// The place behind the opening bracket.
    fn behind(&self) -> Place {
        let (at, empty) = self.begin();
        Place::Behind(at, empty)
    }

    fn begin(&self) -> (usize, bool) {
        let text = &self.whole[self.from..];
        let bracket = text.find('{').expect("a table begins with a bracket");
        (self.from + bracket + 1, self.entries.is_empty())
    }

    /// The places of the values of these keys, of those that are there.
    pub(super) fn places(&self, keys: &[&'static str]) -> Vec<(&'static str, Range<usize>)> {
        keys.iter().filter_map(|key| Some((*key, self.range(self.find(key)?)))).collect()
    }

    fn range(&self, raw: &RawValue) -> Range<usize> {
        let from = offset(self.whole, raw.get());
        from..from + raw.get().len()
    }

    /// A value that is not null.
    fn set(&self, key: &str) -> Option<&'t str> {
        self.find(key).map(RawValue::get).filter(|raw| *raw != "null")
    }
}

/// Keys that decide what a request costs.
const DECIDING: [&str; 12] = [
    "background",
    "include_usage",
    "input",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "service_tier",
    "stream",
    "stream_options",
];

/// Returns a key as servers compare it that do not tell capitals from small letters. Two signs of other scripts are letters to them.
fn folded(key: &str) -> String {
    key.to_uppercase().to_lowercase()
}

/// Returns the place at which a part of a text begins in it.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

struct Entries<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Entries<'t> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Read<'t>(std::marker::PhantomData<&'t ()>);
        impl<'de: 't, 't> Visitor<'de> for Read<'t> {
            type Value = Entries<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'t>, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    entries.push((key.0, value));
                }
                Ok(Entries(entries))
            }
        }
        reader.deserialize_map(Read(std::marker::PhantomData))
    }
}
