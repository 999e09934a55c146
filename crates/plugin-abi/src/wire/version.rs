//! The fields in which each document tells its own form: `"v"`, and `"must"` where it needs it.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of every document here.
const V: u32 = 1;

/// `"v"`. Another number means that a field has changed its meaning, so a document with one is not read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version;

/// `"must"`: what a reader has to know so that it does not misread the document. Nothing has a name so far, so nothing that is
/// written here has this field, and what asks for anything is refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Must;

impl Must {
    pub(super) const fn is_empty(&self) -> bool {
        true
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        V.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            V => Ok(Self),
            other => Err(D::Error::custom(format!("version {other} is not known here, {V} is"))),
        }
    }
}

impl Serialize for Must {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq([""; 0])
    }
}

impl<'de> Deserialize<'de> for Must {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl<'de> Visitor<'de> for Words {
            type Value = Must;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of words")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<Must, A::Error> {
                match words.next_element::<String>()? {
                    None => Ok(Must),
                    Some(word) => Err(A::Error::custom(format!(
                        "its reader must know `{word}`, which is not known here"
                    ))),
                }
            }
        }

        deserializer.deserialize_seq(Words)
    }
}
