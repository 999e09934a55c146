//! Two helpers for callers that have only strings and want no errors.
//!
//! They take a malformed key for a root. Whoever decides anything parses a
//! [`SessionKey`](crate::SessionKey) instead, where a malformed key is an error.

use crate::key_ref::SessionKeyRef;

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
    parsed(key).map_or(0, |key| key.depth())
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
    parsed(key)?.parent().map(|parent| parent.into_parts().0.into_owned())
}

fn parsed(key: Option<&str>) -> Option<SessionKeyRef<'_>> {
    SessionKeyRef::parse(key?).ok()
}
