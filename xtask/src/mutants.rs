//! Changes to what decides, one at a time, and whether a test notices each.
//!
//! ```text
//!  part ──▶ cargo mutants ──▶ changes that no test noticed ──▶ listed with a reason, or an error
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::{Result, cargo, workspace};

/// The changes that may go unnoticed, each with its reason.
const LIST: &str = "xtask/survivors.txt";

/// Stands between a change and its reason.
const BECAUSE: &str = "  because ";

/// Files that are changed together.
struct Part {
    name: &'static str,
    package: &'static str,
    /// The packages whose tests are run. The engine's simulation is the test of much of the policy.
    tests: &'static str,
    files: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part {
        name: "policy",
        package: "offshoot-policy",
        tests: "offshoot-policy,offshoot-spawner",
        files: &["crates/policy/src/**/*.rs"],
    },
    Part {
        name: "meter",
        package: "offshoot-meter",
        tests: "offshoot-meter",
        files: &[
            "crates/meter/src/bound.rs",
            "crates/meter/src/price.rs",
            "crates/meter/src/reservation.rs",
            "crates/meter/src/settle.rs",
            "crates/meter/src/usage.rs",
            "crates/meter/src/usage/*.rs",
        ],
    },
    Part {
        name: "machine",
        package: "offshoot-spawner",
        tests: "offshoot-spawner",
        files: &["crates/spawner/src/machine/**/*.rs"],
    },
];

/// Tries one part, or all of them. Further arguments go to `cargo mutants`, such as `--shard 0/8` or `--file PATH`.
pub(crate) fn run(arguments: &[&str]) -> Result {
    let (parts, rest) = chosen(arguments)?;
    if !cargo::has("mutants") {
        return Err("cargo-mutants is not installed: cargo install --locked cargo-mutants".into());
    }
    let list = fs::read_to_string(workspace::root().join(LIST))?;
    let reasons = reasons(&list)?;
    let mut unexplained = Vec::new();
    for part in parts {
        let output = workspace::root().join("target/mutants").join(part.name);
        let missed = missed(part, &output, rest)?;
        unexplained.extend(missed.into_iter().filter(|change| !reasons.contains_key(&**change)));
    }
    unexplained.iter().for_each(|change| println!("{change}"));
    match unexplained.len() {
        0 => Ok(()),
        many => {
            Err(format!("{many} changes went unnoticed, and stand without a reason in {LIST}")
                .into())
        }
    }
}

fn chosen<'a>(arguments: &'a [&'a str]) -> Result<(Vec<&'static Part>, &'a [&'a str])> {
    let named = arguments.first().filter(|name| !name.starts_with('-'));
    let Some(name) = named else { return Ok((PARTS.iter().collect(), arguments)) };
    let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    let part = PARTS.iter().find(|part| part.name == *name);
    let part = part.ok_or_else(|| format!("no part `{name}`: {}", names.join(", ")))?;
    Ok((vec![part], &arguments[1..]))
}

/// Runs the tests of a part once for each change to it, and returns the changes that no test has noticed.
fn missed(part: &Part, output: &Path, rest: &[&str]) -> Result<BTreeSet<String>> {
    fs::create_dir_all(output)?;
    let to = output.to_str().ok_or("the workspace has a plain name")?;
    let mut line = vec!["mutants", "--package", part.package, "--test-package", part.tests];
    line.extend(["--output", to]);
    // A file that is named narrows what is changed.
    if !rest.contains(&"--file") {
        part.files.iter().for_each(|file| line.extend(["--file", file]));
    }
    line.extend(rest);
    let report = output.join("mutants.out/missed.txt");
    // It fails where a change was missed, which is for us to judge.
    let ran = cargo::run(&line, &[]);
    match fs::read_to_string(report) {
        Ok(report) => Ok(report.lines().map(change).collect()),
        Err(error) => Err(ran.err().unwrap_or_else(|| error.into())),
    }
}

/// Returns a change without its line and column, which move with every edit: `FILE: replace < with <= in NAME`.
fn change(line: &str) -> String {
    let mut words = line.splitn(4, ':');
    match (words.next(), words.nth(2)) {
        (Some(file), Some(what)) => format!("{file}:{what}"),
        _ => line.to_owned(),
    }
}

/// Reads the list: a change and its reason on each line, apart from empty ones and those that begin with `#`.
fn reasons(list: &str) -> Result<BTreeMap<&str, &str>> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            line.split_once(BECAUSE).ok_or_else(|| format!("{LIST}: no reason: {line}").into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_no_place() {
        assert_eq!(
            change("crates/policy/src/rate.rs:41:17: replace < with <= in Rate::may"),
            "crates/policy/src/rate.rs: replace < with <= in Rate::may"
        );
        assert_eq!(change("something else"), "something else");
    }

    #[test]
    fn each_line_of_the_list_has_a_reason() {
        let list = fs::read_to_string(workspace::root().join(LIST)).expect("the list is there");
        assert!(reasons(&list).is_ok_and(|reasons| !reasons.is_empty()));
        assert!(reasons("a: replace b with c").is_err());
    }

    #[test]
    fn a_part_is_chosen_by_its_name() {
        let names = |arguments: &[&str]| {
            let (parts, rest) = chosen(arguments).expect("it is one");
            (parts.iter().map(|part| part.name).collect::<Vec<_>>(), rest.len())
        };
        assert_eq!(names(&[]), (vec!["policy", "meter", "machine"], 0));
        assert_eq!(names(&["--shard", "0/8"]), (vec!["policy", "meter", "machine"], 2));
        assert_eq!(names(&["meter", "--shard", "0/8"]), (vec!["meter"], 2));
        assert!(chosen(&["metre"]).is_err());
    }
}
