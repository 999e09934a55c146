//! `model`: which model, and which others when it cannot be had.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Scalar, Setting};
use crate::node::Node;
use crate::reader::Reader;

/// A model and its stand-ins. In a file either a name or `{ primary, fallbacks }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelChoice {
    /// The one that is meant; `None` inherits and only names stand-ins.
    pub primary: Option<String>,
    /// Tried in this order.
    pub fallbacks: Vec<String>,
}

impl Setting for ModelChoice {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        const KEYS: &[&str] = &["primary", "fallbacks"];
        // In untyped text a table has braces; everything else is a name.
        let Some(entries) = node.table() else {
            let primary = <String as Scalar>::from_node(node);
            if primary.is_none() {
                cx.wrong(node, "a model's name, or { primary, fallbacks }");
            }
            return primary.map(|name| Self { primary: Some(name), fallbacks: Vec::new() });
        };
        let mut model = Self::default();
        let right = cx.keys(&entries, KEYS, &[], |key, value, cx| {
            if key == "fallbacks" {
                return Vec::read(value, cx).map(|names| model.fallbacks = names).is_some();
            }
            model.primary = <String as Setting>::read(value, cx);
            model.primary.is_some()
        });
        right.then_some(model)
    }

    fn schema() -> Value {
        json!({
            "anyOf": [
                <String as Scalar>::schema(),
                {
                    "type": "object",
                    "properties": {
                        "primary": <String as Scalar>::schema(),
                        "fallbacks": <Vec<String> as Setting>::schema(),
                    },
                    "additionalProperties": false,
                },
            ],
        })
    }

    fn example() -> Value {
        json!({ "primary": "sonnet", "fallbacks": ["haiku"] })
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}
