//! The id of an agent: who runs, as opposed to which session of it.

use std::sync::Arc;

use crate::name::{self, NameFault};

/// The id of an agent, `[a-z0-9][a-z0-9_-]{0,63}`. Cloning shares the text.
///
/// ```
/// use offshoot_session_key::AgentId;
///
/// assert_eq!(AgentId::parse(" Security-Scanner ")?, "security-scanner");
/// assert_eq!(AgentId::main(), "main");
/// # Ok::<(), offshoot_session_key::ParseAgentIdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// Parses an id, trimmed and lower-cased as keys are.
    ///
    /// # Errors
    ///
    /// When what is left is empty, too long, or holds a character that no id may hold.
    pub fn parse(input: &str) -> Result<Self, ParseAgentIdError> {
        let text = name::canonical(input);
        name::check_agent_id(&text)
            .map_err(|(position, fault)| ParseAgentIdError { position, fault })?;
        Ok(Self(Arc::from(text)))
    }

    /// The agent that is meant where none is named: `main`.
    pub fn main() -> Self {
        Self(Arc::from("main"))
    }

    /// For text that the key's parser has checked.
    pub(crate) fn from_checked(text: &str) -> Self {
        debug_assert_eq!(name::check_agent_id(text), Ok(()));
        Self(Arc::from(text))
    }
}

name::impl_text!(AgentId, 0, ParseAgentIdError);

/// The error of a text that is not an agent id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("agent id {fault} (byte {position})")]
#[non_exhaustive]
pub struct ParseAgentIdError {
    /// The byte of the trimmed input at which it goes wrong.
    pub position: usize,
    /// The fault.
    pub fault: NameFault,
}

impl ParseAgentIdError {
    /// Returns a description of valid agent ids.
    pub fn hint(&self) -> &'static str {
        "an agent id is 1 to 64 letters, digits, `_` or `-`, and begins with a letter or a digit"
    }
}
