//! Tests that a soak asks to be more thorough, and the counts that it collects.

use std::fs::OpenOptions;
use std::io::Write;

/// The variable with the name of the file of counts.
const COUNTS: &str = "OFFSHOOT_FAULT_COUNTS";

/// Returns the number that a variable asks for; by itself a test takes this one.
///
/// # Panics
///
/// Panics where the value of the variable is no number.
pub fn asked<N: std::str::FromStr>(variable: &str, few: N) -> N {
    #[expect(clippy::disallowed_methods, reason = "how long a test takes is not configuration")]
    let asked = std::env::var(variable).ok();
    asked.map_or(few, |asked| asked.parse().ok().expect("the variable has a number"))
}

/// Adds a line to the table of `cargo xtask soak`, where one is made.
///
/// # Panics
///
/// Panics where the file of counts cannot be written.
pub fn write_down(what: &str, tried: u64, survived: u64) {
    #[expect(clippy::disallowed_methods, reason = "where counts go is not configuration")]
    let Ok(path) = std::env::var(COUNTS) else { return };
    let line = format!("{what}\t{tried}\t{survived}\n");
    let file = OpenOptions::new().append(true).create(true).open(path);
    // In one write, so that tests beside this one do not mix their lines with it.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.expect("the counts can be written down");
}
