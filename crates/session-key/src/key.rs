//! The address of an agent session.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::agent_id::AgentId;
use crate::ancestors::Ancestors;
use crate::error::ParseKeyError;
use crate::kind::KeyKind;
use crate::name;
use crate::parse::{self, PREFIX, Shape};
use crate::segment::Segment;

/// The address of an agent session. Compared, ordered and hashed as its text; cloning shares it.
///
/// ```
/// use offshoot_session_key::{AgentId, Segment, SessionKey};
///
/// let root = SessionKey::root_run(&AgentId::main(), &Segment::parse("0198-a")?);
/// assert_eq!(root.as_str(), "agent:main:run:0198-a");
///
/// let child = root.child(&AgentId::parse("scanner")?, &Segment::parse("0198-b")?);
/// assert_eq!(child.as_str(), "agent:scanner:subagent:0198-b");
///
/// // By the text a child of any root belongs to the agent's main session; that this one was
/// // started by a run stands in the record.
/// assert_eq!(child.parent().unwrap().as_str(), "agent:scanner:main");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    text: Arc<str>,
    shape: Shape,
}

impl SessionKey {
    /// Parses a key, trimmed and lower-cased.
    ///
    /// # Errors
    ///
    /// When the input is not a key by the grammar on the crate's page.
    pub fn parse(input: &str) -> Result<Self, ParseKeyError> {
        let text = name::canonical(input);
        match parse::shape(&text) {
            Ok(shape) => Ok(Self::from_parts(&text, shape)),
            Err((position, kind)) => Err(ParseKeyError::new(input.trim(), position, kind)),
        }
    }

    /// The main session of an agent, `agent:{id}:main`.
    pub fn main(agent: &AgentId) -> Self {
        Self::root(agent, format_args!("main"), KeyKind::Main)
    }

    /// A root that was started as a run of its own, `agent:{id}:run:{segment}`.
    pub fn root_run(agent: &AgentId, segment: &Segment) -> Self {
        Self::root(agent, format_args!("run:{segment}"), KeyKind::Other)
    }

    /// A root that a client of the Model Context Protocol opened, `agent:{id}:mcp:{segment}`.
    pub fn root_mcp(agent: &AgentId, segment: &Segment) -> Self {
        Self::root(agent, format_args!("mcp:{segment}"), KeyKind::Other)
    }

    /// The key of a new child of this session: below a root `agent:{target}:subagent:{segment}`,
    /// below a sub-agent this key with `:sub:{segment}` added.
    ///
    /// In the second case the key keeps its agent and does not name `target`.
    pub fn child(&self, target: &AgentId, segment: &Segment) -> Self {
        if self.is_root() {
            let shape = Shape { agent_end: agent_end(target), kind: KeyKind::Subagent, depth: 1 };
            let text = [PREFIX, target.as_str(), ":subagent:", segment.as_str()].concat();
            Self { text: Arc::from(text), shape }
        } else {
            let shape = Shape { depth: self.shape.depth + 1, ..self.shape };
            Self { text: Arc::from([self.as_str(), ":sub:", segment.as_str()].concat()), shape }
        }
    }

    /// The agent in the key, as text. For a sub-agent's child it is that of the ancestor at depth
    /// 1: the agent that runs there is in the record, not in the key.
    pub fn agent_str(&self) -> &str {
        &self.text[PREFIX.len()..usize::from(self.shape.agent_end)]
    }

    /// The agent in the key, see [`agent_str`](Self::agent_str). Allocates the id.
    pub fn agent_id(&self) -> AgentId {
        AgentId::from_checked(self.agent_str())
    }

    /// Returns the kind of session that the key addresses.
    pub fn kind(&self) -> KeyKind {
        self.shape.kind
    }

    /// Levels below the root: 0 for a root, 1 for its child, one more for each `:sub:`.
    pub fn depth(&self) -> usize {
        self.shape.depth
    }

    /// The key one level up by the text: without the last `:sub:…`, or the agent's main session;
    /// of a root none. A session of that key need not exist.
    pub fn parent(&self) -> Option<SessionKey> {
        self.ancestors().next()
    }

    /// All keys above this one by the text, nearest first.
    pub fn ancestors(&self) -> Ancestors<'_> {
        Ancestors { text: &self.text, shape: self.shape }
    }

    /// True if this is the key of a session that another one asked for.
    pub fn is_subagent(&self) -> bool {
        self.kind() == KeyKind::Subagent
    }

    /// True if this is a root: any session that is not a sub-agent.
    pub fn is_root(&self) -> bool {
        !self.is_subagent()
    }

    pub(crate) fn from_parts(text: &str, shape: Shape) -> Self {
        Self { text: Arc::from(text), shape }
    }

    fn root(agent: &AgentId, rest: fmt::Arguments<'_>, kind: KeyKind) -> Self {
        let shape = Shape { agent_end: agent_end(agent), kind, depth: 0 };
        Self { text: Arc::from(format!("{PREFIX}{agent}:{rest}")), shape }
    }
}

fn agent_end(agent: &AgentId) -> u8 {
    u8::try_from(PREFIX.len() + agent.as_str().len()).expect("an agent id has at most 64 bytes")
}

name::impl_text!(SessionKey, text, ParseKeyError);

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionKey").field(&self.as_str()).finish()
    }
}

// Of the text alone, as it is borrowed: the shape follows from it.
impl Hash for SessionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}
