//! Pages are in step with the code.

use std::collections::BTreeSet;

use super::Finding;
use crate::workspace::{Package, Workspace};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = check_crate_table(workspace);
    findings.extend(check_paths(workspace));
    findings.extend(check_count(workspace));
    for package in workspace.crates() {
        check_readme(workspace, package, &mut findings);
        check_crate_page(workspace, package, &mut findings);
    }
    findings
}

/// The table of crates lists the crates that there are.
fn check_crate_table(workspace: &Workspace) -> Vec<Finding> {
    let Some(text) = workspace.text(ARCHITECTURE) else {
        return vec![Finding::new(ARCHITECTURE, "is missing")];
    };
    let listed: BTreeSet<&str> = section(text, "## Crates").filter_map(first_cell_code).collect();
    let present: BTreeSet<&str> = workspace.crates().map(Package::short_name).collect();
    let missing = present.difference(&listed).map(|name| {
        Finding::new(ARCHITECTURE, format!("crates/{name} has no row under \"Crates\""))
    });
    let stale = listed.difference(&present).map(|name| {
        Finding::new(ARCHITECTURE, format!("there is a row for `{name}` and no crates/{name}"))
    });
    missing.chain(stale).collect()
}

/// The README says how many crates there are.
fn check_count(workspace: &Workspace) -> Option<Finding> {
    let says = format!("offshoot is {} crates", workspace.crates().count());
    let text = workspace.text("README.md")?;
    (!text.contains(&says)).then(|| Finding::new("README.md", format!("does not say \"{says}\"")))
}

/// The page names files and folders that there are, by their paths from the root. New ones are in italics.
fn check_paths(workspace: &Workspace) -> Vec<Finding> {
    let text = workspace.text(ARCHITECTURE).unwrap_or_default();
    let mut findings = Vec::new();
    for line in text.lines() {
        let mut is_new = false;
        for (at, piece) in line.split('`').enumerate() {
            if at % 2 == 0 {
                // An asterisk opens or closes.
                is_new ^= piece.matches('*').count() % 2 == 1;
            } else if !is_new && is_path(piece) && !is_there(workspace, piece) {
                findings.push(Finding::new(ARCHITECTURE, format!("there is no `{piece}`")));
            }
        }
    }
    findings
}

fn is_path(code: &str) -> bool {
    let endings = [".rs", ".md", ".json", ".toml", "/"];
    endings.iter().any(|ending| code.ends_with(ending))
}

pub(super) fn is_there(workspace: &Workspace, path: &str) -> bool {
    match path.ends_with('/') {
        true => workspace.files.keys().any(|file| file.starts_with(path)),
        false => workspace.files.contains_key(path),
    }
}

/// A README says what the crate is before it shows how it is used.
fn check_readme(workspace: &Workspace, package: &Package, findings: &mut Vec<Finding>) {
    let path = format!("{}/README.md", package.folder);
    let Some(text) = workspace.text(&path) else {
        findings.push(Finding::new(path, "is missing"));
        return;
    };
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    if first.is_none_or(|line| line.starts_with("```")) {
        findings.push(Finding::new(&path, "does not begin with a paragraph that says what it is"));
    }
    if !text.lines().any(|line| line.starts_with("```")) {
        findings.push(Finding::new(&path, "shows no example"));
    }
}

/// A library's page has an example that runs as a test.
fn check_crate_page(workspace: &Workspace, package: &Package, findings: &mut Vec<Finding>) {
    let path = format!("{}/src/lib.rs", package.folder);
    let Some(text) = workspace.text(&path) else { return };
    let fences = text.lines().filter_map(|line| line.strip_prefix("//! ```"));
    // Every second fence closes one; `no_run` is compiled, which is what a page can ask.
    let runs = |fence: &str| matches!(fence.trim(), "" | "rust" | "no_run");
    if !fences.step_by(2).any(runs) {
        findings.push(Finding::new(path, "the crate page has no example that is tested"));
    }
}

