//! Tests that cannot run here say so.
//!
//! What can be installed must be there with `CI=true`: [`skip`]. What the kernel or the machine has to permit is counted: [`lacking`].

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Says that this test is skipped and why, and how many of its program are by now.
///
/// # Panics
///
/// With `CI=true`: there a test that did not run is a failure.
pub fn skip(test: &str, why: &str) {
    #[expect(clippy::disallowed_methods, reason = "how strict tests are is not configuration")]
    let strict = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!strict, "{test} cannot run: {why}");
    lacking(test, why);
}

/// Says that this test is skipped because the machine does not permit what it needs, and how many of its program are by now. No
/// installation can change that, so it is no failure anywhere.
pub fn lacking(test: &str, why: &str) {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    // Not by the printing macros: what these print of a test that passes is never seen.
    let line = format!("SKIPPED: {test}: {why} ({count} skipped so far)\n");
    // A closed stderr is no reason to fail where being skipped is none.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
