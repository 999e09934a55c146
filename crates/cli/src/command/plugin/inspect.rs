//! `offshoot plugin inspect`.

use std::path::Path;

use offshoot_model::{ContentHash, JsonText};
use offshoot_plugin_host::{Described, Extent, Manifest, RuntimeEntry};
use offshoot_runtime::Abilities;
use serde::Serialize;

use super::{Meant, OnePluginArguments};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::output::harmless;

/// The description of a plugin, by itself and by its files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    name: &'a str,
    version: &'a str,
    description: &'a str,
    license: &'a str,
    abi: String,
    library: &'a Path,
    digest: ContentHash,
    runtimes: Vec<ShownRuntime<'a>>,
    merges: Vec<ShownMerge<'a>>,
    config_schema: Option<&'a JsonText>,
}

#[derive(Serialize)]
struct ShownRuntime<'a> {
    name: &'a str,
    description: &'a str,
    cost: &'a str,
    turns: bool,
    resumes: bool,
    /// The rights that it can take away; null where any.
    enforces: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
struct ShownMerge<'a> {
    name: &'a str,
    description: &'a str,
}

/// Opens it in a process of its own and prints what it says.
pub(super) fn run(arguments: &OnePluginArguments, cx: &Invocation) -> Result<(), Failure> {
    let plugins = super::plugins(&arguments.path, cx)?;
    let checked = Meant::of(&arguments.plugin, &plugins, cx)?.check(&plugins)?;
    let Described { manifest, abi } = plugins.describe(&checked, &Extent::default())?;
    let Manifest { name, version, description, license, config_schema, runtimes, merges, .. } =
        &manifest;
    let shown = Shown {
        name,
        version,
        description,
        license,
        abi: abi.to_string(),
        library: checked.path(),
        digest: checked.digest(),
        runtimes: runtimes.iter().map(runtime).collect(),
        merges: merges
            .iter()
            .map(|merge| ShownMerge { name: &merge.name, description: &merge.description })
            .collect(),
        config_schema: config_schema.as_ref(),
    };
    cx.output.result(&shown, || print(&shown, cx))
}

fn print(shown: &Shown<'_>, cx: &Invocation) -> Result<(), Failure> {
    cx.output.line(harmless(&format!("{} {}", shown.name, shown.version)))?;
    if !shown.description.is_empty() {
        cx.output.line(harmless(shown.description))?;
    }
    let mut rows = vec![
        ["  interface".to_owned(), shown.abi.clone()],
        ["  licence".to_owned(), shown.license.to_owned()],
        ["  library".to_owned(), shown.library.display().to_string()],
        ["  digest".to_owned(), shown.digest.to_string()],
    ];
    for runtime in &shown.runtimes {
        let ShownRuntime { name, description, cost, turns, resumes, .. } = runtime;
        let mut can = vec![format!("cost {cost}")];
        can.extend(turns.then(|| "takes further turns".to_owned()));
        can.extend(resumes.then(|| "resumes".to_owned()));
        rows.push([format!("  runtime {name}"), format!("{description} ({})", can.join(", "))]);
    }
    for ShownMerge { name, description } in &shown.merges {
        rows.push([format!("  merge {name}"), (*description).to_owned()]);
    }
    if let Some(schema) = shown.config_schema {
        rows.push(["  settings".to_owned(), schema.as_str().to_owned()]);
    }
    cx.output.table(&rows)
}

fn runtime(entry: &RuntimeEntry) -> ShownRuntime<'_> {
    let Abilities { cost, turns, resumes, enforces } = &entry.abilities;
    ShownRuntime {
        name: &entry.name,
        description: &entry.description,
        cost: cost.as_ref(),
        turns: *turns,
        resumes: *resumes,
        enforces: enforces.as_ref().map(|rights| rights.iter().map(String::as_str).collect()),
    }
}
