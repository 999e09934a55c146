//! Kills without end.

use crate::{Result, cargo};

/// Runs the kills in release and hands them the arguments.
pub(crate) fn run(arguments: &[&str]) -> Result {
    let mut line = vec!["run", "--release", "--package", "offshoot-kills", "--"];
    line.extend(arguments);
    cargo::run(&line, &[])
}
