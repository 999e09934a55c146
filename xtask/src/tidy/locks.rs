//! Lock files name no machine: an installation from them uses the registry that its user has chosen.

use super::Finding;
use crate::workspace::Workspace;

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in &workspace.files {
        if path.ends_with("package-lock.json") {
            for (number, line) in (1..).zip(text.lines()) {
                if line.contains("\"resolved\": \"http") {
                    findings.push(Finding::new(
                        format!("{path}:{number}"),
                        "names a host; write the file with `npm install --omit-lockfile-registry-resolved`",
                    ));
                }
            }
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
    fn a_host_is_found() {
        let found = check(&of_files([
            ("a/package-lock.json", "{\n  \"resolved\": \"https://example.org/x.tgz\"\n}"),
            ("b/package-lock.json", "{ \"integrity\": \"sha512-x\", \"resolved\": \"../sdk\" }"),
            ("c/other.json", "{ \"resolved\": \"https://example.org\" }"),
        ]));
        expect_findings(
            &found,
            &["a/package-lock.json:2: names a host; write the file with \
               `npm install --omit-lockfile-registry-resolved`"],
        );
    }
}
