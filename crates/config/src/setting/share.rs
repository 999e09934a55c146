//! The share of a budget that is reserved for a child, or none in particular.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Fraction, Scalar};
use crate::node::Node;

/// The way in which a budget is divided among children that ask for no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub enum Share {
    /// A part of what is left, for each child as it is admitted; pieces of a map or a fanout get equal parts.
    Part(Fraction),
    /// One pool: each piece of a map or a fanout takes out of what is left as it starts, and more while it runs. A spawn
    /// of an agent reserves the built-in part.
    #[display("{POOL}")]
    Pool,
}

/// The word of the configuration.
const POOL: &str = "pool";

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Part(part) => part.serialize(serializer),
            Self::Pool => serializer.serialize_str(POOL),
        }
    }
}

impl Scalar for Share {
    fn allowed() -> String {
        format!("`{POOL}`, or {}", Fraction::allowed())
    }

    fn from_node(node: &Node) -> Option<Self> {
        match String::from_node(node).as_deref() {
            Some(POOL) => Some(Self::Pool),
            _ => Fraction::from_node(node).map(Self::Part),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Fraction::schema(), { "const": POOL }] })
    }

    fn example() -> Value {
        json!(POOL)
    }
}
