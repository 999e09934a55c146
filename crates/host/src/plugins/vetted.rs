//! The libraries that were loaded in a process of their own without harm, by their digests. What is in the list is loaded
//! here at once. A list that cannot be read or written is none: then every first load of a command is tried out.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use offshoot_model::ContentHash;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::state_file;

/// The list of this version of the program: another one may meet the same library otherwise.
#[derive(Debug)]
pub(crate) struct VettedLibraries {
    path: Option<PathBuf>,
    list: List,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    version: String,
    libraries: BTreeSet<ContentHash>,
}

/// So many libraries are remembered; beyond that, all are forgotten and tried again when they are next used.
const MOST: usize = 1000;

impl VettedLibraries {
    /// Reads the list.
    pub(crate) fn read(environment: &Environment) -> Self {
        let path = environment.state_home.as_ref().map(|home| home.join("offshoot/tried.json"));
        let list: Option<List> = path.as_deref().and_then(state_file::read);
        let version = env!("CARGO_PKG_VERSION");
        let list = list.filter(|list| list.version == version && list.libraries.len() < MOST);
        let new = || List { version: version.to_owned(), ..List::default() };
        Self { path, list: list.unwrap_or_else(new) }
    }

    /// True if this library was vetted.
    pub(crate) fn contains(&self, library: &ContentHash) -> bool {
        self.list.libraries.contains(library)
    }

    /// Remembers a library. Two commands that do so at once may forget one of theirs, which is then tried again.
    pub(crate) fn add(&mut self, library: ContentHash) {
        self.list.libraries.insert(library);
        let Some(path) = &self.path else { return };
        let Some(folder) = path.parent() else { return };
        let written = fs::create_dir_all(folder).and_then(|()| state_file::write(path, &self.list));
        // The file only saves time: an error does no harm.
        let _ = written;
    }
}
