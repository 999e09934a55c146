//! All tests of the workspace.

use crate::{Result, cargo};

/// Tells tests that every program and library of the workspace is built. See `tests/support/src/programs.rs`.
const BUILT: &str = "OFFSHOOT_TESTS_BUILT";

/// Builds everything once, then runs everything that is a test.
pub(crate) fn run() -> Result {
    // First as `cargo run` builds the command, whose features are its own: a test types what the README says.
    cargo::run(&["build"], &[])?;
    cargo::build_all()?;
    cargo::run(&["test", "--workspace"], &[(BUILT, "true")])
}
