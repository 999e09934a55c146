//! Settings from the environment: `OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXDEPTH=4`.

use crate::node::{Node, NodeValue};

/// The beginning of our variables. `OFFSHOOT_DATA_DIR` and its like, with one underscore, are not settings.
const PREFIX: &str = "OFFSHOOT__";

/// The variable as a table of one key, or `None` if it is not a setting.
pub(crate) fn node(name: &str, value: &str) -> Option<Node> {
    let path = name.strip_prefix(PREFIX)?;
    let leaf = Node::new(NodeValue::Raw(value.to_owned()), 0);
    Some(path.rsplit("__").fold(leaf, |inner, name| inner.behind(name, true)))
}
