//! The two streams in which an agent says something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stream of what an agent says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The answer, as far as it has come: standard output of a program, the text of a model.
    Stdout,
    /// Everything beside the answer: standard error of a program, the tools that a model uses.
    Stderr,
}
