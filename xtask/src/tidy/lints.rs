//! Every member is under the workspace's lints.

use super::Finding;
use crate::workspace::{Package, Workspace};

/// Members that copy the table, because an inherited table cannot be changed in part.
const COPIES: &[&str] = &[
    "crates/plugin-abi",
    "crates/plugin-host",
    "crates/plugin-sdk",
    "crates/process",
    "tests/faults",
];

/// The one lint that they may set otherwise.
const LIFTED: &str = "unsafe_code";

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let root = workspace.text("Cargo.toml").unwrap_or_default();
    let root: toml::Table = root.parse().unwrap_or_default();
    let table = root.get("workspace").and_then(|workspace| workspace.get("lints"));
    let findings = workspace.packages.iter().filter_map(|package| {
        let message = match package.manifest.get("lints") {
            Some(lints) if inherits(lints) => return None,
            Some(lints) if may_copy(package) => {
                if Some(without_exception(lints)) == table.map(without_exception) {
                    return None;
                }
                format!("its lints differ from the workspace's in more than `{}`", LIFTED)
            }
            _ => "write `workspace = true` under [lints]".to_owned(),
        };
        Some(Finding::new(package.manifest_path(), message))
    });
    findings.collect()
}

fn inherits(lints: &toml::Value) -> bool {
    lints.get("workspace").and_then(toml::Value::as_bool) == Some(true)
}

fn may_copy(package: &Package) -> bool {
    COPIES.contains(&package.folder.as_str())
}

fn without_exception(lints: &toml::Value) -> toml::Value {
    let mut lints = lints.clone();
    if let Some(rust) = lints.get_mut("rust").and_then(toml::Value::as_table_mut) {
        rust.remove(LIFTED);
    }
    lints
}

#[cfg(test)]
mod tests {
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    const ROOT: &str = "[workspace.lints.rust]\nunsafe_code = 'forbid'\nmissing_docs = 'warn'\n";

    #[track_caller]
    fn check(folder: &str, manifest: &str, expected: &[&str]) {
        let path = format!("{folder}/Cargo.toml");
        let found = super::check(&of_files([("Cargo.toml", ROOT), (&path, manifest)]));
        expect_findings(&found, expected);
    }

    #[test]
    fn lints_are_inherited_or_copied_where_unsafe_is() {
        let copied = "[lints.rust]\nunsafe_code = 'deny'\nmissing_docs = 'warn'\n";
        check("crates/a", "[lints]\nworkspace = true", &[]);
        check("crates/a", "", &["crates/a/Cargo.toml: write `workspace = true` under [lints]"]);
        check("crates/a", copied, &["crates/a/Cargo.toml: write `workspace = true` under [lints]"]);
        check("crates/process", copied, &[]);
        check(
            "crates/process",
            "[lints.rust]\nunsafe_code = 'deny'\n",
            &["crates/process/Cargo.toml: its lints differ from the workspace's in more than \
               `unsafe_code`"],
        );
    }
}
