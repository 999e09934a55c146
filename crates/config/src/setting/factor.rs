//! Factors of prices, counted in millionths so that no float decides about money.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

/// A factor from 0 to 1000 with at most six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u32);

impl Factor {
    const MOST: u32 = 1_000_000_000;

    /// The factor times a million.
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1_000_000.0)
    }
}

impl Scalar for Factor {
    fn allowed() -> String {
        "a number from 0 to 1000 with at most six decimals".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        // The notation is that of dollars: decimals, six of them, never negative.
        let millionths = node.decimal()?.parse::<offshoot_model::MicroUsd>().ok()?.as_micros();
        u32::try_from(millionths).ok().filter(|factor| *factor <= Self::MOST).map(Self)
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1000 })
    }

    fn example() -> Value {
        json!(2)
    }
}
