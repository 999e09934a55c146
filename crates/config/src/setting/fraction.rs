//! Shares between 0 and 1, counted in millionths so that no float decides about money.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

/// A share from 0 to 1 with at most six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{}", self.as_f64())]
pub struct Fraction(u32);

impl Fraction {
    const ONE: u32 = 1_000_000;

    /// `None` above one million.
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths <= Self::ONE { Some(Self(millionths)) } else { None }
    }

    /// The share times a million.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Returns this share of a whole, rounded down.
    pub const fn of(self, whole: u64) -> u64 {
        // In 128 bits the product cannot overflow; the quotient is at most `whole`, so it fits again.
        (whole as u128 * self.0 as u128 / Self::ONE as u128) as u64
    }

    /// For random draws and for display; amounts use [`Fraction::of`].
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE)
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl Scalar for Fraction {
    fn allowed() -> String {
        "a number from 0 to 1 with at most six decimals".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        // The notation is that of dollars: decimals, six of them, never negative.
        let millionths = node.decimal()?.parse::<offshoot_model::MicroUsd>().ok()?.as_micros();
        u32::try_from(millionths).ok().and_then(Self::from_millionths)
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }

    fn example() -> Value {
        json!(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_exact_and_never_more_than_the_whole() {
        let half = Fraction::from_millionths(500_000).expect("a half");
        let all = Fraction::from_millionths(1_000_000).expect("one");
        assert_eq!(half.of(3), 1);
        assert_eq!(all.of(u64::MAX), u64::MAX);
        assert_eq!(half.to_string(), "0.5");
        assert_eq!(Fraction::from_millionths(1_000_001), None);
    }
}
