//! The kind of client that opens a root, as the root's key tells.

use offshoot_model::{AgentId, SessionKey};
use offshoot_session_key::Segment;

/// The kind of client that opens a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootKind {
    /// The command line or a program: `agent:{id}:run:{uuid}`.
    #[default]
    Run,
    /// A client of the Model Context Protocol: `agent:{id}:mcp:{uuid}`.
    Mcp,
}

impl RootKind {
    pub(crate) fn key(self, agent: &AgentId, segment: &Segment) -> SessionKey {
        match self {
            Self::Run => SessionKey::root_run(agent, segment),
            Self::Mcp => SessionKey::root_mcp(agent, segment),
        }
    }
}
