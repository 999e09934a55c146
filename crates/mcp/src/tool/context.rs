//! `context_put`, `context_info` and `context_read`.

use offshoot_door::{Client, ContextGet, ContextInfo, ContextPut, Value, VariableKind};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const PUT_WORDS: &str = "\
Keep a value under a name, to hand it to children by `context` of sessions_spawn without repeating it. Takes exactly \
one of text, json and path.";

pub(super) const INFO_WORDS: &str =
    "What a value is: kind, size, hash and the file in which it can be read.";

pub(super) const READ_WORDS: &str = "\
Read a value, a range of its bytes, or with `grep` its lines in which something is found, numbered. A whole value that is \
large is answered as the path of its file. Where there is `more`, `next` is the offset that goes on. The result of a \
child is the value `sub-result-{run id}`.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PutArguments {
    /// Any text up to 200 characters.
    name: String,
    /// The value, where it is text.
    text: Option<String>,
    /// The value, where it is JSON.
    json: Option<serde_json::Value>,
    /// The absolute path of a file with the value. The file is copied.
    path: Option<String>,
    /// What a file is; where absent, text where it is UTF-8.
    kind: Option<Kind>,
}

/// What a value is.
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
    /// Which; all of this session where absent.
    name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// Its name.
    name: String,
    /// From this byte; from the first where absent.
    offset: Option<u64>,
    /// At most so many bytes.
    length: Option<u64>,
    /// Only the lines in which this regular expression is found, from `offset` on.
    grep: Option<String>,
    /// With `grep`: so many lines around each of them.
    context_lines: Option<u32>,
}

pub(super) async fn put(client: &Client, arguments: PutArguments) -> Result<JsonText, CallFailure> {
    let PutArguments { name, text, json: value, path, kind } = arguments;
    let value = match (text, value, path) {
        (Some(text), None, None) => Value::Text(text),
        (None, Some(value), None) => Value::Json(json(&value)),
        (None, None, Some(path)) => Value::Path(path),
        _ => {
            let message = "takes exactly one of `text`, `json` and `path`";
            return Err(CallFailure::invalid("value", message));
        }
    };
    let kind = kind.map(|kind| match kind {
        Kind::Text => VariableKind::Text,
        Kind::Json => VariableKind::Json,
        Kind::Bytes => VariableKind::Bytes,
    });
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
