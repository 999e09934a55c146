//! Words in answers. A word of a later version is read as `Unknown`.

use offshoot_model::RunStatus;
use serde::de::DeserializeOwned;
use serde::de::value::{self, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A word of an answer, which a later version may have added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, derive_more::Display)]
pub enum Word<T> {
    /// A word that is known here.
    Known(T),
    /// A word of a later version.
    #[display("unknown")]
    Unknown,
}

/// The kind of an entry of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum EntryKind {
    /// The task of the session.
    Task,
    /// A report of the session.
    Report,
    /// A message that was sent to it.
    Message,
    /// A request of the session: a child, a wait, a merge.
    Request,
    /// A result that it was given.
    Result,
    /// The answer of the session.
    Answer,
    /// Anything else that happened to it.
    Event,
    /// A word of a later version.
    #[serde(other)]
    #[strum(to_string = "event")]
    Unknown,
}

/// As whom a connection was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerWord {
    /// A running agent.
    Run,
    /// The person who owns the tree, or a command of theirs.
    Operator,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

impl<T> Word<T> {
    /// Returns what it is, where that is known here.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Unknown => None,
        }
    }
}

impl Word<RunStatus> {
    /// Returns whether it is `completed`. No other word is success, least of all one that is not known.
    pub fn is_success(self) -> bool {
        self.known().is_some_and(RunStatus::is_success)
    }

    /// Returns whether nothing can follow.
    pub fn is_terminal(self) -> bool {
        self.known().is_some_and(RunStatus::is_terminal)
    }
}

impl<T> From<T> for Word<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

impl<T: Serialize> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(known) => known.serialize(serializer),
            Self::Unknown => serializer.serialize_str("unknown"),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = T::deserialize(StrDeserializer::<value::Error>::new(&word));
        Ok(known.map_or(Self::Unknown, Self::Known))
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::ValueKind;

    use super::*;

    #[test]
    fn later_words_are_unknown_and_no_success() {
        let state: Word<RunStatus> = serde_json::from_str("\"hibernating\"").unwrap();
        assert_eq!(state, Word::Unknown);
        assert!(!state.is_success() && !state.is_terminal());
        let known: Word<RunStatus> = serde_json::from_str("\"timed_out\"").unwrap();
        assert_eq!(known, RunStatus::TimedOut.into());
        assert!(!known.is_success() && known.is_terminal());
        assert_eq!(serde_json::to_string(&known).unwrap(), "\"timed_out\"");
        assert!(serde_json::from_str::<Word<RunStatus>>("7").is_err());
        assert_eq!(serde_json::from_str::<Word<ValueKind>>("\"video\"").unwrap(), Word::Unknown);
        assert_eq!(serde_json::from_str::<EntryKind>("\"dream\"").unwrap(), EntryKind::Unknown);
        assert_eq!(serde_json::from_str::<CallerWord>("\"guest\"").unwrap(), CallerWord::Unknown);
    }
}
