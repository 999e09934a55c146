//! Every invariant that holds by now has a test of its name, and `ARCHITECTURE.md` lists them all.

use std::collections::BTreeSet;

use super::{Finding, docs};
use crate::workspace::Workspace;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// A name and whether the code that it speaks about exists.
struct Invariant {
    name: &'static str,
    applies: Applies,
}

enum Applies {
    Now,
    /// The work that it waits for.
    Later(&'static str),
}

const fn now(name: &'static str) -> Invariant {
    Invariant { name, applies: Applies::Now }
}

#[cfg_attr(not(test), expect(dead_code, reason = "at the moment nothing waits"))]
const fn later(name: &'static str, missing: &'static str) -> Invariant {
    Invariant { name, applies: Applies::Later(missing) }
}

/// In the order of `ARCHITECTURE.md`.
const INVARIANTS: &[Invariant] = &[
    now("one_tree_one_supervisor"),
    now("a_waiting_parent_lends_its_slot"),
    now("lineage_comes_from_us"),
    now("rights_only_shrink"),
    now("three_identities_apart"),
    now("a_malformed_key_is_an_error"),
    now("recorded_before_told"),
    now("finished_means_gone"),
    now("soft_then_firm"),
    now("cancel_goes_down_results_go_up"),
    now("breaker_and_budget_at_admission"),
    now("same_events_same_picture"),
    now("every_runtime_passes_the_contract"),
    now("unknown_is_not_zero"),
    now("the_record_proves_it"),
];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    check_table(workspace, INVARIANTS)
}

fn check_table(workspace: &Workspace, invariants: &[Invariant]) -> Vec<Finding> {
    let tests: BTreeSet<&str> = workspace.rust().flat_map(|(_, text)| tests_in(text)).collect();
    let mut findings = Vec::new();
    let mut found = |message| findings.push(Finding::new(ARCHITECTURE, message));
    for Invariant { name, applies } in invariants {
        match (applies, tests.contains(name)) {
            (Applies::Now, false) => found(format!("no test is named `{name}`")),
            (Applies::Later(missing), true) => found(format!(
                "a test is named `{name}`, which is said to wait for {missing}: mark it as applying"
            )),
            _ => {}
        }
    }
    let text = workspace.text(ARCHITECTURE).unwrap_or_default();
    let listed: Vec<&str> =
        docs::section(text, "## Invariants").filter_map(numbered_code).collect();
    let expected: Vec<&str> = invariants.iter().map(|invariant| invariant.name).collect();
    if listed != expected {
        found(format!(
            "the invariants of xtask/src/tidy/invariants.rs are to be listed in their order; \
             missing: {:?}, unknown: {:?}",
            expected.iter().filter(|name| !listed.contains(name)).collect::<Vec<_>>(),
            listed.iter().filter(|name| !expected.contains(name)).collect::<Vec<_>>(),
        ));
    }
    findings
}

/// The names of the functions that carry a test attribute, directly or below other attributes.
pub(super) fn tests_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with(concat!("#[", "test]"))
            || line.starts_with(concat!("#[", "tokio::test"))
        {
            is_test = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            let line = line.strip_prefix("async ").unwrap_or(line);
            if let Some(name) = line.strip_prefix("fn ").filter(|_| is_test) {
                names.extend(name.split(['(', '<']).next());
            }
            is_test = false;
        }
    }
    names
}

/// The name in ``7. `name`: …``.
fn numbered_code(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". `")?;
    number.parse::<u8>().ok()?;
    rest.split_once('`').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    const TABLE: &[Invariant] = &[now("present"), later("future", "a thing")];
    const PAGE: &str = "## Invariants\n\n1. `present`: a.\n2. `future`: b.\n   `not this`\n";

    #[track_caller]
    fn check(page: &str, source: &str, expected: &[&str]) {
        let workspace = of_files([("ARCHITECTURE.md", page), ("crates/a/src/x.rs", source)]);
        expect_findings(&check_table(&workspace, TABLE), expected);
    }

    fn test_named(attribute: &str, name: &str) -> String {
        format!("    #[{attribute}]\n    // Why.\n    #[other]\n    async fn {name}() {{}}\n")
    }

    #[test]
    fn a_test_of_the_name_is_wanted() {
        check(PAGE, &test_named("test", "present"), &[]);
        check(PAGE, &test_named("tokio::test(start_paused = true)", "present"), &[]);
        let missing = "ARCHITECTURE.md: no test is named `present`";
        check(PAGE, "", &[missing]);
        check(PAGE, "fn present() {}", &[missing]);
        check(PAGE, &test_named("test", "present_too"), &[missing]);
        let both = test_named("test", "present") + &test_named("test", "future");
        check(
            PAGE,
            &both,
            &["ARCHITECTURE.md: a test is named `future`, which is said to wait for a thing: \
               mark it as applying"],
        );
    }

    #[test]
    fn the_page_lists_all_in_order() {
        check(
            "## Invariants\n1. `present`: a.\n2. `past`: b.\n",
            &test_named("test", "present"),
            &["ARCHITECTURE.md: the invariants of xtask/src/tidy/invariants.rs are to be listed \
               in their order; missing: [\"future\"], unknown: [\"past\"]"],
        );
    }
}
