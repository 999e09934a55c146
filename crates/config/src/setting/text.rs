//! Plain text and lists of it.

use serde_json::{Value, json};

use super::{Scalar, Setting, read_items};
use crate::node::Node;
use crate::reader::Reader;

impl Scalar for String {
    fn allowed() -> String {
        "text that is not empty".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        node.text().filter(|text| !text.trim().is_empty()).map(|text| text.into_owned())
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }

    fn example() -> Value {
        json!("words")
    }
}

impl Setting for Vec<String> {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        read_items(node, cx, "a list of texts", <String as Setting>::read)
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": <String as Scalar>::schema() })
    }

    fn example() -> Value {
        json!(["OPENAI_*"])
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}
