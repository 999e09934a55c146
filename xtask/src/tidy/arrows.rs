//! Manifests agree with the table of layers.
//!
//! Dependencies of tests may point anywhere: a test stands outside the floors.

use super::Finding;
use super::layer_table::{Async, Files, LAYERS, Layer};
use crate::workspace::{Package, Workspace};

const TABLE: &str = "xtask/src/tidy/layer_table.rs";

/// Libraries that bring async with them.
const ASYNC_CRATES: &[&str] = &["async-std", "futures", "futures-util", "smol", "tokio"];

/// Features of tokio that need no reactor and start no task.
const TOKIO_WORDS: &[&str] = &["macros", "sync", "time"];

/// Libraries that touch files, sockets or processes.
const FILE_CRATES: &[&str] = &[
    "libc",
    "libloading",
    "nix",
    "reqwest",
    "rusqlite",
    "rustix",
    "tempfile",
    "walkdir",
    "xshell",
];

/// Parts of the standard library and of tokio that do.
const FILE_PATHS: &[&str] =
    &["std::fs", "std::net", "std::os::unix::net", "std::process::", "tokio::fs", "tokio::net"];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.crates() {
        match LAYERS.iter().find(|layer| layer.name == package.short_name()) {
            Some(layer) => check_package(workspace, package, layer, &mut findings),
            None => findings.push(Finding::new(
                package.manifest_path(),
                format!("`{}` has no row in {TABLE}", package.short_name()),
            )),
        }
    }
    for layer in LAYERS {
        if !workspace.crates().any(|package| package.short_name() == layer.name) {
            findings.push(Finding::new(TABLE, format!("there is no crates/{}", layer.name)));
        }
    }
    findings
}

fn check_package(
    workspace: &Workspace,
    package: &Package,
    layer: &Layer,
    findings: &mut Vec<Finding>,
) {
    let mut found = |message| findings.push(Finding::new(package.manifest_path(), message));
    let name = layer.name;
    for (dependency, value) in package.dependencies() {
        if let Some(ours) = dependency.strip_prefix("offshoot-")
            && !layer.uses.contains(&ours)
        {
            let may = if layer.uses.is_empty() { "none".to_owned() } else { layer.uses.join(", ") };
            found(format!("the arrow {name} -> {ours} is not in {TABLE}; it may use: {may}"));
        }
        if layer.asynchronous == Async::No && ASYNC_CRATES.contains(&dependency) {
            found(format!("the arrow {name} -> {dependency}: {name} knows no async"));
        }
        if layer.asynchronous == Async::Words && dependency == "tokio" {
            for feature in features(value).filter(|feature| !TOKIO_WORDS.contains(feature)) {
                found(format!("the arrow {name} -> tokio/{feature}: {name} starts no task"));
            }
        }
        if layer.files == Files::No && FILE_CRATES.contains(&dependency) {
            found(format!("the arrow {name} -> {dependency}: {name} touches no files"));
        }
    }
    match layer.files {
        Files::No => findings.extend(file_paths(workspace, package, &[])),
        Files::In(modules) => findings.extend(file_paths(workspace, package, modules)),
        Files::Yes => {}
    }
}

/// Uses of files in the sources of a crate outside the modules that may touch them; its tests may.
fn file_paths(workspace: &Workspace, package: &Package, modules: &[&str]) -> Vec<Finding> {
    let sources = format!("{}/src/", package.folder);
    let may = |inside: &str| {
        let in_module =
            inside.split(['/', '.']).next().is_some_and(|first| modules.contains(&first));
        in_module || inside.ends_with("tests.rs") || inside.contains("tests/")
    };
    let ours = workspace
        .rust()
        .filter(|(path, _)| path.strip_prefix(&sources).is_some_and(|inside| !may(inside)));
    let mut findings = Vec::new();
    for (path, text) in ours {
        let code = text.split("#[cfg(test)]").next().unwrap_or(text);
        for (number, line) in (1..).zip(code.lines()) {
            let is_comment = line.trim_start().starts_with("//");
            for forbidden in FILE_PATHS.iter().filter(|path| !is_comment && line.contains(**path)) {
                let here = if modules.is_empty() { "" } else { " here" };
                let name = package.short_name();
                let message = format!("{name} touches no files{here}, yet: {forbidden}");
                findings.push(Finding::new(format!("{path}:{number}"), message));
            }
        }
    }
    findings
}

