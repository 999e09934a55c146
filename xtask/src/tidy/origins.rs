//! `docs/origins.md` leaves out no row, and names tests, commands and files that are there.

use super::invariants::tests_in;
use super::{Finding, docs};
use crate::workspace::Workspace;

const PAGE: &str = "docs/origins.md";
/// The page with a section for each command.
const COMMANDS: &str = "docs/cli.md";

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let Some(text) = workspace.text(PAGE) else {
        return vec![Finding::new(PAGE, "is missing")];
    };
    let mut findings = Vec::new();
    let mut rows = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let mut messages = check_row(line, &mut rows);
        for (code, link) in codes(line) {
            messages.extend(check_test(workspace, code, link));
            messages.extend(check_command(workspace, code));
        }
        messages.extend(links(line).filter_map(|link| check_link(workspace, link)));
        let place = format!("{PAGE}:{number}");
        findings.extend(messages.into_iter().map(|message| Finding::new(&place, message)));
    }
    findings
}

/// Rows are numbered through all tables, and the last cell of each says something that can be looked at.
fn check_row(line: &str, rows: &mut u32) -> Vec<String> {
    let cells: Vec<&str> = line.split(" | ").collect();
    let number = cells[0].strip_prefix("| ").and_then(|number| number.parse::<u32>().ok());
    let (Some(number), [_, .., shown]) = (number, &cells[..]) else { return Vec::new() };
    let mut messages = Vec::new();
    if number != *rows + 1 {
        messages.push(format!("row {number} comes after row {rows}"));
    }
    *rows = number;
    if !["`", "](", "**not yet**", "**otherwise**"].iter().any(|sign| shown.contains(sign)) {
        messages.push(format!("row {number} names no test and no command"));
    }
    messages
}

/// A test stands there as `file.rs::name`, in a link to the file that has it.
fn check_test(workspace: &Workspace, code: &str, link: Option<&str>) -> Option<String> {
    let (stem, name) = code.split_once(".rs::")?;
    let Some(path) = link.and_then(|link| link.strip_prefix("../")) else {
        return Some(format!("`{code}` is no link to its file"));
    };
    if path.rsplit('/').next() != Some(&format!("{stem}.rs")) {
        return Some(format!("`{code}` is a link to another file, `{path}`"));
    }
    let is_there = tests_in(workspace.text(path)?).contains(&name);
    (!is_there).then(|| format!("`{path}` has no test `{name}`"))
}

/// A command as the user or an agent types it.
fn check_command(workspace: &Workspace, code: &str) -> Option<String> {
    let typed = code.strip_prefix("offshoot ").or_else(|| code.strip_prefix("\"$OFFSHOOT\" "))?;
    let command = typed.split(' ').next()?;
    let heading = format!("## offshoot {command}");
    let is_there = workspace.text(COMMANDS)?.lines().any(|line| line == heading);
    (!is_there).then(|| format!("there is no command `{command}`"))
}

fn check_link(workspace: &Workspace, link: &str) -> Option<String> {
    let path = link.split('#').next()?;
    let path = path.strip_prefix("../").map_or_else(|| format!("docs/{path}"), str::to_owned);
    (!docs::is_there(workspace, &path)).then(|| format!("there is no `{path}`"))
}

/// Each text in code of a line, with the link that it stands in.
fn codes(line: &str) -> Vec<(&str, Option<&str>)> {
    let mut pieces = line.split('`').skip(1);
    let mut codes = Vec::new();
    while let Some(code) = pieces.next() {
        let after = pieces.next().unwrap_or_default();
        codes.push((code, links(after).next().filter(|_| after.starts_with("]("))));
    }
    codes
}

fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    #[track_caller]
    fn check(page: &str, expected: &[&str]) {
        let test = concat!("#[", "test]\nfn it_holds() {}\nfn helper() {}\n");
        let found = super::check(&of_files([
            (PAGE, page),
            (COMMANDS, "## offshoot key\n## offshoot key depth\n"),
            ("crates/a/tests/x.rs", test),
        ]));
        expect_findings(&found, expected);
    }

    #[test]
    fn tests_are_in_the_files_that_the_page_links() {
        let row = |shown: &str| format!("| 1 | 2.1 | a wish | {shown} |\n");
        let file = "../crates/a/tests/x.rs";
        check(&row(&format!("a word, [`x.rs::it_holds`]({file}), another")), &[]);
        check(
            &row(&format!("`x.rs::it_holds` ({file})")),
            &["docs/origins.md:1: `x.rs::it_holds` is no link to its file"],
        );
        check(
            &row(&format!("[`x.rs::helper`]({file})")),
            &["docs/origins.md:1: `crates/a/tests/x.rs` has no test `helper`"],
        );
        check(
            &row(&format!("[`y.rs::it_holds`]({file})")),
            &[
                "docs/origins.md:1: `y.rs::it_holds` is a link to another file, `crates/a/tests/x.rs`",
            ],
        );
        check(
            &row("[`x.rs::it_holds`](../crates/b/tests/x.rs)"),
            &["docs/origins.md:1: there is no `crates/b/tests/x.rs`"],
        );
    }

    #[test]
    fn commands_and_links_of_the_page_lead_somewhere() {
        check(
            "`offshoot key depth KEY`, `\"$OFFSHOOT\" key`, [a](cli.md#key), [b](../crates/)\n",
            &[],
        );
        check(
            "\n`offshoot lock`, [a](gone.md)\n",
            &[
                "docs/origins.md:2: there is no command `lock`",
                "docs/origins.md:2: there is no `docs/gone.md`",
            ],
        );
    }

    #[test]
    fn no_row_is_left_out_and_none_is_only_claimed() {
        check("| # | part |\n|---|---|\n| 1 | a | `x` |\n\n| 2 | b | **not yet**: all |\n", &[]);
        check(
            "| 1 | a | `x` |\n| 3 | b | it works |\n",
            &[
                "docs/origins.md:2: row 3 comes after row 1",
                "docs/origins.md:2: row 3 names no test and no command",
            ],
        );
        expect_findings(&super::check(&of_files([])), &["docs/origins.md: is missing"]);
    }
}
