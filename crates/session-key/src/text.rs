//! Two helpers for callers that have only strings and want no errors.
//!
//! They take a malformed key for a root. A decision needs a
//! [`SessionKey`](crate::SessionKey) instead, where a malformed key is an error.

use crate::key::SessionKey;
use crate::{name, parse};

/// The depth of a key given as text: 0 for none, for a malformed one and for a root.
///
/// ```
/// use offshoot_session_key::subagent_depth;
///
/// assert_eq!(subagent_depth(Some("agent:main:subagent:a:sub:b")), 2);
/// assert_eq!(subagent_depth(Some("agent:main:main")), 0);
/// assert_eq!(subagent_depth(Some("not a key")), 0);
/// assert_eq!(subagent_depth(None), 0);
/// ```
pub fn subagent_depth(key: Option<&str>) -> usize {
    let shape = key.map(|key| parse::shape(&name::canonical(key)));
    shape.and_then(Result::ok).map_or(0, |shape| shape.depth)
}

/// The textual parent of a key given as text: none for none, for a malformed one and for a root.
///
/// ```
/// use offshoot_session_key::parent_subagent_key;
///
/// let parent = |key| parent_subagent_key(Some(key));
/// assert_eq!(parent("agent:main:subagent:a:sub:b").as_deref(), Some("agent:main:subagent:a"));
/// assert_eq!(parent("agent:main:subagent:a").as_deref(), Some("agent:main:main"));
/// assert_eq!(parent("agent:main:main"), None);
/// ```
pub fn parent_subagent_key(key: Option<&str>) -> Option<String> {
    SessionKey::parse(key?).ok()?.parent().map(|parent| parent.to_string())
}