fn features(dependency: &toml::Value) -> impl Iterator<Item = &str> {
    let features = dependency.get("features").and_then(toml::Value::as_array);
    features.into_iter().flatten().filter_map(toml::Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    /// The findings in the manifest of one crate; that the others are absent is not.
    #[track_caller]
    fn check_manifest(name: &str, manifest: &str, expected: &[&str]) {
        let path = format!("crates/{name}/Cargo.toml");
        let mut found = check(&of_files([(&path, manifest)]));
        found.retain(|finding| finding.place == path);
        expect_findings(&found, expected);
    }

    #[test]
    fn arrows_of_the_table_stand() {
        check_manifest("policy", "[dependencies]\noffshoot-model = '1'\nserde = '1'", &[]);
        check_manifest("merge", "[dev-dependencies]\noffshoot-store = '1'\ntokio = '1'", &[]);
        check_manifest("runtime", "[dependencies]\ntokio = { features = ['sync'] }", &[]);
        check_manifest("store", "[dependencies]\ntokio = '1'\nrusqlite = '1'", &[]);
    }

    #[test]
    fn other_arrows_are_named() {
        check_manifest(
            "merge",
            "[dependencies]\noffshoot-spawner.workspace = true",
            &["crates/merge/Cargo.toml: the arrow merge -> spawner is not in \
               xtask/src/tidy/layer_table.rs; it may use: model"],
        );
        check_manifest(
            "session-key",
            "[target.'cfg(unix)'.dependencies]\noffshoot-model = '1'",
            &["crates/session-key/Cargo.toml: the arrow session-key -> model is not in \
               xtask/src/tidy/layer_table.rs; it may use: none"],
        );
        check_manifest(
            "policy",
            "[dependencies]\ntokio = '1'\nrustix = '1'",
            &[
                "crates/policy/Cargo.toml: the arrow policy -> rustix: policy touches no files",
                "crates/policy/Cargo.toml: the arrow policy -> tokio: policy knows no async",
            ],
        );
        check_manifest(
            "runtime",
            "[dependencies]\ntokio = { features = ['sync', 'rt'] }",
            &["crates/runtime/Cargo.toml: the arrow runtime -> tokio/rt: runtime starts no task"],
        );
        check_manifest(
            "mystery",
            "",
            &["crates/mystery/Cargo.toml: `mystery` has no row in xtask/src/tidy/layer_table.rs"],
        );
    }

    #[test]
    fn a_row_without_a_crate_is_named() {
        let found = check(&of_files([]));
        assert_eq!(found.len(), LAYERS.len());
        expect_findings(
            &found[..1],
            &["xtask/src/tidy/layer_table.rs: there is no crates/session-key"],
        );
    }

    #[test]
    fn files_are_touched_only_where_the_table_says() {
        let found = check(&of_files([
            ("crates/model/Cargo.toml", ""),
            ("crates/model/src/a.rs", "// std::fs\nuse std::fs;\n#[cfg(test)]\nuse std::net;\n"),
            ("crates/model/src/a/tests.rs", "use std::fs;"),
            ("crates/plugin-sdk/Cargo.toml", ""),
            ("crates/plugin-sdk/src/run.rs", "use std::fs;"),
            ("crates/plugin-sdk/src/merge.rs", "use std::fs;"),
            ("crates/plugin-sdk/src/merge/a.rs", "use std::fs;"),
            ("crates/store/Cargo.toml", ""),
            ("crates/store/src/a.rs", "use std::fs;"),
        ]));
        let found: Vec<_> = found.into_iter().filter(|f| f.place != TABLE).collect();
        expect_findings(
            &found,
            &[
                "crates/model/src/a.rs:2: model touches no files, yet: std::fs",
                "crates/plugin-sdk/src/run.rs:1: plugin-sdk touches no files here, yet: std::fs",
            ],
        );
    }

    #[test]
    fn the_table_has_no_circle() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for used in layer.uses {
                let below = LAYERS[..index].iter().any(|lower| lower.name == *used);
                assert!(below, "{} uses {used}, which does not stand above it", layer.name);
            }
        }
    }
}