/// The lines below a heading, up to the next one.
pub(super) fn section<'t>(text: &'t str, heading: &str) -> impl Iterator<Item = &'t str> {
    let below = text.lines().skip_while(move |line| *line != heading).skip(1);
    below.take_while(|line| !line.starts_with("## "))
}

/// The name in `` | `name` | … ``.
fn first_cell_code(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    const README: &str = "# a\n\nWhat it is.\n\n```rust\n```\n";
    const PAGE: &str = "//! What it is.\n//!\n//! ```\n//! assert!(true);\n//! ```\n";

    #[test]
    fn the_readme_says_how_many_crates_there_are() {
        let found =
            |readme| check_count(&of_files([("README.md", readme), ("crates/a/Cargo.toml", "")]));
        assert!(found("offshoot is 1 crates, and").is_none());
        let finding = found("offshoot is 2 crates, and").expect("there is one");
        assert_eq!(finding.message, "does not say \"offshoot is 1 crates\"");
    }

    #[test]
    fn the_table_lists_the_crates() {
        let table =
            "## Crates\n\n| crate |\n|---|\n| `a` | x |\n| `gone` | x |\n## Next\n| `no` |\n";
        let found = check(&of_files([
            ("ARCHITECTURE.md", table),
            ("crates/a/Cargo.toml", ""),
            ("crates/a/README.md", README),
            ("crates/a/src/lib.rs", PAGE),
            ("crates/new/Cargo.toml", ""),
            ("crates/new/README.md", README),
        ]));
        expect_findings(
            &found,
            &[
                "ARCHITECTURE.md: crates/new has no row under \"Crates\"",
                "ARCHITECTURE.md: there is a row for `gone` and no crates/gone",
            ],
        );
        expect_findings(&check(&of_files([])), &["ARCHITECTURE.md: is missing"]);
    }

    #[test]
    fn the_page_names_what_is_there_by_its_whole_path() {
        let page = "## Crates\n`README.md` and `a.rs()` of `crates/a`\n### A kind\n\
                    - always: `crates/a/src/x.rs`, *`crates/a/src/NAME.rs`*, `crates/a/src/`\n\
                    - if so: `x.rs`; *new* `b/gone.rs`, `a/src/x.rs`\n| b | `crates/c/` | `docs/a.md` |\n";
        let found = check_paths(&of_files([
            ("ARCHITECTURE.md", page),
            ("README.md", ""),
            ("crates/a/src/x.rs", ""),
            ("docs/a.md", ""),
        ]));
        let none = |path: &str| format!("ARCHITECTURE.md: there is no `{path}`");
        let expected = ["x.rs", "b/gone.rs", "a/src/x.rs", "crates/c/"].map(none);
        expect_findings(&found, &expected.each_ref().map(String::as_str));
    }

    #[test]
    fn a_readme_says_and_shows() {
        #[track_caller]
        fn check(readme: &str, page: &str, expected: &[&str]) {
            let found = super::check(&of_files([
                ("ARCHITECTURE.md", "## Crates\n| `a` |"),
                ("crates/a/Cargo.toml", ""),
                ("crates/a/README.md", readme),
                ("crates/a/src/lib.rs", page),
            ]));
            expect_findings(&found, expected);
        }
        let unsaid = "crates/a/README.md: does not begin with a paragraph that says what it is";
        let unshown = "crates/a/README.md: shows no example";
        let untested = "crates/a/src/lib.rs: the crate page has no example that is tested";
        check(README, PAGE, &[]);
        check("# a\n", PAGE, &[unsaid, unshown]);
        check("# a\n```\n```\n", PAGE, &[unsaid]);
        check("# a\n\nWords.\n", PAGE, &[unshown]);
        check(README, "//! Words.\n", &[untested]);
        check(README, "//! ```text\n//! ```\n", &[untested]);
        check(README, "//! ```text\n//! ```\n//! ```no_run\n//! ```\n", &[]);
    }
}
