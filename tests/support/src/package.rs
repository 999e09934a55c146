//! Programs of the system that a test needs.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{skip, target_folder};

/// Bubblewrap for this test. Where it is missing it is installed by apt-get as root; where that is not possible there is none,
/// which is said and counted.
///
/// # Panics
///
/// With `CI=true`, where it cannot be had.
pub fn bubblewrap(test: &str) -> Option<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| program("bwrap", "bubblewrap")) {
        Ok(program) => Some(program.clone()),
        Err(why) => {
            skip(test, why);
            None
        }
    }
}

/// The file of a program, on the path that programs of the system have.
pub fn installed(program: &str) -> Option<PathBuf> {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    folders.iter().map(|folder| PathBuf::from(folder).join(program)).find(|path| path.is_file())
}

fn program(name: &str, package: &str) -> Result<PathBuf, String> {
    let guard = File::create(target_folder().join(format!("{package}.lock")));
    let guard = guard.map_err(|error| format!("the target folder: {error}"))?;
    // Other test programs wait here, and then find the work done.
    guard.lock().map_err(|error| format!("the target folder: {error}"))?;
    if let Some(found) = installed(name) {
        return Ok(found);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(format!("{name} is missing, and only root can install {package}"));
    }
    #[expect(clippy::disallowed_methods, reason = "the tool that installs is no agent")]
    let output = Command::new("apt-get")
        .args(["install", "--yes", "--quiet", "--no-install-recommends", package])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} is missing, and apt-get cannot be started: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let why = complaint.lines().find(|line| line.starts_with("E:")).unwrap_or_default().to_owned();
    installed(name).ok_or_else(|| format!("apt-get install {package}: {}: {why}", output.status))
}
