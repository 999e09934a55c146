//! The errors of a plugin that cannot do what it was asked.

use offshoot_model::error_chain;
use offshoot_plugin_abi::AbiError;
use offshoot_runtime::MergeFault;
use serde_json::json;

/// An error of a plugin, as its host will show it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: u32,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// The request is wrong in itself: a field is missing, a value out of range.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(AbiError::INVALID, message)
    }

    /// The request was tried and did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(AbiError::FAILED, message)
    }

    /// The same, with what to do about it. Shown where the plugin, a runtime or a merge cannot be used with its settings or on
    /// this machine, which is before a tree is opened.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    fn new(code: u32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// There is no such thing here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(AbiError::UNSUPPORTED, message)
    }

    /// True if it is [`unsupported`](Self::unsupported).
    pub fn is_unsupported(&self) -> bool {
        self.code == AbiError::UNSUPPORTED
    }

    /// Not now: trying again can help.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(AbiError::UNAVAILABLE, message)
    }

    /// A limit was reached.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(AbiError::LIMIT, message)
    }

    /// The request was tried and did not work, for this reason and the reasons behind it.
    pub fn because(error: &dyn std::error::Error) -> Self {
        Self::failed(error_chain(error))
    }
}

impl From<AbiError> for Error {
    fn from(error: AbiError) -> Self {
        Self::new(error.known_code(), error.message)
    }
}

impl From<Error> for MergeFault {
    fn from(error: Error) -> Self {
        Self::new(error.message)
    }
}

impl From<Error> for AbiError {
    fn from(error: Error) -> Self {
        let detail_json = error.hint.map(|hint| json!({"v": 1, "hint": hint}).to_string());
        let detail_json = detail_json.unwrap_or_default().into();
        Self { detail_json, ..Self::new(error.code, error.message) }
    }
}
