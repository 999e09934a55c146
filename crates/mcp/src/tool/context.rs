//! `context_put`, `context_info` and `context_read`.

use std::path::Path;

use offshoot_door::{Client, ContextGet, ContextInfo, ContextPut, Value};
use offshoot_model::{JsonText, ValueKind};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use super::json_argument::JsonArgument;
use crate::answer::{CallFailure, json};

pub(super) const PUT_WORDS: &str = "\
Keep a value under a name, for `context` of sessions_spawn. Takes exactly one of text, json and path.";

pub(super) const INFO_WORDS: &str =
    "What a value is: kind, size, hash and the file in which it can be read.";

pub(super) const READ_WORDS: &str = "\
Read a value, a range of its bytes, or the lines that `grep` finds; a large one as the path of its file. `next` is the offset that \
goes on. A child's result is `sub-result-{run id}`.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PutArguments {
    /// (Up to 200 characters.)
    name: String,
    /// (A text.)
    text: Option<String>,
    /// A JSON value.
    #[schemars(with = "Option<String>")]
    json: Option<JsonArgument>,
    /// Absolute, of a file, which is copied.
    path: Option<String>,
    /// Of the file.
    kind: Option<Kind>,
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// UTF-8 text.
    Text,
    /// One JSON value.
    Json,
    /// Anything else.
    Bytes,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InfoArguments {
    /// Default: all.
    name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// (Its name.)
    name: String,
    /// (In bytes.)
    offset: Option<u64>,
    /// (In bytes, at most.)
    length: Option<u64>,
    /// A regular expression.
    grep: Option<String>,
    /// (Lines around each that `grep` finds.)
    context_lines: Option<u32>,
}

pub(super) async fn put(client: &Client, arguments: PutArguments) -> Result<JsonText, CallFailure> {
    let PutArguments { name, text, json: value, path, kind } = arguments;
    let kind = kind.map(|kind| match kind {
        Kind::Text => ValueKind::Text,
        Kind::Json => ValueKind::Json,
        Kind::Bytes => ValueKind::Bytes,
    });
    let value = match (text, value, path) {
        (Some(text), None, None) => Value::Text(text),
        (None, Some(JsonArgument(value)), None) => Value::Json(value),
        (None, None, Some(path)) => {
            let path = Path::new(&path);
            if !path.is_absolute() {
                return Err(CallFailure::invalid("path", "the path is not absolute"));
            }
            return Ok(json(&client.put_file(name, kind, path).await?));
        }
        _ => {
            let message = "takes exactly one of `text`, `json` and `path`";
            return Err(CallFailure::invalid("value", message));
        }
    };
    Ok(json(&client.call(ContextPut { name, value, kind }).await?))
}

pub(super) async fn info(
    client: &Client,
    arguments: InfoArguments,
) -> Result<JsonText, CallFailure> {
    let InfoArguments { name } = arguments;
    Ok(json(&client.call(ContextInfo { name }).await?))
}

pub(super) async fn read(
    client: &Client,
    arguments: ReadArguments,
) -> Result<JsonText, CallFailure> {
    let ReadArguments { name, offset, length, grep, context_lines } = arguments;
    Ok(json(&client.call(ContextGet { name, offset, length, grep, context_lines }).await?))
}
