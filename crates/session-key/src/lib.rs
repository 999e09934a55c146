//! Session keys: the address of an agent session in a tree of agents, and the only place that
//! splits one on `:`.
//!
//! ```text
//!  agent : main : main                               the main session of an agent   depth 0
//!  agent : main : run:0198c0de-…                     another root: a run, a channel  depth 0
//!  agent : main : subagent:0198c0de-…                a child                         depth 1
//!  agent : main : subagent:0198c0de-… : sub:0198…    a child's child                 depth 2
//! ```
//!
//! ```
//! use offshoot_session_key::{KeyKind, Segment, SessionKey};
//!
//! let child = SessionKey::parse("agent:main:subagent:0198-a")?;
//! assert_eq!(child.kind(), KeyKind::Subagent);
//! assert_eq!(child.depth(), 1);
//!
//! let grandchild = child.child(&child.agent_id(), &Segment::parse("0198-b")?);
//! assert_eq!(grandchild.as_str(), "agent:main:subagent:0198-a:sub:0198-b");
//! assert_eq!(grandchild.parent(), Some(child));
//!
//! // A malformed key is an error with a place, never a silent depth 0.
//! let error = SessionKey::parse("agent:main:subagent:a:thread:x").unwrap_err();
//! assert_eq!(error.position, 22);
//! assert_eq!(error.caret(), "agent:main:subagent:a:thread:x\n                      ^");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Grammar
//!
//! ```text
//! key      = "agent:" agent-id ":" rest
//! agent-id = [a-z0-9][a-z0-9_-]{0,63}
//! rest     = "main" | subagent | other
//! subagent = "subagent:" segment *( ":sub:" segment )
//! segment  = [a-z0-9_-]{1,64}
//! other    = token *( ":" token )       the first is not "subagent"
//! token    = one or more characters, none of them white space or control
//! ```
//!
//! Input is trimmed and its ASCII letters are lower-cased first; positions in errors are bytes of
//! the trimmed input.
//!
//! # Promise
//!
//! - Whatever was parsed prints as itself and parses again to the same key; no input panics.
//! - Parsing allocates the text of the key and nothing else, and cloning a key shares that text.
//! - Nothing here mints an identifier or reads a clock: the caller brings its [`Segment`].
//! - A key is an address, not a proof of descent. The textual parent may name a session that never
//!   existed; who asked for a session is a question for the record of runs.

mod agent_id;
mod ancestors;
mod error;
mod key;
mod kind;
mod name;
mod parse;
mod segment;
mod text;
mod wire;

pub use agent_id::{AgentId, ParseAgentIdError};
pub use ancestors::Ancestors;
pub use error::{ParseKeyError, ParseKeyErrorKind};
pub use key::SessionKey;
pub use kind::KeyKind;
pub use name::NameFault;
pub use segment::{ParseSegmentError, Segment};
pub use text::{parent_subagent_key, subagent_depth};
