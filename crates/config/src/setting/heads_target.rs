//! `audit.heads`: a file, or a program that is told.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Command, Scalar, Setting};
use crate::node::Node;
use crate::reader::Reader;

/// The receiver of the last link of a tree. In a file of settings either a path, or a list of a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum HeadsTarget {
    /// A line is appended to this file.
    File(String),
    /// A program that reads the line from its standard input.
    Command(Command),
}

impl Setting for HeadsTarget {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        // In untyped text a list has brackets; everything else is a path.
        let path = String::from_node(node);
        if let Some(path) = path.filter(|path| !path.trim_start().starts_with('[')) {
            return Some(Self::File(path));
        }
        if node.list().is_some() {
            return Command::read(node, cx).map(Self::Command);
        }
        cx.wrong(node, "the path of a file, or a list of a program and its arguments");
        None
    }

    fn schema() -> Value {
        json!({ "anyOf": [<String as Scalar>::schema(), Command::schema()] })
    }

    fn example() -> Value {
        json!(["logger", "--server", "log.example", "--tag", "offshoot"])
    }

    fn trusted_words(&self) -> Vec<&str> {
        match self {
            // This program itself appends to it, so it never stays the same.
            Self::File(_) => Vec::new(),
            Self::Command(command) => command.trusted_words(),
        }
    }
}
