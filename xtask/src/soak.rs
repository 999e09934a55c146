//! Kills and faults without end.

use crate::{Result, cargo};

/// Runs the kills in release and hands them the arguments, then every fault of which the tests try a sample.
pub(crate) fn run(arguments: &[&str]) -> Result {
    let mut line = vec!["run", "--release", "--package", "offshoot-kills", "--"];
    line.extend(arguments);
    cargo::run(&line, &[])?;
    let line = ["test", "--quiet", "--package", "offshoot-faults", "--", "--nocapture"];
    cargo::run(&line, &[("OFFSHOOT_SOAK", "1")])
}
