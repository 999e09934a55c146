//! Tests in a network that has nothing but loopback.

use std::process::{Command, Stdio};

use crate::{bubblewrap, lacking};

/// The variable that names the test which runs inside.
const INSIDE: &str = "OFFSHOOT_TEST_ON_LOOPBACK";

/// True in a network that has nothing but loopback: what a test starts there reaches no service outside. Elsewhere this runs the
/// test once more in such a network, made by bubblewrap, and returns false: nothing is left to do. The test is named as its program
/// lists it, with its modules. A machine without bubblewrap or without namespaces is a test that is skipped and counted.
///
/// # Panics
///
/// Where the test fails inside.
#[expect(clippy::disallowed_methods, reason = "a test that starts itself, and knows it by a mark")]
pub fn alone_on_loopback(test: &str) -> bool {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        return true;
    }
    let Some(bubblewrap) = bubblewrap(test) else { return false };
    let own = std::env::current_exe().expect("a test knows its own file");
    let output = Command::new(bubblewrap)
        .args(["--unshare-net", "--dev-bind", "/", "/", "--die-with-parent", "--"])
        .arg(own)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, test)
        .stdin(Stdio::null())
        .output()
        .expect("bubblewrap is installed");
    let [said, complaint] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    if said.contains("running 1 test") {
        assert!(output.status.success(), "{test} fails on loopback:\n{said}{complaint}");
    } else if output.status.success() {
        panic!("{test} is no test of this program:\n{said}{complaint}");
    } else {
        lacking(test, &complaint);
    }
    false
}
