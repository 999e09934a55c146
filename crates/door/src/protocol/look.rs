//! Looking at what the caller may see: itself and what is below it; for the operator, everything.

use serde::{Deserialize, Serialize};

use super::{RunName, WireTreeNode};

/// `tree`: runs with what is below them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// From this run down; from the caller, or for the operator from all roots, where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunName>,
    /// Also those that are deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// The answer to `tree`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trees {
    /// The topmost runs.
    pub roots: Vec<WireTreeNode>,
}

/// `list`: runs, without their children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// Also those that are archived or deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only so many, the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The answer to `list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Runs {
    /// In the order in which they were admitted; `children` is empty.
    pub runs: Vec<WireTreeNode>,
}
