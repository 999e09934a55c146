//! Plain numbers and switches, whose bounds are those of their types.

use std::num::{NonZeroU32, NonZeroU64};

use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

impl Scalar for bool {
    fn allowed() -> String {
        "true or false".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        node.bool()
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }

    fn example() -> Value {
        json!(true)
    }
}

macro_rules! whole_number {
    ($type:ty, via $plain:ty, at least $least:literal, such as $example:literal) => {
        impl Scalar for $type {
            fn allowed() -> String {
                concat!("a whole number of at least ", $least).into()
            }

            fn from_node(node: &Node) -> Option<Self> {
                Self::try_from(<$plain>::try_from(node.integer()?).ok()?).ok()
            }

            fn schema() -> Value {
                json!({ "type": "integer", "minimum": $least })
            }

            fn example() -> Value {
                json!($example)
            }
        }
    };
}

whole_number!(u32, via u32, at least 0, such as 3);
whole_number!(u64, via u64, at least 0, such as 3600);
whole_number!(NonZeroU32, via u32, at least 1, such as 4);
whole_number!(NonZeroU64, via u64, at least 1, such as 100000);
