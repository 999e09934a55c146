//! Words of a closed list that a later version may have made longer.
//!
//! A document that tells what happened can be used although one word of it is new. The functions here are for `serde`'s
//! `deserialize_with`: each reads a word that is not known as what promises least.

use std::borrow::Cow;
use std::fmt;

use offshoot_model::{
    CancelledBy, ContentHash, Reason, Refusal, RefusalCode, RunStatus, ValueKind, VariableRef,
};
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A word, or a word with what belongs to it (`"text"`, `{"file": {…}}`).
#[derive(Debug, PartialEq)]
pub(super) enum Word<T> {
    Known(T),
    /// One of a later version.
    Other(String),
}

impl<T> Word<T> {
    pub(super) fn known(self) -> Option<T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Other(_) => None,
        }
    }
}

impl<T: Serialize> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(known) => known.serialize(serializer),
            Self::Other(word) => word.serialize(serializer),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let Said(word) = serde_json::from_str(raw).map_err(D::Error::custom)?;
        match T::deserialize(StrDeserializer::new(&word)) {
            Err(Miss::Word) => Ok(Self::Other(word.into_owned())),
            // A word that is known, whatever belongs to it.
            _ => serde_json::from_str(raw).map(Self::Known).map_err(D::Error::custom),
        }
    }
}

/// A kind of value. Anything is bytes.
pub(super) fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ValueKind, D::Error> {
    Ok(Word::deserialize(deserializer)?.known().unwrap_or(ValueKind::Bytes))
}

/// A reference to a value, of any kind: `serde`'s `with`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "VariableRef", rename_all = "camelCase")]
pub(super) struct Reference {
    hash: ContentHash,
    size: u64,
    #[serde(deserialize_with = "kind")]
    kind: ValueKind,
}

/// A status. One that is not known is no success, and nothing more can be said of it.
pub(super) fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RunStatus, D::Error> {
    Ok(Word::deserialize(deserializer)?.known().unwrap_or(RunStatus::Lost))
}

/// A reason. One that is not known is an error of the runtime, with the reason as it came.
pub(super) fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reason, D::Error> {
    #[derive(Deserialize)]
    struct Words<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow, default)]
        by: Option<Cow<'a, str>>,
    }

    let raw = <&RawValue>::deserialize(deserializer)?.get();
    let error = match serde_json::from_str(raw) {
        Ok(reason) => return Ok(reason),
        Err(error) => error,
    };
    let unknown = serde_json::from_str(raw).is_ok_and(|Words { kind, by }| {
        let kind = MapDeserializer::new([("kind", &*kind)].into_iter());
        let by = by.map(|by| CancelledBy::deserialize(StrDeserializer::new(&by)));
        matches!(Reason::deserialize(kind), Err(Miss::Word)) || matches!(by, Some(Err(Miss::Word)))
    });
    if unknown {
        let message = format!("it ended for a reason that is not known here: {raw}");
        return Ok(Reason::RuntimeError { message, retryable: false });
    }
    Err(D::Error::custom(error))
}

/// A refusal. One by a rule that is not known says that the caller may not, and why in its text.
pub(super) fn refusal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Refusal, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Document {
        code: Word<RefusalCode>,
        message: String,
        #[serde(default)]
        hint: Option<String>,
        #[serde(default)]
        governed_by: Option<Box<offshoot_model::GovernedBy>>,
        #[serde(default)]
        field: Option<String>,
    }

    let Document { code, message, hint, governed_by, field } = Document::deserialize(deserializer)?;
    let (code, message) = match code {
        Word::Known(code) => (code, message),
        Word::Other(word) => (RefusalCode::CannotDelegate, format!("{message} ({word})")),
    };
    let mut refusal = Refusal::new(code, message);
    (refusal.hint, refusal.governed_by, refusal.field) = (hint, governed_by, field);
    Ok(refusal)
}

/// A refusal, where there is one.
pub(super) fn refusal_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Refusal>, D::Error> {
    #[derive(Deserialize)]
    struct Any(#[serde(deserialize_with = "refusal")] Refusal);

    Ok(Option::<Any>::deserialize(deserializer)?.map(|Any(refusal)| refusal))
}

/// The word of `"word"` or of `{"word": …}`.
struct Said<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Said<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Said<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, or an object with one")
            }

            fn visit_borrowed_str<E: Error>(self, word: &'de str) -> Result<Said<'de>, E> {
                Ok(Said(word.into()))
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Said<'de>, E> {
                Ok(Said(word.to_owned().into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Said<'de>, A::Error> {
                let Some((word, IgnoredAny)) = map.next_entry::<String, _>()? else {
                    return Err(A::Error::custom("there is no word in it"));
                };
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Said(word.into()))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// The reason why a word could not be read: all that is asked here.
#[derive(Debug)]
enum Miss {
    /// The word is not in the list.
    Word,
    /// The word is in the list, and there should be more than the word.
    More,
}

impl Error for Miss {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::More
    }

    fn unknown_variant(_variant: &str, _expected: &'static [&'static str]) -> Self {
        Self::Word
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word => "no such word",
            Self::More => "more than a word",
        })
    }
}

impl std::error::Error for Miss {}
