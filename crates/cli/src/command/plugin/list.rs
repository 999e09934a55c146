//! `offshoot plugin list`.

use std::path::PathBuf;

use offshoot_model::path_text;
use offshoot_plugin_host::{Candidate, PlaceOrigin, PluginError, PluginName};
use serde::Serialize;

use crate::arguments::PluginPathArguments;
use crate::code::NoteCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::plugins::trusted;

/// A plugin that was found.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedPlugin {
    name: String,
    version: Option<String>,
    abi: Option<String>,
    runtimes: Vec<PluginName>,
    merges: Vec<PluginName>,
    #[serde(with = "path_text")]
    folder: PathBuf,
    origin: PlaceOrigin,
    state: PluginState,
    #[serde(skip_serializing_if = "Option::is_none")]
    shadowed_by: Option<PathBuf>,
    /// The reason why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum PluginState {
    Usable,
    Shadowed,
    NotTrusted,
    Changed,
    Unusable,
}

/// Lists what there is. Nothing is loaded.
pub(super) fn run(path: &PluginPathArguments, cx: &Invocation) -> Result<(), Failure> {
    let plugins = super::plugins(path, cx)?;
    let all = plugins.search().all().map_err(|error| Failure::of(Exit::NoRuntime, &error))?;
    let found = all.into_iter().map(|candidate| judge(candidate, cx));
    let found = found.collect::<Result<Vec<ListedPlugin>, Failure>>()?;
    if found.is_empty() && !cx.output.wants_json() {
        cx.output.note(NoteCode::NoPlugins, "there is no plugin in any of these folders:");
        for place in plugins.search().places() {
            cx.output.note(
                NoteCode::PluginFolder,
                format_args!("  {} ({})", place.folder.display(), place.origin),
            );
        }
    }
    let row = |found: &ListedPlugin| {
        let offers = found.runtimes.iter().map(|name| format!("runtime {name}"));
        let offers = offers.chain(found.merges.iter().map(|name| format!("merge {name}")));
        [
            found.name.clone(),
            found.version.clone().unwrap_or_default(),
            offers.collect::<Vec<_>>().join(", "),
            format!("{} ({})", found.folder.display(), found.origin),
            remark(found),
        ]
    };
    let headings = ["PLUGIN", "VERSION", "OFFERS", "FOLDER", "REMARK"];
    cx.output.result(&found, || cx.output.listing(headings, found.iter().map(row)))
}

fn judge(candidate: Candidate, cx: &Invocation) -> Result<ListedPlugin, Failure> {
    let package = candidate.package.as_ref().ok();
    let mut found = ListedPlugin {
        name: candidate.name.clone(),
        version: package.map(|package| package.version.clone()),
        abi: package.map(|package| package.abi.to_string()),
        runtimes: package.map(|package| package.runtimes.clone()).unwrap_or_default(),
        merges: package.map(|package| package.merges.clone()).unwrap_or_default(),
        folder: candidate.folder.clone(),
        origin: candidate.origin,
        state: PluginState::Usable,
        shadowed_by: candidate.shadowed_by.clone(),
        reason: None,
    };
    if found.shadowed_by.is_some() {
        found.state = PluginState::Shadowed;
        return Ok(found);
    }
    let trusted = trusted(&candidate, cx)?;
    if let Err(error) = candidate.check(trusted) {
        found.state = match error {
            PluginError::NotTrusted { .. } => PluginState::NotTrusted,
            PluginError::Changed { .. } => PluginState::Changed,
            _ => PluginState::Unusable,
        };
        found.reason = Some(error.to_string());
    }
    Ok(found)
}

fn remark(found: &ListedPlugin) -> String {
    match (found.state, &found.shadowed_by, &found.reason) {
        (PluginState::Usable, ..) => String::new(),
        (PluginState::Shadowed, Some(by), _) => format!("shadowed by {}", by.display()),
        (PluginState::NotTrusted, ..) => "not trusted, so it is ignored".to_owned(),
        (PluginState::Changed, ..) => "changed since it was trusted, so it is ignored".to_owned(),
        (_, _, Some(reason)) => format!("unusable: {}", reason.lines().next().unwrap_or_default()),
        (_, _, None) => "unusable".to_owned(),
    }
}
