//! `maxDepth`: how many levels may stand below the root.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

/// Levels below the root, which is depth 0: 1 to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MaxDepth(u8);

impl MaxDepth {
    /// One level: the root's own children.
    pub const MIN: Self = Self(1);
    /// Ten levels: above it, a tree is a defect.
    pub const MAX: Self = Self(10);

    /// `None` outside of 1 to 10.
    pub const fn new(levels: u8) -> Option<Self> {
        if levels >= Self::MIN.0 && levels <= Self::MAX.0 { Some(Self(levels)) } else { None }
    }

    /// The number of levels.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for MaxDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Scalar for MaxDepth {
    fn allowed() -> String {
        "a whole number from 1 to 10".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        node.integer().and_then(|number| u8::try_from(number).ok()).and_then(Self::new)
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": Self::MIN, "maximum": Self::MAX })
    }

    fn example() -> Value {
        json!(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_to_ten_exist() {
        let known: Vec<u8> = (0..=u8::MAX).filter_map(MaxDepth::new).map(MaxDepth::get).collect();
        assert_eq!(known, (1..=10).collect::<Vec<_>>());
        assert_eq!(MaxDepth::MAX.to_string(), "10");
    }
}
