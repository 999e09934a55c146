//! A file of a crate holds one noun, and one noun rarely needs 600 lines.

use super::Finding;
use crate::workspace::Workspace;

/// Most files are far below; above, it is worth a look whether a second noun hides in it.
const MOST_LINES: usize = 600;

/// Files that may be longer, each with its reason.
const LONG: &[(&str, &str)] = &[];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    check_list(workspace, LONG)
}

fn check_list(workspace: &Workspace, long: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in workspace.rust().filter(|(path, _)| path.starts_with("crates/")) {
        let lines = text.lines().count();
        let listed = long.iter().any(|(long, _)| *long == path);
        if lines > MOST_LINES && !listed {
            findings.push(Finding::new(
                path,
                format!("{lines} lines, more than {MOST_LINES}: split it, or list it in xtask/src/tidy/size.rs"),
            ));
        } else if lines <= MOST_LINES && listed {
            findings.push(Finding::new(path, "is listed as long and is not any more"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    #[test]
    fn long_files_are_named_once_and_for_all() {
        let (long, short) = ("x\n".repeat(601), "x\n".repeat(600));
        let workspace = of_files([
            ("crates/a/src/listed.rs", &long),
            ("crates/a/src/long.rs", &long),
            ("crates/a/src/short.rs", &short),
            ("crates/a/src/shortened.rs", &short),
            ("xtask/src/long.rs", &long),
        ]);
        let listed = [("crates/a/src/listed.rs", "why"), ("crates/a/src/shortened.rs", "why")];
        expect_findings(
            &check_list(&workspace, &listed),
            &[
                "crates/a/src/long.rs: 601 lines, more than 600: split it, or list it in \
                 xtask/src/tidy/size.rs",
                "crates/a/src/shortened.rs: is listed as long and is not any more",
            ],
        );
    }
}
