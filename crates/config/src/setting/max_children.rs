//! `maxChildrenPerAgent`: how many live children one session may have.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

/// Live children of one session, queued ones included: 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MaxChildren(u16);

impl MaxChildren {
    /// More than a thousand answers nobody reads, neither a person nor a model.
    pub const MAX: Self = Self(1000);

    /// `None` outside of 1 to 1000.
    pub const fn new(children: u16) -> Option<Self> {
        if children >= 1 && children <= Self::MAX.0 { Some(Self(children)) } else { None }
    }

    /// The number of children.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for MaxChildren {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Scalar for MaxChildren {
    fn allowed() -> String {
        "a whole number from 1 to 1000".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        node.integer().and_then(|number| u16::try_from(number).ok()).and_then(Self::new)
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": Self::MAX })
    }

    fn example() -> Value {
        json!(16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_to_a_thousand_exist() {
        for (count, exists) in [(0, false), (1, true), (1000, true), (1001, false)] {
            assert_eq!(MaxChildren::new(count).is_some(), exists, "{count}");
        }
    }
}
