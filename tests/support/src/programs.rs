//! Where the built programs are. Cargo names them only to tests of their own package. The others find them built
//! (`cargo xtask test` says so in [`BUILT`]), or build them on demand (a plain `cargo test`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::release::release_build;
use crate::target::profile_folder;

/// The variable that is set where everything in the workspace, programs and libraries included, was built before the tests.
/// A build of one package alone would compile much of the workspace a second time, with other features.
const BUILT: &str = "OFFSHOOT_TESTS_BUILT";

/// The awkward agent: see the module page of `offshoot-fake-agent`.
///
/// # Panics
///
/// Where it cannot be built.
pub fn fake_agent() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("offshoot-fake-agent", &["--bin", "fake-agent"]).join("fake-agent"))
}

/// The command.
///
/// # Panics
///
/// Where it cannot be built.
pub fn offshoot() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("offshoot-cli", &["--bin", "offshoot"]).join("offshoot"))
}

/// The command in a folder that is its home as well, with nothing of our own environment and nothing to read.
///
/// # Panics
///
/// Where it cannot be built.
#[expect(clippy::disallowed_methods, reason = "tests start the program that they test")]
pub fn offshoot_at_home(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(offshoot());
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .stdin(Stdio::null());
    command
}

/// A library of the awkward ones: `raw` is a good one, for the others see `crates/plugin-host/examples`.
///
/// # Panics
///
/// Where it cannot be built.
pub fn plugin_library(name: &str) -> PathBuf {
    let file = format!("lib{}.so", name.replace('-', "_"));
    build("offshoot-plugin-host", &["--example", name]).join("examples").join(file)
}

/// An example of a package of this workspace, as a program.
///
/// # Panics
///
/// Where it cannot be built.
pub fn example(package: &str, name: &str) -> PathBuf {
    build(package, &["--example", name]).join("examples").join(name)
}

/// The library of a plugin of this workspace, by the name of its folder in `plugins`. Where it is built on demand, it is built
/// apart: a library without a hash in its name is one file for all who build it, and built alone it would have other features
/// than the tests that link it.
///
/// # Panics
///
/// Where it cannot be built.
pub fn workspace_plugin(name: &str) -> PathBuf {
    let package = format!("offshoot-plugin-{name}");
    let file = format!("lib{}.so", package.replace('-', "_"));
    if all_is_built() {
        return profile_folder().join(file);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    release_build(&workspace, &["build", "--package", &package, "--lib"], &[]).join(file)
}

/// Makes a plugin of this workspace that is a program, by the name of its folder in `plugins`: a folder of that name below another, with its program and its
/// `plugin.toml`.
///
/// # Panics
///
/// Where it cannot be built.
pub fn workspace_program(name: &str, below: &Path) -> PathBuf {
    let program = build(&format!("offshoot-plugin-{name}"), &["--bin", name]).join(name);
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name);
    let folder = below.join(name);
    let files = [(package.join("plugin.toml"), "plugin.toml", 0o644), (program, name, 0o755)];
    std::fs::create_dir_all(&folder).expect("the folder cannot be made");
    for (from, to, mode) in files {
        std::fs::copy(from, folder.join(to)).expect("the system has no room for it");
        set_mode(&folder.join(to), mode);
    }
    [&*folder, below].iter().for_each(|folder| set_mode(folder, 0o755));
    folder
}

fn set_mode(path: &Path, mode: u32) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("the mode cannot be set");
}

/// Builds with the profile and into the target folder of the running test, unless all is built already. Returns the folder of the
/// profile. Cargo lets one build run at a time, and the second finds nothing to do.
fn build(package: &str, what: &[&str]) -> PathBuf {
    let profile_folder = profile_folder();
    if all_is_built() {
        return profile_folder;
    }
    let target = profile_folder.parent().expect("a profile lies in a target folder");
    let profile = match name(&profile_folder) {
        "debug" => "dev",
        other => other,
    };
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    #[expect(clippy::disallowed_methods, reason = "the tool that builds is no agent")]
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--profile", profile])
        .args(what)
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .stdin(Stdio::null())
        .status()
        .expect("cargo has built this test, so it can be started");
    assert!(built.success(), "{package} does not build");
    profile_folder
}

#[expect(
    clippy::disallowed_methods,
    reason = "what was built before the tests is not configuration"
)]
fn all_is_built() -> bool {
    std::env::var(BUILT).is_ok()
}

fn name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
