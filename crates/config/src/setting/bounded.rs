//! Whole numbers within bounds of their own: `maxDepth` and `maxChildrenPerAgent`.

use serde::Serialize;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

/// Makes a type of a number. `NAME(TYPE) from LEAST to MOST, such as EXAMPLE;`
macro_rules! bounded {
    ($(
        $(#[$meta:meta])*
        $name:ident($plain:ty) from $(#[$min:meta])* $least:literal to $(#[$max:meta])* $most:literal,
        such as $example:literal;
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
        pub struct $name($plain);

        impl $name {
            $(#[$min])*
            pub const MIN: Self = Self($least);
            $(#[$max])*
            pub const MAX: Self = Self($most);

            /// `None` out of its bounds.
            pub const fn new(number: $plain) -> Option<Self> {
                if number >= $least && number <= $most { Some(Self(number)) } else { None }
            }

            /// Returns the number.
            pub const fn get(self) -> $plain {
                self.0
            }
        }

        impl Scalar for $name {
            fn allowed() -> String {
                concat!("a whole number from ", $least, " to ", $most).into()
            }

            fn from_node(node: &Node) -> Option<Self> {
                Self::new(<$plain>::try_from(node.integer()?).ok()?)
            }

            fn schema() -> Value {
                json!({ "type": "integer", "minimum": $least, "maximum": $most })
            }

            fn example() -> Value {
                json!($example)
            }
        }
    )* };
}

bounded! {
    /// Levels below the root, which is depth 0: 1 to 10.
    MaxDepth(u8) from
        /// One level: the root's own children.
        1 to
        /// Ten levels: above it, a tree is a defect.
        10, such as 3;
    /// Live children of one session, queued ones included: 1 to 1000.
    MaxChildren(u16) from
        /// One child at a time.
        1 to
        /// A thousand: more answers are read by no person and no model.
        1000, such as 16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_bounds_do_not_exist() {
        let known: Vec<u8> = (0..=u8::MAX).filter_map(MaxDepth::new).map(MaxDepth::get).collect();
        assert_eq!(known, (1..=10).collect::<Vec<_>>());
        for (count, exists) in [(0, false), (1, true), (1000, true), (1001, false)] {
            assert_eq!(MaxChildren::new(count).is_some(), exists, "{count}");
        }
        assert_eq!(MaxDepth::MAX.to_string(), "10");
        assert_eq!(MaxChildren::allowed(), "a whole number from 1 to 1000");
    }
}
