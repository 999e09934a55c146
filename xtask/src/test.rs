//! All tests of the workspace.
//!
//! ```text
//!  all tests ──▶ log ──▶ the failed ones ──▶ once more, by themselves ──▶ failed, or named as flaky
//! ```

use std::fs;

use crate::{Result, cargo, workspace};

/// Tells tests that every program and library of the workspace is built. See `tests/support/src/programs.rs`.
const BUILT: &str = "OFFSHOOT_TESTS_BUILT";

/// The variable that says how many tests of one program run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// Failed tests that are run once more. Where more of them fail, the cause is no busy machine.
const MOST: usize = 3;

/// The failed part of a run of all tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failed {
    /// The options that choose the programs of tests, each without its package: another choice of packages would be built anew.
    targets: Vec<Vec<String>>,
    tests: Vec<String>,
}

/// Builds everything once, then runs everything that is a test.
///
/// Hundreds of tests that start real processes share the machine. One that fails beside all others is run once more by itself; where
/// that passes, the test is named as flaky, and its cause is to be mended.
pub(crate) fn run() -> Result {
    cargo::build_all()?;
    let log = workspace::root().join("target/test.log");
    let threads = threads()?.to_string();
    let variables = [(BUILT, "true"), (THREADS, &*threads)];
    let ran = cargo::log(&["test", "--workspace", "--no-fail-fast"], &variables, &log);
    let text = fs::read_to_string(&log)?;
    print_skipped(&text);
    let Err(error) = ran else {
        return Ok(());
    };
    let failed = Failed::read(&text);
    if failed.tests.is_empty() || failed.tests.len() > MOST {
        return Err(error);
    }
    println!("── {} failed: once more", failed.tests.join(", "));
    let mut passed = String::new();
    for target in &failed.targets {
        let mut line = vec!["test", "--workspace"];
        line.extend(target.iter().map(String::as_str));
        line.extend(["--", "--exact"]);
        line.extend(failed.tests.iter().map(String::as_str));
        cargo::log(&line, &variables, &log)?;
        passed += &fs::read_to_string(&log)?;
    }
    for test in &failed.tests {
        if !passed.lines().any(|line| line == format!("test {test} ... ok")) {
            return Err(format!("`{test}` failed and was not found again").into());
        }
        println!("flaky  {test}: failed beside all others, passed by itself");
    }
    Ok(())
}

/// Three tests for two cores: most tests start processes, and wait for them about a third of their time.
fn threads() -> Result<usize> {
    Ok(std::thread::available_parallelism()?.get() * 3 / 2)
}

/// Prints what did not run because the machine does not permit it, and how much that was.
fn print_skipped(log: &str) {
    let skipped: Vec<&str> = skipped(log).collect();
    skipped.iter().for_each(|line| println!("skipped  {line}"));
    println!("── {} skipped", skipped.len());
}

/// Returns each test that did not run, with the reason. A line of a test can follow what the harness has printed without its end.
fn skipped(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| line.split_once("SKIPPED: ").map(|(_, rest)| rest))
}

impl Failed {
    /// Reads what cargo and the tests have printed.
    fn read(log: &str) -> Self {
        let mut failed = Self::default();
        for line in log.lines() {
            if let Some(test) =
                line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... FAILED"))
            {
                failed.tests.push(test.to_owned());
            }
            let Some((_, rest)) = line.split_once("to rerun pass `") else { continue };
            let words = rest.trim_end_matches('`').split_whitespace().map(str::to_owned);
            // The first two are `-p` and the package.
            let target: Vec<String> = words.skip(2).collect();
            if !failed.targets.contains(&target) {
                failed.targets.push(target);
            }
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_found_in_the_middle_of_a_line_too() {
        let log = "SKIPPED: a group outside: there are no namespaces (1 skipped so far)\n\
            test a ... SKIPPED: b: no podman (1 skipped so far)\ntest a ... ok\n";
        let expected = [
            "a group outside: there are no namespaces (1 skipped so far)",
            "b: no podman (1 skipped so far)",
        ];
        assert_eq!(skipped(log).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn failed_tests_and_their_programs_are_read() {
        let log = "\
test watch::a ... ok
test watch::b ... FAILED
test result: FAILED. 457 passed; 1 failed; 0 ignored
error: test failed, to rerun pass `-p offshoot-cli --test cli`
test src/lib.rs - Limit (line 3) ... FAILED
error: doctest failed, to rerun pass `-p offshoot-model --doc`
error: 2 targets failed:
    `-p offshoot-cli --test cli`
";
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            Failed::read(log),
            Failed {
                targets: vec![words("--test cli"), words("--doc")],
                tests: vec!["watch::b".to_owned(), "src/lib.rs - Limit (line 3)".to_owned()],
            }
        );
        assert_eq!(Failed::read("test watch::a ... ok\n"), Failed::default());
    }
}
