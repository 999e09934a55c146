//! Values that agents read and write.

use std::path::PathBuf;

use offshoot_model::{ContentHash, JsonText, PathText, ValueKind, path_text};
use serde::{Deserialize, Serialize};

use super::Word;

/// `context.put`: a value under a name of the caller's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextPut {
    /// Any text up to 200 characters.
    pub name: String,
    /// The value.
    pub value: Value,
    /// The kind: `text`, `json` or `bytes`. Where absent, it follows from the content: a text is text, JSON is JSON, and a file
    /// or bytes are text where they are UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueKind>,
}

/// `context.get`: a value, a part of it, or the lines of it in which something stands.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextGet {
    /// The name of the value.
    pub name: String,
    /// From this byte; from the first where absent.
    pub offset: Option<u64>,
    /// At most so many bytes. The supervisor may give fewer, and then says that there is more.
    pub length: Option<u64>,
    /// Only the lines in which this regular expression is found, from `offset` on.
    pub grep: Option<String>,
    /// With `grep`: so many lines around each of them.
    pub context_lines: Option<u32>,
}

/// `context.info`: what a value is, without the value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextInfo {
    /// The name of the value; all values that the caller may read where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A value, with what it is: `{"text": …}`, `{"json": …}`, `{"base64": …}`, `{"file": …}` or `{"path": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The value as text.
    Text(String),
    /// One JSON value.
    Json(JsonText),
    /// The value as bytes.
    Base64(String),
    /// To the supervisor only: the content of a file, whose descriptor is sent with the line. The text is what messages call it;
    /// it is never opened. The supervisor copies the file from its beginning.
    File(String),
    /// From the supervisor only: the absolute path of a file with the value, where that is too large for a line.
    Path(PathText),
}

/// A value without its content.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    /// The name by which the caller knows it.
    pub name: String,
    /// The kind of the value.
    pub kind: Word<ValueKind>,
    /// In bytes.
    pub size: u64,
    /// Of its content.
    pub hash: ContentHash,
    /// The path at which the caller can read it.
    #[serde(default, with = "path_text")]
    pub path: Option<PathBuf>,
    /// Since when it exists, RFC 3339.
    pub created_at: Option<String>,
}

/// The answer to `context.get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextRead {
    /// The value.
    pub variable: Variable,
    /// The bytes asked for. Of a `grep` the lines as text, each behind its number: `7:` where it was found, `6-` around
    /// it, and `--` between lines that do not follow each other.
    pub value: Value,
    /// True if there are more after these.
    #[serde(default)]
    pub more: bool,
    /// The `offset` at which to continue, where there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// The answer to `context.info`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variables {
    /// By name.
    pub variables: Vec<Variable>,
}

impl ContextPut {
    /// A value that is what it looks like.
    pub fn new(name: impl Into<String>, value: Value) -> Self {
        Self { name: name.into(), value, kind: None }
    }
}
