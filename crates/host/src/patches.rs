//! Patches of runs on record: joined on a branch, and brought to the files of the user.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use offshoot_isolation::{Bring, Brought, Check, Contribution, Git, Joined, Joint, Workspaces};
use offshoot_model::{RootId, RunId};
use offshoot_process::{Options, Processes};
use offshoot_store::{DataFolder, StoreError};

use crate::environment::Environment;
use crate::error::HostError;
use crate::workspaces::Folders;

/// The runs of a tree whose patches become a branch.
#[derive(Clone, Debug)]
pub struct Branching {
    /// The tree, which names the branch.
    pub root: RootId,
    /// A folder in the repository.
    pub folder: PathBuf,
    /// Each run with its name in the request, in the order of the request.
    pub runs: Vec<(Arc<str>, RunId)>,
    /// The command that must succeed with all patches, and the seconds that it has.
    pub check: Option<(String, u64)>,
    /// An id that nothing else has, for the folder of the check.
    pub id: RunId,
}

impl Folders {
    /// Makes a branch of the patches of runs that completed: `offshoot/ROOT`.
    ///
    /// # Errors
    ///
    /// Fails if git does, or the record cannot be read.
    pub async fn join(&self, order: Branching) -> Result<Joined, HostError> {
        let Branching { root, folder, runs, check, id } = order;
        let store = Arc::clone(&self.store);
        let read = move || -> Result<Vec<Contribution>, StoreError> {
            let mut patches = Vec::new();
            for (key, run) in runs {
                let Some(ending) = store.ending(root, run)? else { continue };
                if !ending.status().is_success() {
                    continue;
                }
                let (key, run) = (key.to_string(), run.to_string());
                let Some(changes) = ending.changes else {
                    patches.push(Contribution { key, run, base: None, patch: None });
                    continue;
                };
                let patch = match changes.patch {
                    Some(value) => {
                        store.verify(&value)?;
                        Some(store.path(&value)?)
                    }
                    None => None,
                };
                let base = changes.base.map(|base| base.to_string());
                patches.push(Contribution { key, run, base, patch });
            }
            Ok(patches)
        };
        let patches = tokio::task::spawn_blocking(read).await;
        let patches = patches.expect("reading the record does not panic")?;
        let check = check.map(|(command, seconds)| Check {
            command,
            limit: Duration::from_secs(seconds),
            id,
            root,
        });
        let branch = format!("offshoot/{root}");
        let joint = Joint { folder, branch, patches, check };
        Ok(self.workspaces().await?.join(&joint).await?)
    }
}

/// Brings the changes of runs to the files of a folder.
///
/// # Errors
///
/// Fails if git does, or is not there.
pub async fn bring(
    data_folder: &DataFolder,
    environment: &Environment,
    folder: &Path,
    what: &Bring,
) -> Result<Brought, HostError> {
    let processes = Processes::start(Options::default())?;
    let git = Git::find(processes, environment.variables.clone())?;
    Ok(Workspaces::open(data_folder.path(), git)?.bring(folder, what).await?)
}
