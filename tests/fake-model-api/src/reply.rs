//! What the model does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the model does when its rule holds. Texts and inputs are templates: see [`Reply::text`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// Says something and ends its turn.
    Text(String),
    /// Calls tools, all at once.
    Calls(Vec<ToolCall>),
    /// Fails before it says anything.
    Error(ApiError),
    /// Says nothing for ever. The connection stays open.
    Hang,
    /// Says something word by word, with a pause before each.
    #[serde(rename_all = "camelCase")]
    Slow {
        /// What it says.
        text: String,
        /// Before each word, in milliseconds.
        pause_ms: u64,
    },
    /// Begins to say something, and then the stream breaks.
    Broken(Break),
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool's name, as it was offered; `{namespace}.{name}` where it was offered in a namespace.
    pub name: String,
    /// Its input. Every string in it is a template.
    pub input: Value,
}

/// An error of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiError {
    /// The status of the response.
    pub status: u16,
    /// The type of the error, such as `overloaded_error`.
    pub kind: String,
    /// Its text.
    pub message: String,
    /// After how many seconds to come again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// A quota of the account is used up: the number of seconds until it is reset, which stands in the headers of a subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_resets_in: Option<u64>,
}

/// How a stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Break {
    /// The connection ends in the middle of an event.
    Cut,
    /// An event is no JSON.
    Garbage,
    /// The service says that it is overloaded.
    Overloaded,
    /// Nothing more comes, and the connection stays open.
    Silence,
}

/// The numbers that come with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read, without those of the cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
}

impl Reply {
    /// Says something. The text is a template:
    ///
    /// | in the text | becomes |
    /// |---|---|
    /// | `{{prompt}}` | what the user said last |
    /// | `{{result}}` | what the tools answered, one below the other |
    /// | `{{result:/a/0}}` | one value of the JSON in the first answer of a tool, by its pointer |
    /// | `{{results:/a/0}}` | that value of each answer, with a space between |
    /// | `{{tools}}` | the names of the tools on offer |
    /// | `{{model}}`, `{{turn}}`, `{{step}}` | of the conversation |
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Calls one tool.
    pub fn call(name: impl Into<String>, input: Value) -> Self {
        Self::Calls(vec![ToolCall { name: name.into(), input }])
    }

    /// Too many requests. Zero seconds make a client that honours the header come again at once.
    pub fn rate_limit(retry_after: Duration) -> Self {
        let mut error = ApiError::new(429, "rate_limit_error", "slow down");
        error.retry_after = Some(retry_after.as_secs());
        Self::Error(error)
    }

    /// The five hours of a subscription are used up, until a reset in this time.
    pub fn wall(resets_in: Duration) -> Self {
        let mut error = ApiError::new(429, "rate_limit_error", "the quota is used up");
        error.quota_resets_in = Some(resets_in.as_secs());
        Self::Error(error)
    }

    /// Overloaded.
    pub fn overloaded() -> Self {
        Self::Error(ApiError::new(529, "overloaded_error", "overloaded"))
    }

    /// A key that the server does not know.
    pub fn unauthorized() -> Self {
        Self::Error(ApiError::new(401, "authentication_error", "invalid x-api-key"))
    }

    /// A request that cannot be right.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Error(ApiError::new(400, "invalid_request_error", message))
    }
}

impl ApiError {
    /// An error without a time to come again.
    pub fn new(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: kind.into(),
            message: message.into(),
            retry_after: None,
            quota_resets_in: None,
        }
    }
}

impl Default for Usage {
    /// Some numbers that are not zero and not equal, so that a test sees when they are mixed up.
    fn default() -> Self {
        Self { input: 10, output: 5, cache_read: 0, cache_write: 0 }
    }
}
