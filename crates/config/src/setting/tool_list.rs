//! `tools`: which rights, and which not.

use offshoot_model::Rights;
use serde::Serialize;
use serde_json::{Value, json};

use super::Setting;
use crate::foreign;
use crate::node::Node;
use crate::reader::Reader;

/// Rights by name: `read`, `write`, `exec`, `search`, `fetch`, `spawn`, `mcp:{server}/{tool}`, or a runtime's own.
///
/// The two lists belong together: a layer that sets `tools` sets both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolList {
    /// The only ones permitted; `None` permits all that are not denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Never permitted, whatever `allow` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl ToolList {
    /// True if this list permits nothing that the other one does not.
    pub fn is_within(&self, other: &Self) -> bool {
        let (here, there) = (self.rights(), other.rights());
        let denied = there.deny.iter().all(|right| !here.permits(right));
        let allowed = there.allow.as_ref().is_none_or(|there_allow| {
            here.allow.as_ref().is_some_and(|allow| {
                allow.difference(&here.deny).all(|right| there_allow.contains(right))
            })
        });
        denied && allowed
    }

    /// The same as a set.
    pub fn rights(&self) -> Rights {
        Rights {
            allow: self.allow.as_ref().map(|allow| allow.iter().cloned().collect()),
            deny: self.deny.iter().cloned().collect(),
        }
    }
}

impl Setting for ToolList {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        const KEYS: &[&str] = &["allow", "deny"];
        let entries = cx.or_wrong(node.table(), node, "{ allow, deny }")?;
        let mut tools = Self::default();
        let right = cx.keys(&entries, KEYS, foreign::TOOLS, |key, value, cx| {
            let Some(names) = Vec::read(value, cx) else { return false };
            match key {
                "allow" => tools.allow = Some(names),
                _ => tools.deny = names,
            }
            true
        });
        right.then_some(tools)
    }

    fn schema() -> Value {
        let mut properties = json!({
            "allow": <Vec<String> as Setting>::schema(),
            "deny": <Vec<String> as Setting>::schema(),
        });
        for key in foreign::TOOLS {
            properties[key] = json!({ "description": "accepted, and without effect here" });
        }
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    }

    fn example() -> Value {
        json!({ "allow": ["read", "search"], "deny": ["exec"] })
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_means_permits_nothing_more() {
        let list = |allow: Option<&[&str]>, deny: &[&str]| ToolList {
            allow: allow.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            deny: deny.iter().map(|name| (*name).to_owned()).collect(),
        };
        let check = |inner: ToolList, outer: ToolList, expected: bool| {
            assert_eq!(inner.is_within(&outer), expected, "{inner:?} in {outer:?}");
        };
        check(list(None, &[]), list(None, &[]), true);
        check(list(None, &[]), list(None, &["exec"]), false);
        check(list(None, &["exec"]), list(None, &["exec"]), true);
        check(list(Some(&["read"]), &[]), list(None, &["exec"]), true);
        check(list(Some(&["read", "exec"]), &[]), list(None, &["exec"]), false);
        check(list(None, &["write"]), list(Some(&["read"]), &[]), false);
        check(list(Some(&["read", "exec"]), &["exec"]), list(Some(&["read"]), &[]), true);
    }
}
