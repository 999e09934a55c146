//! `notify.on`: what the operator's command is told.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::choice::{choice, words};
use super::{Scalar, Setting, read_items};
use crate::node::Node;
use crate::reader::Reader;

choice! {
    /// Something that happens in a tree, and of which the operator may want to know at once.
    Occasion {
        /// The tree is over.
        Ended = "ended",
        /// A run ended without success, and was not cancelled.
        Failed = "failed",
        /// A run waits for its next attempt, the tree was paused, or an agent is left alone for a while by its breaker.
        Parked = "parked",
        /// A run has given no sign of life for a time.
        Silent = "silent",
        /// A run has used four fifths of its budget.
        Budget80 = "budget80",
    }
}

impl Setting for Vec<Occasion> {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        let allowed = format!("a list, each {}", Occasion::allowed());
        read_items(node, cx, &allowed, <Occasion as Setting>::read)
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": <Occasion as Scalar>::schema() })
    }

    fn example() -> Value {
        json!(["ended", "failed", "parked", "silent", "budget80"])
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}
