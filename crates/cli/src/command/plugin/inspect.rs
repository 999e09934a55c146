//! `offshoot plugin inspect`.

use std::path::Path;

use offshoot_model::{ContentHash, JsonText};
use offshoot_plugin_host::{Described, Extent, Manifest, MergeEntry, RuntimeEntry};
use offshoot_runtime::Abilities;
use serde::Serialize;
use serde_json::{Value, json};

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
    /// With the rights that each can take away; null where any.
    runtimes: Vec<Value>,
    merges: Vec<Value>,
    config_schema: Option<&'a JsonText>,
}

/// Opens it in a process of its own and prints what it says.
pub(super) fn run(arguments: &OnePluginArguments, cx: &Invocation) -> Result<(), Failure> {
    let plugins = super::plugins(&arguments.path, cx)?;
    let checked = Meant::of(&arguments.plugin, &plugins, cx)?.check(&plugins)?;
    let Described { manifest, abi } = plugins.describe(&checked, &Extent::default())?;
    let Manifest { name, version, description, license, config_schema, runtimes, merges, .. } =
        &manifest;
    let runtime = |RuntimeEntry { name, description, abilities, .. }: &RuntimeEntry| {
        let Abilities { cost, turns, resumes, enforces } = abilities;
        json!({
            "name": name, "description": description, "cost": cost.as_ref(),
            "turns": turns, "resumes": resumes, "enforces": enforces,
        })
    };
    let merge = |MergeEntry { name, description, .. }: &MergeEntry| json!({ "name": name, "description": description });
    let shown = Shown {
        name,
        version,
        description,
        license,
        abi: abi.to_string(),
        library: checked.path(),
        digest: checked.digest(),
        runtimes: runtimes.iter().map(runtime).collect(),
        merges: merges.iter().map(merge).collect(),
        config_schema: config_schema.as_ref(),
    };
    cx.output.result(&shown, || print(&shown, &manifest, cx))
}

fn print(shown: &Shown<'_>, manifest: &Manifest, cx: &Invocation) -> Result<(), Failure> {
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
    for RuntimeEntry { name, description, abilities, .. } in &manifest.runtimes {
        let Abilities { cost, turns, resumes, .. } = abilities;
        let mut can = vec![format!("cost {}", cost.as_ref())];
        can.extend(turns.then(|| "takes further turns".to_owned()));
        can.extend(resumes.then(|| "resumes".to_owned()));
        rows.push([format!("  runtime {name}"), format!("{description} ({})", can.join(", "))]);
    }
    for MergeEntry { name, description, .. } in &manifest.merges {
        rows.push([format!("  merge {name}"), description.clone()]);
    }
    if let Some(schema) = shown.config_schema {
        rows.push(["  settings".to_owned(), schema.as_str().to_owned()]);
    }
    cx.output.table(&rows)
}
