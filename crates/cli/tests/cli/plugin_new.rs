//! `offshoot plugin new`: what it makes builds outside this workspace, passes its own test, and runs in a real tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use offshoot_test_support::target_folder;

use crate::command::{Place, check};

fn sources() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folder.canonicalize().expect("the sources are there")
}

/// Builds and tests a crate as its author would, but without optimisation, and with what is not its own built once for
/// all of them.
fn cargo(folder: &Path, arguments: &[&str]) {
    let target = target_folder().join("plugin-new");
    fs::create_dir_all(&target).expect("there is room");
    // Where its plugin.toml says that its library is.
    let own = folder.join("target");
    if !own.exists() {
        std::os::unix::fs::symlink(&target, &own).expect("there is room");
        // Everything that it may depend on is on this machine already.
        fs::copy(sources().join("Cargo.lock"), folder.join("Cargo.lock")).expect("there is room");
    }
    #[expect(clippy::disallowed_methods, reason = "the tool that builds is no agent")]
    let mut command = Command::new(env!("CARGO"));
    let built = command
        .args(arguments)
        .args(["--release", "--offline", "--quiet"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::null())
        .output()
        .expect("cargo has built this test, so it can be started");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "cargo {arguments:?} in {}:\n{said}", folder.display());
}

#[test]
fn what_is_made_builds_and_runs_in_a_tree() {
    let place = Place::new();
    let made = place.run(&["plugin", "new", "--runtime", "my-agent", "-q"]);
    check("plugin_new", &made);
    let sdk = sources().join("crates/plugin-sdk");
    let sdk = sdk.to_str().expect("a plain name");
    place.run(&["plugin", "new", "--merge", "longest", "--sdk", sdk]).expect_code(0);
    for name in ["my-agent", "longest"] {
        let folder = place.path().join(name);
        cargo(&folder, &["test"]);
        cargo(&folder, &["build"]);
    }
    let run = ["run", "--plugin-path", "my-agent", "--runtime", "my-agent", "hello"];
    assert_eq!(place.run(&run).expect_code(0).stdout(), "hello\n");
    let merge = ["--plugin-path", "longest", "--merge", "plugin:longest"];
    let tasks = ["fanout", "--task", "a", "--task", "bcd", "--", "cat"];
    let merged = place.run(&[&tasks[..1], &merge, &tasks[1..]].concat());
    assert_eq!(merged.expect_code(0).stdout(), "bcd\n");
    // Taken in, with settings, in one tree with a program.
    for name in ["my-agent", "longest"] {
        place.run(&["plugin", "add", name]).expect_code(0);
    }
    place.file(
        "both.toml",
        "[runtimes.my-agent.options]\nprefix = \"it says: \"\n\
         [agents.defaults.subagents]\nallowAgents = [\"*\"]\n\
         [[agents.list]]\nid = \"made\"\nruntime = \"my-agent\"\n",
    );
    let script = "\"$OFFSHOOT\" spawn --agent made --wait hello; echo from a shell";
    let both = place.run(&["run", "--config", "both.toml", "x", "--", "sh", "-c", script]);
    assert_eq!(both.expect_code(0).stdout(), "it says: hello\nfrom a shell\n");
    // What the host's conformance tests ask, asked of what was made.
    let checked = place.run(&["plugin", "check", "my-agent", "--hanging-task", "wait"]);
    assert!(!checked.expect_code(0).stdout().contains("BROKEN"));
    place.run(&["plugin", "check", "longest"]).expect_code(0);
    // A slip in the settings is told before a tree is opened.
    let slip = "[runtimes.my-agent.options]\nprefiks = \"x\"\n";
    place.file("slip.toml", slip);
    let slip = place.run(&["run", "--config", "slip.toml", "--runtime", "my-agent", "hello"]);
    assert!(slip.expect_code(5).stderr.contains("unknown field `prefiks`"));
}

#[test]
fn what_cannot_be_made_is_told() {
    let place = Place::new();
    check("plugin_new_no_sdk", &place.run(&["plugin", "new", "--merge", "x", "--sdk", "nowhere"]));
    check("plugin_new_bad_name", &place.run(&["plugin", "new", "--runtime", "Not a name"]));
    place.file("taken/file", "");
    check("plugin_new_taken", &place.run(&["plugin", "new", "--runtime", "taken"]));
    check("plugin_new_nothing", &place.run(&["plugin", "new"]));
}
