//! The comparison with other programs.

use crate::{Result, cargo};

/// Runs the benchmark program in release and hands it the arguments.
pub(crate) fn run(arguments: &[&str]) -> Result {
    let mut line = vec!["run", "--release", "--package", "offshoot-benches", "--"];
    line.extend(arguments);
    cargo::run(&line, &[])
}
