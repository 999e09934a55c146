//! The errors of a plugin that cannot do what it was asked.

use offshoot_model::error_chain;
use offshoot_plugin_abi::AbiError;
use offshoot_runtime::MergeFault;

/// An error of a plugin, as its host will show it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: u32,
    message: String,
}

impl Error {
    /// The request is wrong in itself: a field is missing, a value out of range.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: AbiError::INVALID, message: message.into() }
    }

    /// The request was tried and did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: AbiError::FAILED, message: message.into() }
    }

    /// There is no such thing here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { code: AbiError::UNSUPPORTED, message: message.into() }
    }

    /// True if it is [`unsupported`](Self::unsupported).
    pub fn is_unsupported(&self) -> bool {
        self.code == AbiError::UNSUPPORTED
    }

    /// Not now: trying again can help.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { code: AbiError::UNAVAILABLE, message: message.into() }
    }

    /// A limit was reached.
    pub fn limit(message: impl Into<String>) -> Self {
        Self { code: AbiError::LIMIT, message: message.into() }
    }

    /// The request was tried and did not work, for this reason and the reasons behind it.
    pub fn because(error: &dyn std::error::Error) -> Self {
        Self::failed(error_chain(error))
    }
}

impl From<AbiError> for Error {
    fn from(error: AbiError) -> Self {
        Self { code: error.known_code(), message: error.message.into() }
    }
}

impl From<Error> for MergeFault {
    fn from(error: Error) -> Self {
        Self::new(error.message)
    }
}

impl From<Error> for AbiError {
    fn from(error: Error) -> Self {
        Self::new(error.code, error.message)
    }
}
