//! A command line, already cut into words: no shell reads it.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Scalar, Setting, read_items};
use crate::node::Node;
use crate::reader::Reader;

/// A program and its arguments. Never empty, and the program's name is not empty either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, derive_more::Deref)]
pub struct Command(Vec<String>);

impl Command {
    /// `None` without a program.
    pub fn new(words: Vec<String>) -> Option<Self> {
        words.first().is_some_and(|program| !program.is_empty()).then_some(Self(words))
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        &self.0[0]
    }
}

impl Setting for Command {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        const ALLOWED: &str =
            "a list of a program and its arguments, such as [\"grep\", \"-c\", \"x\"]";
        let words = read_items(node, cx, ALLOWED, |item, cx| {
            // A zero byte ends a word for the kernel: what follows it would be lost.
            let word = item.text().filter(|word| !word.contains('\0'));
            let word = word.map(|word| word.into_owned());
            cx.or_wrong(word, item, "text without a zero byte")
        })?;
        cx.or_wrong(Self::new(words), node, ALLOWED)
    }

    fn schema() -> Value {
        json!({
            "type": "array",
            "minItems": 1,
            "prefixItems": [<String as Scalar>::schema()],
            "items": { "type": "string" },
        })
    }

    fn example() -> Value {
        json!(["program", "argument"])
    }

    fn trusted_words(&self) -> Vec<&str> {
        self.iter().map(String::as_str).collect()
    }
}
