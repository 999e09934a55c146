//! What is built outside this workspace's own build: other profiles, other features, other crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::target::target_folder;

/// Runs cargo in a folder as an author would, in release, but without optimisation: what is not its own is built once
/// for all who ask. Returns the folder of the result, which stays as it is until the same is built with other settings.
///
/// # Panics
///
/// Where it does not build.
pub fn release_build(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> PathBuf {
    let target = target_folder().join("release-builds");
    fs::create_dir_all(&target).expect("the folder cannot be made");
    let lock = folder.join("Cargo.lock");
    if !lock.exists() {
        // Everything that it may depend on is on this machine already, in these versions.
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        fs::copy(ours, lock).expect("the file cannot be copied");
    }
    let (command, options) = arguments.split_first().expect("cargo is told what to do");
    #[expect(clippy::disallowed_methods, reason = "the tool that builds is no agent")]
    let mut cargo = Command::new(env!("CARGO"));
    let built = cargo
        .arg(command)
        .args(["--release", "--offline", "--quiet"])
        .args(options)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_STRIP", "true")
        .env_remove("RUSTFLAGS")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("cargo has built this test, so it can be started");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "cargo {arguments:?} in {}:\n{said}", folder.display());
    target.join("release")
}
