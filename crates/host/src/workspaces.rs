//! Folders of their own for the runs of a data folder: the engine's side of them, with the record.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_isolation::{
    About, Gathered, Git, IsolationError, Order, Repository, Workspace, Workspaces,
};
use offshoot_model::{Changes, Isolation, RootId, RunId, ValueKind, error_chain, number};
use offshoot_process::Processes;
use offshoot_spawner::{LeftChange, LeftChanges, WorkspaceOrder};
use offshoot_store::{DataFolder, NewValue, Store, StoreError};
use tokio::sync::OnceCell;

use crate::environment::Environment;
use crate::error::HostError;
use crate::reporter::Reporter;

/// Makes folders of their own for runs, and keeps what comes back. Nothing of it is made before the first run needs it. Cheap to
/// clone.
#[derive(Clone, derive_more::Debug)]
#[debug("Folders({})", folder.path().display())]
pub struct Folders {
    folder: Arc<DataFolder>,
    pub(crate) store: Arc<dyn Store>,
    environment: Arc<Environment>,
    processes: Processes,
    workspaces: Arc<OnceCell<Workspaces>>,
}

impl Folders {
    pub(crate) fn new(
        folder: &Arc<DataFolder>,
        store: Arc<dyn Store>,
        environment: &Environment,
        processes: &Processes,
    ) -> Self {
        let (folder, environment) = (Arc::clone(folder), Arc::new(environment.clone()));
        let (processes, workspaces) = (processes.clone(), Arc::default());
        Self { folder, store, environment, processes, workspaces }
    }

    /// Makes sure that a run can have such a folder in place of this one.
    ///
    /// # Errors
    ///
    /// Fails if git is not there, or has no repository or commit for it.
    pub async fn check(&self, isolation: &Isolation, folder: &Path) -> Result<(), HostError> {
        let commit = match isolation {
            Isolation::None => return Ok(()),
            Isolation::Copy => return Ok(self.workspaces().await.map(drop)?),
            Isolation::Worktree { commit } => commit.as_deref().unwrap_or("HEAD"),
        };
        let git = self.workspaces().await?.git();
        Ok(Repository::of(git, folder, commit).await.map(drop)?)
    }

    /// Brings back what trees without a supervisor have left, and removes their folders. The patches stay beside the record until
    /// the trees are resumed or pruned.
    pub(crate) async fn recover(&self, reporter: &Reporter) {
        if !Workspaces::is_at(self.folder.path()) {
            return;
        }
        if let Err(error) = self.bring_back(reporter).await {
            reporter.warning(format_args!(
                "folders that an earlier supervisor left stay: {}",
                error_chain(&error)
            ));
        }
    }
}

/// Removes what is left of the folders of a tree that is no longer on record. True if nothing of it is left: a folder that was not
/// brought back stays.
///
/// # Errors
///
/// Fails if something cannot be removed.
pub fn prune_folders(folder: &DataFolder, root: RootId, dry: bool) -> Result<bool, HostError> {
    Ok(Workspaces::prune(folder.path(), root, dry)?)
}

