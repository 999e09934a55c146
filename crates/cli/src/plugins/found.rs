//! The merges of plugins that there were when a tree began.
//!
//! Agents name plugins while their tree runs, and an agent may be able to write where plugins are looked for. So what they
//! can name is what was found, and trusted, before the first of them ran, each with its digest. What has come or changed
//! since then is refused: no agent gets a library of its own into the process that holds it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;
use offshoot_plugin_host::{Candidate, PlaceOrigin, PluginMerge};

use super::{Plugins, trusted, unusable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    plugins: Plugins,
    cx: Invocation,
    /// By the names of the merges.
    merges: BTreeMap<String, Sighting>,
}

/// A plugin as it was seen.
#[derive(Clone, Debug)]
struct Sighting {
    folder: PathBuf,
    origin: PlaceOrigin,
    /// Of `plugin.toml` and the library; none where there was no library that could be used.
    digest: Option<ContentHash>,
    /// What the user had trusted of it.
    trusted: Option<ContentHash>,
}

impl Found {
    /// Looks at everything that there is now. A place that cannot be read has nothing in it: that is told to whoever names
    /// a merge.
    pub(crate) fn look(plugins: Plugins, cx: Invocation) -> Result<Self, Failure> {
        let mut merges = BTreeMap::new();
        for candidate in plugins.search().all().unwrap_or_default() {
            let Ok(package) = &candidate.package else { continue };
            if candidate.shadowed_by.is_some() || package.merges.is_empty() {
                continue;
            }
            let names = package.merges.clone();
            let trusted = trusted(&candidate, &cx)?;
            let (folder, origin) = (candidate.folder.clone(), candidate.origin);
            let digest = candidate.examine().ok().map(|examined| examined.digest());
            let sighting = Sighting { folder, origin, digest, trusted };
            for name in names {
                merges.entry(name.to_string()).or_insert_with(|| sighting.clone());
            }
        }
        Ok(Self { plugins, cx, merges })
    }

    /// Loads a merge, where it is still what was found. It reads files and may start a process.
    pub(crate) fn merge(&self, name: &str) -> Result<PluginMerge, Failure> {
        let Self { plugins, cx, merges } = self;
        let Some(sighting) = merges.get(name) else {
            let new = plugins.search().merge(name).map_err(|error| unusable(&error, cx))?;
            let why = "was not there when this tree began";
            return Err(not_of_this_tree(&new.name, &new.folder, why));
        };
        let Sighting { folder, origin, digest, trusted } = sighting;
        let candidate = Candidate::read(folder.clone(), *origin);
        let examined = candidate.examine().map_err(|error| unusable(&error, cx))?;
        if *digest != Some(examined.digest()) {
            let why = "has changed since this tree began";
            return Err(not_of_this_tree(examined.name(), examined.folder(), why));
        }
        let checked = examined.judge(*trusted).map_err(|error| unusable(&error, cx))?;
        plugins.load_merge(name, &checked, cx)
    }
}

fn not_of_this_tree(name: &str, folder: &Path, why: &str) -> Failure {
    let message = format!("the plugin `{name}` in {} {why}", folder.display());
    Failure::new(Exit::NoRuntime, message)
        .hint("agents use plugins as they were when their tree began: use it in the next one")
}
