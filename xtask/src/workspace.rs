//! The workspace as text: what the checks read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Result;

/// Folders that hold nothing of ours.
const SKIPPED: &[&str] = &["target", ".git", "node_modules", ".offshoot", "corpus"];

/// Endings of files that people write.
const TEXT: &[&str] =
    &["rs", "toml", "md", "json", "json5", "jsonl", "yml", "yaml", "sh", "py", "js", "ts", "c"];

/// The text files of the workspace and the packages that they make up.
pub(crate) struct Workspace {
    /// Text by path, which is relative to the root and written with `/`.
    pub(crate) files: BTreeMap<String, String>,
    /// Members, in the order of their folders.
    pub(crate) packages: Vec<Package>,
}

/// One member.
pub(crate) struct Package {
    /// The folder, such as `crates/model`.
    pub(crate) folder: String,
    /// The manifest, parsed.
    pub(crate) manifest: toml::Table,
}

impl Workspace {
    /// Reads this checkout.
    pub(crate) fn read() -> Result<Self> {
        let mut files = BTreeMap::new();
        read_folder(root(), "", &mut files)?;
        Self::of(files)
    }

    /// A workspace of the given files.
    pub(crate) fn of(files: BTreeMap<String, String>) -> Result<Self> {
        let mut packages = Vec::new();
        for (path, text) in &files {
            let Some(folder) = path.strip_suffix("/Cargo.toml") else { continue };
            if is_member(folder) {
                let manifest = text.parse().map_err(|error| format!("{path}: {error}"))?;
                packages.push(Package { folder: folder.to_owned(), manifest });
            }
        }
        Ok(Self { files, packages })
    }

    /// The packages of `crates/`.
    pub(crate) fn crates(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.folder.starts_with("crates/"))
    }

    /// Rust files with their paths.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of a file, if there is one.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }
}

impl Package {
    /// The last part of the folder, which is the name without `offshoot-`.
    pub(crate) fn short_name(&self) -> &str {
        self.folder.rsplit('/').next().expect("splitting gives at least one part")
    }

    /// The path of the manifest.
    pub(crate) fn manifest_path(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    /// The dependencies of a release: for users and for build scripts, on every system.
    pub(crate) fn dependencies(&self) -> BTreeMap<&str, &toml::Value> {
        let mut tables = vec![&self.manifest];
        if let Some(targets) = self.manifest.get("target").and_then(toml::Value::as_table) {
            tables.extend(targets.values().filter_map(toml::Value::as_table));
        }
        let kinds = ["dependencies", "build-dependencies"];
        let sections = tables.into_iter().flat_map(|table| kinds.map(|kind| table.get(kind)));
        let entries = sections.flatten().filter_map(toml::Value::as_table).flatten();
        entries.map(|(name, value)| (name.as_str(), value)).collect()
    }
}

/// The folder of the workspace: the one above this package's.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the root")
}

/// As the root manifest has it; a fuzz target has a workspace of its own.
fn is_member(folder: &str) -> bool {
    match folder.split_once('/') {
        None => matches!(folder, "benches" | "xtask"),
        Some((group, name)) => {
            matches!(group, "benches" | "crates" | "plugins" | "tests") && !name.contains('/')
        }
    }
}

fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.contains(&name) {
                read_folder(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() && is_text(&path) {
            // Fixtures may be broken on purpose: what is not UTF-8 is not for us to read.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                files.insert(path, text);
            }
        }
    }
    Ok(())
}

fn is_text(path: &str) -> bool {
    path.starts_with(".ci/")
        || Path::new(path)
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| TEXT.contains(&ending))
}

#[cfg(test)]
pub(crate) fn of_files<const N: usize>(files: [(&str, &str); N]) -> Workspace {
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    Workspace::of(files.into()).expect("the manifests of a test are sound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_of_the_root_manifest() {
        let workspace = of_files([
            ("Cargo.toml", "[workspace]"),
            ("benches/Cargo.toml", ""),
            ("benches/x/Cargo.toml", ""),
            ("crates/a/Cargo.toml", ""),
            ("crates/a/fuzz/Cargo.toml", ""),
            ("examples/x/Cargo.toml", ""),
            ("tests/support/Cargo.toml", ""),
        ]);
        let folders: Vec<_> = workspace.packages.iter().map(|p| p.folder.as_str()).collect();
        assert_eq!(folders, ["benches", "benches/x", "crates/a", "tests/support"]);
        assert_eq!(workspace.crates().map(Package::short_name).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn dependencies_of_a_release_leave_out_those_of_tests() {
        let workspace = of_files([(
            "crates/a/Cargo.toml",
            "[dependencies]\na = '1'\n[build-dependencies]\nb = '1'\n[dev-dependencies]\nc = '1'\n\
             [target.'cfg(unix)'.dependencies]\nd = '1'\n",
        )]);
        let names: Vec<_> = workspace.packages[0].dependencies().into_keys().collect();
        assert_eq!(names, ["a", "b", "d"]);
    }

    #[test]
    fn this_checkout_can_be_read() {
        let workspace = Workspace::read().unwrap();
        assert!(workspace.text("Cargo.toml").is_some());
        assert!(workspace.text("xtask/src/workspace.rs").is_some());
        assert!(workspace.crates().any(|package| package.short_name() == "session-key"));
    }
}
