//! The merges of plugins that there were when a tree began.
//!
//! Agents name plugins while their tree runs, and an agent may be able to write where plugins are looked for. So what they
//! can name is what was found, and trusted, before the first of them ran, each with its digest. What has come or changed
//! since then is refused: no agent gets a library of its own into the process that holds it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;
use offshoot_plugin_host::{Candidate, PlaceOrigin, PluginMerge};

use super::Plugins;
use crate::error::HostError;

/// The merges that were found.
#[derive(Debug)]
pub struct PluginSnapshot {
    plugins: Plugins,
    /// By the names of the merges.
    merges: BTreeMap<String, Seen>,
}

/// A plugin as it was seen.
#[derive(Clone, Debug)]
struct Seen {
    folder: PathBuf,
    origin: PlaceOrigin,
    /// Of `plugin.toml` and the library; none where there was no library that could be used.
    digest: Option<ContentHash>,
    /// The digest that the user had trusted.
    trusted: Option<ContentHash>,
}

impl PluginSnapshot {
    /// Looks at everything that there is now. A place that cannot be read has nothing in it, which is said when a merge is named.
    pub fn take(plugins: Plugins) -> Result<Self, HostError> {
        let mut merges = BTreeMap::new();
        for candidate in plugins.search().all().unwrap_or_default() {
            let Ok(package) = &candidate.package else { continue };
            if candidate.shadowed_by.is_some() || package.merges.is_empty() {
                continue;
            }
            let names = package.merges.clone();
            let trusted = plugins.trusted(&candidate)?;
            let (folder, origin) = (candidate.folder.clone(), candidate.origin);
            let digest = candidate.examine().ok().map(|examined| examined.digest());
            let seen = Seen { folder, origin, digest, trusted };
            for name in names {
                merges.entry(name.to_string()).or_insert_with(|| seen.clone());
            }
        }
        Ok(Self { plugins, merges })
    }

    /// Loads a merge, where it is still what was found. It reads files and may start a process.
    pub fn merge(&self, name: &str) -> Result<PluginMerge, HostError> {
        let Some(seen) = self.merges.get(name) else {
            let new = self.plugins.search().merge(name)?;
            let why = "was not there when this tree began";
            return Err(not_of_this_tree(&new.name, &new.folder, why));
        };
        let candidate = Candidate::read(seen.folder.clone(), seen.origin);
        let examined = candidate.examine()?;
        if seen.digest != Some(examined.digest()) {
            let why = "has changed since this tree began";
            return Err(not_of_this_tree(examined.name(), examined.folder(), why));
        }
        let checked = examined.judge(seen.trusted)?;
        self.plugins.load_merge(name, &checked)
    }
}

fn not_of_this_tree(name: &str, folder: &Path, why: &'static str) -> HostError {
    HostError::NotOfThisTree { name: name.to_owned(), folder: folder.to_owned(), why }
}
