//! The first steps of a new user, which work to the letter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{Outcome, Place};

/// The folder of this repository.
fn repository() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folder.canonicalize().expect("the test was built from there")
}

/// The first command line of the README.
fn main_job() -> String {
    let page = fs::read_to_string(repository().join("README.md")).expect("the file cannot be read");
    let (_, section) = page.split_once("## Try it").expect("it says how to try it");
    let (_, block) = section.split_once("```sh\n").expect("it shows how");
    let (line, _) = block.split_once("\n```").expect("the block ends");
    assert!(!line.contains('\n'), "one line does it: {line}");
    line.to_owned()
}

/// Runs a line of shell in the repository, with cargo on the path, and with data and settings in a place of its own.
#[expect(clippy::disallowed_methods, reason = "a newcomer's shell is no agent")]
fn shell(line: &str, place: &Place) -> Outcome {
    let test = std::env::current_exe().expect("a test knows its own file");
    // target/{profile}/deps/{test}
    let target = test.ancestors().nth(3).expect("a test lies in a target folder");
    let cargo = Path::new(env!("CARGO")).parent().expect("cargo is in a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(cargo.to_owned()).chain(std::env::split_paths(&path));
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(repository())
        .env("PATH", std::env::join_paths(folders).expect("no colon in a folder of cargo's"))
        .env("CARGO_TARGET_DIR", target)
        .env("OFFSHOOT_DATA_DIR", place.path().join("data"))
        .env("XDG_CONFIG_HOME", place.path().join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    place.outcome(command, &[])
}

#[test]
fn the_main_job_is_the_census_of_this_repository() {
    // The time of a build is not promised.
    offshoot_test_support::offshoot();
    let place = Place::new();
    let line = main_job();
    let (census, tree) = line.split_once(" && ").expect("it counts, and then shows the tree");
    assert!(
        census.starts_with("cargo run -- run ") && census.ends_with("examples/census/census.sh")
    );
    assert_eq!(tree, "cargo run -q -- tree");
    let counted = shell("git ls-files | wc -l; git ls-files -z | xargs -0 cat | wc -l", &place);
    let counted: Vec<String> =
        counted.expect_code(0).stdout().split_whitespace().map(str::to_owned).collect();
    assert_ne!(counted, ["0", "0"], "this is no clone of the repository");
    let outcome = shell(&line, &place).expect_code(0);
    let (answer, tree) = outcome.stdout().split_once('\n').expect("an answer, and a tree");
    assert_eq!(answer, counted.join(" "));
    assert!(tree.starts_with("main ") && tree.contains("depth 3"), "{tree}");
    assert!(!tree.contains("depth 4") && !tree.contains("failed"), "{tree}");
}