/// A folder that cannot be brought back now.
#[derive(Debug, thiserror::Error)]
enum LeftError {
    #[error(transparent)]
    Isolation(#[from] IsolationError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Folders {
    /// Opens them, once.
    pub(crate) async fn workspaces(&self) -> Result<&Workspaces, IsolationError> {
        let open = async || {
            let git = Git::find(self.processes.clone(), self.environment.variables.clone())?;
            Workspaces::open(self.folder.path(), git)
        };
        self.workspaces.get_or_try_init(open).await
    }

    async fn bring_back(&self, reporter: &Reporter) -> Result<(), LeftError> {
        let workspaces = self.workspaces().await?;
        let mut trees: HashMap<RootId, Vec<About>> = HashMap::new();
        for about in workspaces.left().await? {
            trees.entry(about.root).or_default().push(about);
        }
        for (root, left) in trees {
            let _lock = match self.folder.hold(root) {
                Ok(lock) => lock,
                // A tree that runs has its folders.
                Err(StoreError::Held { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            for About { run, kept, .. } in left {
                // Its end is on record.
                if self.store.ending(root, run)?.is_some() {
                    workspaces.discard(run).await?;
                    continue;
                }
                if kept.is_none() {
                    match workspaces.gather(run).await? {
                        None => {
                            workspaces.discard(run).await?;
                            continue;
                        }
                        Some(Gathered { about, .. }) => reporter.note(format_args!(
                            "kept what the interrupted run {run} has changed: {}",
                            number::many(about.kept.map_or(0, |kept| kept.files.into()), "file")
                        )),
                    }
                }
                workspaces.clear(run).await?;
            }
        }
        Ok(())
    }

    /// Makes the patch a value of the store.
    async fn kept(&self, gathered: Gathered) -> Result<Box<Changes>, StoreError> {
        let Gathered { about, patch } = gathered;
        let patch = match patch {
            Some(patch) => Some(self.store.put(NewValue::file(ValueKind::Bytes, patch)).await?),
            None => None,
        };
        Ok(Box::new(Changes {
            isolation: about.isolation,
            of: Arc::new(about.of),
            base: about.base.map(Into::into),
            patch,
            files: about.kept.map_or(0, |kept| kept.files),
            notes: about.notes.into_iter().map(Into::into).collect(),
        }))
    }

    async fn changes(&self, run: RunId, again: bool) -> Result<Option<Box<Changes>>, LeftError> {
        let workspaces = self.workspaces().await?;
        if again {
            workspaces.forget(run).await?;
        }
        match workspaces.gather(run).await? {
            Some(gathered) => Ok(Some(self.kept(gathered).await?)),
            None => Ok(None),
        }
    }

    async fn left_changes(&self, root: RootId) -> Result<LeftChanges, LeftError> {
        let mut changes = LeftChanges::new();
        if !Workspaces::is_at(self.folder.path()) {
            return Ok(changes);
        }
        let left = self.workspaces().await?.left().await?;
        for About { run, kept, .. } in left.into_iter().filter(|about| about.root == root) {
            let is_new = kept.is_none();
            match self.changes(run, false).await? {
                Some(kept) => drop(changes.insert(run, LeftChange { changes: kept, is_new })),
                None => self.workspaces().await?.discard(run).await?,
            }
        }
        Ok(changes)
    }

    /// The text of a fault, for a run that stays where it is.
    fn stays(&self, run: RunId, error: &LeftError) -> String {
        let folder = self.folder.path().join("isolated").join(run.to_string());
        format!(
            "what it has changed cannot be brought back: {}; it stays in {}",
            error_chain(error),
            folder.display()
        )
    }
}

impl offshoot_spawner::Workspaces for Folders {
    fn make(&self, order: WorkspaceOrder) -> BoxFuture<'static, Result<PathBuf, String>> {
        let folders = self.clone();
        async move {
            let WorkspaceOrder { run, root, isolation, folder, continues } = order;
            let folder = folder.to_path_buf();
            let order = Order { run, root, isolation, folder, continues };
            let made = async { folders.workspaces().await?.make(order).await };
            match made.await {
                Ok(Workspace { folder, notes }) => {
                    for note in notes {
                        tracing::info!(%run, note, "folder of its own");
                    }
                    Ok(folder)
                }
                Err(error) => Err(match error.hint() {
                    Some(hint) => format!("{}; {hint}", error_chain(&error)),
                    None => error_chain(&error),
                }),
            }
        }
        .boxed()
    }

    fn gather(
        &self,
        run: RunId,
        again: bool,
    ) -> BoxFuture<'static, Result<Option<Box<Changes>>, String>> {
        let folders = self.clone();
        async move { folders.changes(run, again).await.map_err(|error| folders.stays(run, &error)) }
            .boxed()
    }

    fn discard(&self, run: RunId) -> BoxFuture<'static, ()> {
        let folders = self.clone();
        async move {
            let discarded = async { folders.workspaces().await?.discard(run).await };
            if let Err(error) = discarded.await {
                // The next start finds it.
                tracing::warn!(%run, error = error_chain(&error), "folder of a run not removed");
            }
        }
        .boxed()
    }

    fn left(&self, root: RootId) -> BoxFuture<'static, Result<LeftChanges, String>> {
        let folders = self.clone();
        async move { folders.left_changes(root).await.map_err(|error| error_chain(&error)) }.boxed()
    }
}
