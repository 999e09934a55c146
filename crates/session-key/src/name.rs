//! Short names made of `[a-z0-9_-]`: what agent ids and segments have in common.

use std::borrow::Cow;

/// The longest agent id or segment, in bytes. A UUID needs 36; 64 leaves room for a prefix.
pub(crate) const MAX_LENGTH: usize = 64;

/// The faults of an agent id or a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameFault {
    /// Nothing stands where a name should.
    #[error("is missing")]
    Empty,
    /// The name goes on after its 64th character.
    #[error("is longer than {MAX_LENGTH} characters")]
    TooLong,
    /// A character that may stand later in an agent id, but not at its beginning.
    #[error("cannot begin with {0:?}")]
    First(char),
    /// A character that stands in no name.
    #[error("cannot contain {0:?}")]
    Character(char),
}

/// The position of a fault: the byte, counted from the name's beginning, and the fault.
pub(crate) type Misplaced = (usize, NameFault);

/// Checks an agent id, `[a-z0-9][a-z0-9_-]{0,63}`.
pub(crate) fn check_agent_id(name: &str) -> Result<(), Misplaced> {
    match name.chars().next() {
        Some(first @ ('-' | '_')) => Err((0, NameFault::First(first))),
        _ => check_segment(name),
    }
}

/// Checks a segment, `[a-z0-9_-]{1,64}`.
pub(crate) fn check_segment(name: &str) -> Result<(), Misplaced> {
    let stands = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    // Without an early way out the compiler checks 16 bytes at a time; nearly every name is sound.
    let sound = name.bytes().fold(true, |sound, byte| sound & stands(byte));
    if sound && (1..=MAX_LENGTH).contains(&name.len()) {
        return Ok(());
    }
    // All before the first byte that does not stand is ASCII, so that byte begins a character.
    let wrong = name.bytes().position(|byte| !stands(byte)).unwrap_or(name.len());
    Err(match name[wrong..].chars().next() {
        _ if wrong >= MAX_LENGTH => (MAX_LENGTH, NameFault::TooLong),
        Some(character) => (wrong, NameFault::Character(character)),
        None => (0, NameFault::Empty),
    })
}

/// Trimmed and with ASCII letters in lower case; borrowed when it already was.
pub(crate) fn canonical(input: &str) -> Cow<'_, str> {
    let trimmed = input.trim();
    if trimmed.bytes().fold(false, |upper, byte| upper | byte.is_ascii_uppercase()) {
        Cow::Owned(trimmed.to_ascii_lowercase())
    } else {
        Cow::Borrowed(trimmed)
    }
}

/// Writes what names and keys share, whose text is this field of theirs: text in, text out, compared with text.
macro_rules! impl_text {
    ($Name:ident, $text:tt, $Error:ident) => {
        impl $Name {
            /// The whole of it as text.
            pub fn as_str(&self) -> &str {
                &self.$text
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.$text)
            }
        }

        impl std::str::FromStr for $Name {
            type Err = $Error;

            fn from_str(input: &str) -> Result<Self, $Error> {
                Self::parse(input)
            }
        }

        impl AsRef<str> for $Name {
            fn as_ref(&self) -> &str {
                &self.$text
            }
        }

        // A map keyed by them can be asked with text; hash and order are those of the text.
        impl std::borrow::Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                &self.$text
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.$text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::wire::deserialize(deserializer)
            }
        }

        impl PartialEq<str> for $Name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $Name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }
    };
}
pub(crate) use impl_text;
