//! All tests of the workspace.

use crate::{Result, cargo};

/// Everything that is a test, in one build.
pub(crate) fn run() -> Result {
    cargo::run(&["test", "--workspace"], &[])
}
