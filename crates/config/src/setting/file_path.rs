//! The path of a file that is read for the user.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Scalar, Setting};
use crate::node::Node;
use crate::reader::Reader;

/// The path of a file that this program reads, and acts on. A project is trusted together with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilePath(String);

impl FilePath {
    /// Returns the path, as it is written.
    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl Setting for FilePath {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        <String as Setting>::read(node, cx).map(Self)
    }

    fn schema() -> Value {
        <String as Scalar>::schema()
    }

    fn example() -> Value {
        json!("/home/me/.ssh/offshoot")
    }

    fn trusted_words(&self) -> Vec<&str> {
        vec![&self.0]
    }
}
