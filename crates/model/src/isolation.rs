//! The isolation of a run: the folder in which it works, apart from that of others.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The folder in which a run works. As text: `none`, `worktree`, `worktree:COMMIT` or `copy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(SerializeDisplay, DeserializeFromStr)]
pub enum Isolation {
    /// The folder of the request itself.
    #[default]
    None,
    /// A git worktree of its own.
    Worktree {
        /// The commit that it begins with, as git names it; the one that is checked out where absent.
        commit: Option<Arc<str>>,
    },
    /// A copy of the folder, with what is not committed.
    Copy,
}

/// A text that names no isolation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseIsolationError {
    /// The word is not known.
    #[error("no isolation is called `{found}`: there are none, worktree, worktree:COMMIT and copy")]
    Unknown {
        /// The text.
        found: String,
    },
    /// No commit can have this name.
    #[error("no commit is called `{found}`")]
    Commit {
        /// The text behind `worktree:`.
        found: String,
    },
}

impl Isolation {
    /// The texts that name one, for messages and schemas.
    pub const FORMS: &str = "none, worktree, worktree:COMMIT or copy";

    /// True if the run works in the folder of the request itself.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl FromStr for Isolation {
    type Err = ParseIsolationError;

    fn from_str(text: &str) -> Result<Self, ParseIsolationError> {
        match text {
            "none" => return Ok(Self::None),
            "copy" => return Ok(Self::Copy),
            "worktree" => return Ok(Self::Worktree { commit: None }),
            _ => {}
        }
        let Some(commit) = text.strip_prefix("worktree:") else {
            return Err(ParseIsolationError::Unknown { found: text.to_owned() });
        };
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        // A name with a hyphen in front would be an option of git.
        if commit.is_empty() || commit.starts_with('-') || commit.contains(is_odd) {
            return Err(ParseIsolationError::Commit { found: commit.to_owned() });
        }
        Ok(Self::Worktree { commit: Some(commit.into()) })
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Copy => f.write_str("copy"),
            Self::Worktree { commit: None } => f.write_str("worktree"),
            Self::Worktree { commit: Some(commit) } => write!(f, "worktree:{commit}"),
        }
    }
}

impl JsonSchema for Isolation {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Isolation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(none|copy|worktree(:[^-].*)?)$",
            "description": "The folder in which a run works: none, worktree, worktree:COMMIT or copy.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_its_isolation_are_the_same() {
        for text in ["none", "worktree", "worktree:main", "worktree:HEAD~2", "copy"] {
            let isolation: Isolation = text.parse().expect(text);
            assert_eq!(isolation.to_string(), text);
        }
        for wrong in ["", "None", "work", "worktree:", "worktree:-f", "worktree:a b", "copy:x"] {
            wrong.parse::<Isolation>().expect_err(wrong);
        }
    }
}
