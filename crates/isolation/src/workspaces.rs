//! The folders of runs: made, brought back, removed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_model::{Isolation, RootId, RunId};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::copying::copy_folder;
use crate::error::IsolationError;
use crate::git::Git;
use crate::removal::{remove_file, remove_folder};
use crate::repository::{Repository, survey};
use crate::scratch::{Scratch, sweep};
use crate::shelf::{About, Shelf};
use crate::snapshot::Snapshot;

/// A command of git that was killed, or met another one in the same repository, is tried so often.
const ATTEMPTS: u32 = 3;

/// Folders of runs on one shelf. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspaces {
    pub(crate) shelf: Shelf,
    git: Git,
    /// Folders that are never copied: that of the data, in which this shelf is.
    without: Arc<[PathBuf]>,
    surveys: Surveys,
}

/// The facts about each commit of which worktrees were made.
type Surveys = Arc<Mutex<HashMap<(PathBuf, String), Arc<OnceCell<Vec<String>>>>>>;

/// A folder that is asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// The run that is to work in it.
    pub run: RunId,
    /// The tree of the run.
    pub root: RootId,
    /// The kind of isolation.
    pub isolation: Isolation,
    /// The folder in which the run would work otherwise. Absolute.
    pub folder: PathBuf,
    /// True if the run goes on where an earlier attempt was: then what that one changed is in the folder.
    pub continues: bool,
}

/// A folder that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The folder in which the run works.
    pub folder: PathBuf,
    /// Facts that its user has to know.
    pub notes: Vec<String>,
}

/// The changes that were made in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The folder as it was made.
    pub about: About,
    /// The file of the patch; none where nothing was changed.
    pub patch: Option<PathBuf>,
}

impl Workspaces {
    /// Opens a shelf in the data folder, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written.
    pub fn open(data_folder: &Path, git: Git) -> Result<Self, IsolationError> {
        let shelf = Shelf::open(&data_folder.join(SHELF))?;
        let without = [data_folder.to_owned()].into();
        Ok(Self { shelf, git, without, surveys: Surveys::default() })
    }

    /// True if a data folder has a shelf, whatever stands on it.
    pub fn is_at(data_folder: &Path) -> bool {
        data_folder.join(SHELF).is_dir()
    }

    /// The program that this uses.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Makes the folder of a run. What an earlier attempt of the run has left is brought back before: its patch is kept beside the
    /// new folder until that is discarded.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be made. Nothing of it is left then.
    pub async fn make(&self, order: Order) -> Result<Workspace, IsolationError> {
        let (run, continues) = (order.run, order.continues);
        let earlier = self.shelf.beside(run, "earlier.patch");
        if self.about(run).await?.is_some() {
            let left = self.gather(run).await?.and_then(|gathered| gathered.patch);
            self.clear(run).await?;
            if let Some(patch) = left {
                let earlier = earlier.clone();
                let set_aside = move || {
                    fs::rename(&patch, &earlier).map_err(IsolationError::io("keep", &patch))
                };
                blocking(set_aside).await?;
            }
        }
        let made = match &order.isolation {
            Isolation::None => return Ok(Workspace { folder: order.folder, notes: Vec::new() }),
            Isolation::Worktree { commit } => {
                let commit = commit.clone();
                self.make_worktree(order, commit.as_deref().unwrap_or("HEAD")).await
            }
            Isolation::Copy => self.make_copy(order).await,
        };
        let made = match made {
            Ok(made) if continues && earlier.exists() => {
                self.restore(run, &earlier).await.map(|()| made)
            }
            made => made,
        };
        if made.is_err() && self.clear(run).await.is_ok() {
            // No agent has worked in it. What cannot be removed is found by the next start.
            let _ = remove_file(&self.shelf.beside(run, "json"));
        }
        made
    }

    async fn make_worktree(&self, order: Order, commit: &str) -> Result<Workspace, IsolationError> {
        let Order { run, root, isolation, folder, .. } = order;
        let repository = Repository::of(&self.git, &folder, commit).await?;
        let Repository { top, common, below, commit } = repository.clone();
        let (common, base, notes, kept) = (Some(common), Some(commit.clone()), Vec::new(), None);
        let (of, begun) = (top, commit);
        let mut about = About { run, root, isolation, of, common, base, begun, notes, kept };
        let survey = self.survey(&repository);
        let added = async {
            self.note(about.clone()).await?;
            self.add_worktree(&about).await
        };
        let (notes, added) = tokio::join!(survey, added);
        added?;
        let notes = notes?;
        if !notes.is_empty() {
            about.notes.clone_from(&notes);
            self.note(about.clone()).await?;
        }
        let tree = self.shelf.folder(run);
        let index = self.shelf.beside(run, "index");
        let theirs = self.git_folder(&about).join("index");
        let ready = move || -> Result<PathBuf, IsolationError> {
            let folder = if below.as_os_str().is_empty() { tree } else { tree.join(below) };
            // A folder that no commit has, because git knows no empty ones.
            fs::create_dir_all(&folder).map_err(IsolationError::io("make", &folder))?;
            keep_index(&theirs, &index).map_err(IsolationError::io("keep", &theirs))?;
            Ok(folder)
        };
        let folder = blocking(ready).await?;
        Ok(Workspace { folder, notes })
    }

    /// Adds the worktree. Others are added and removed in the same repository at the same time, by us and by others, so that a
    /// list of them may change under the command.
    async fn add_worktree(&self, about: &About) -> Result<(), IsolationError> {
        let tree = self.shelf.folder(about.run);
        let mut attempt = 1;
        loop {
            let add = self.git.command(&about.of, "worktree").args(["add", "--quiet", "--detach"]);
            match add.arg(&tree).arg(&about.begun).run().await {
                Ok(_) => return Ok(()),
                Err(error @ IsolationError::Git { .. }) if attempt < ATTEMPTS => {
                    tracing::info!(run = %about.run, %error, attempt, "worktree not added, again");
                    self.remove_worktree(about).await?;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn survey(&self, repository: &Repository) -> Result<Vec<String>, IsolationError> {
        let key = (repository.top.clone(), repository.commit.clone());
        let known = Arc::clone(self.surveys.lock().entry(key).or_default());
        let notes = known.get_or_try_init(|| survey(&self.git, repository)).await?;
        Ok(notes.clone())
    }

    async fn make_copy(&self, order: Order) -> Result<Workspace, IsolationError> {
        let Order { run, root, isolation, folder, .. } = order;
        let from = folder.canonicalize().map_err(IsolationError::io("read", &folder))?;
        let of = from.clone();
        let begun = String::new();
        let (common, base, notes, kept) = (None, None, Vec::new(), None);
        let mut about = About { run, root, isolation, of, common, base, begun, notes, kept };
        self.note(about.clone()).await?;
        let (to, without) = (self.shelf.folder(run), Arc::clone(&self.without));
        // The data folder is left out of a copy, unless it is what is copied.
        if to.starts_with(&from) && without.iter().any(|data| from.starts_with(data)) {
            let into = self.shelf.path().to_owned();
            return Err(IsolationError::IntoItself { folder: from, into });
        }
        let source = from.clone();
        let copied = blocking(move || copy_folder(&source, &to, &without)).await?;
        let private = self.shelf.beside(run, "git");
        let init = self.git.command(self.shelf.path(), "init");
        init.args(["--quiet", "--bare", "--template="]).arg(&private).run().await?;
        let (about_begun, notes) = (self.snapshot(&about).tree().await?, copied.notes());
        let head = Repository::of(&self.git, &from, "HEAD").await.ok();
        let head = head.filter(|head| head.top == from);
        if let Some(head) = &head {
            let named = format!("{}^{{tree}}", head.commit);
            let tree = self.git.command(&from, "rev-parse").arg(named).line().await?;
            about.base = (tree == about_begun).then(|| head.commit.clone());
        }
        about.begun = about_begun;
        about.notes = notes.clone();
        self.note(about).await?;
        Ok(Workspace { folder: self.shelf.folder(run), notes })
    }

    /// Puts the changes of an earlier attempt, which are in a patch, into the folder of a run that goes on.
    async fn restore(&self, run: RunId, patch: &Path) -> Result<(), IsolationError> {
        let about = self.about(run).await?.ok_or(IsolationError::Unknown)?;
        let tree = self.shelf.folder(run);
        let apply = self.git.command(&tree, "apply").args(["--binary", "--whitespace=nowarn"]);
        let places = [("GIT_DIR", &self.git_folder(&about)), ("GIT_WORK_TREE", &tree)];
        apply.envs(places).arg(patch).run().await.map(drop)
    }

    /// Brings back what was changed in the folder of a run. The folder stays as it is; the same answer comes again, also after a
    /// crash, until it is [forgotten](Self::forget).
    ///
    /// # Errors
    ///
    /// Fails if git does, or there is no room for the patch. The folder stays then.
    pub async fn gather(&self, run: RunId) -> Result<Option<Gathered>, IsolationError> {
        let Some(mut about) = self.about(run).await? else { return Ok(None) };
        if about.kept.is_none() {
            let index = self.shelf.beside(run, "index");
            if about.begun.is_empty() || !index.exists() {
                // No agent has worked in it.
                return Ok(None);
            }
            let file = self.shelf.beside(run, "patch");
            let mut attempt = 1;
            let drawn = loop {
                match self.snapshot(&about).patch(&about.begun, &file).await {
                    Err(error @ IsolationError::Git { code: None, .. }) if attempt < ATTEMPTS => {
                        tracing::info!(%run, %error, attempt, "changes not brought back, again");
                        attempt += 1;
                    }
                    drawn => break drawn?,
                }
            };
            for note in drawn.notes {
                if !about.notes.contains(&note) {
                    about.notes.push(note);
                }
            }
            about.kept = Some(crate::shelf::Kept { files: drawn.files });
            self.note(about.clone()).await?;
        }
        let is_there = about.kept.as_ref().is_some_and(|kept| kept.files > 0);
        let patch = is_there.then(|| self.shelf.beside(run, "patch"));
        Ok(Some(Gathered { about, patch }))
    }

    /// Forgets that the changes of a run were brought back: others were made in its folder since.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be noted.
    pub async fn forget(&self, run: RunId) -> Result<(), IsolationError> {
        match self.about(run).await? {
            Some(about) if about.kept.is_some() => self.note(About { kept: None, ..about }).await,
            _ => Ok(()),
        }
    }

    /// Removes the folder of a run, and leaves the patch.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be removed, and if the patch is not safe although an agent may have worked in the folder.
    pub async fn clear(&self, run: RunId) -> Result<(), IsolationError> {
        let Some(about) = self.about(run).await? else { return Ok(()) };
        match about.common {
            Some(_) => self.remove_worktree(&about).await?,
            None => self.remove_tree(run).await?,
        }
        let index = self.shelf.beside(run, "index");
        let [private, objects] = ["git", "objects"].map(|ending| self.shelf.beside(run, ending));
        blocking(move || {
            remove_folder(&private)?;
            remove_folder(&objects)?;
            remove_file(&index.with_extension("index.lock"))?;
            remove_file(&index)
        })
        .await
    }

    /// Removes the folder of a run and everything beside it. What was changed in it is safe elsewhere by now.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be removed; the next start finds it then.
    pub async fn discard(&self, run: RunId) -> Result<(), IsolationError> {
        self.clear(run).await?;
        let beside = BESIDE.map(|ending| self.shelf.beside(run, ending));
        blocking(move || beside.iter().try_for_each(|path| remove_file(path))).await
    }

    /// Removes the patches of a tree that nothing needs any more; or only looks. True if nothing else of the tree is here: a folder
    /// that was not brought back stays with all that is beside it.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be read or removed.
    pub fn prune(data_folder: &Path, root: RootId, dry: bool) -> Result<bool, IsolationError> {
        if !Self::is_at(data_folder) {
            return Ok(true);
        }
        let shelf = Shelf::open(&data_folder.join(SHELF))?;
        if !dry {
            sweep(&shelf)?;
        }
        let ours: Vec<About> =
            shelf.all()?.into_iter().filter(|about| about.root == root).collect();
        if ours.iter().any(|about| shelf.folder(about.run).exists()) {
            return Ok(false);
        }
        for About { run, .. } in ours.iter().filter(|_| !dry) {
            for ending in BESIDE {
                remove_file(&shelf.beside(*run, ending))?;
            }
        }
        Ok(true)
    }

    /// Lists the runs that have something here, with what is known of each. Files that a process which was killed has used for a short
    /// time are removed.
    ///
    /// # Errors
    ///
    /// Fails if the shelf cannot be read.
    pub async fn left(&self) -> Result<Vec<About>, IsolationError> {
        let shelf = self.shelf.clone();
        let read = move || {
            sweep(&shelf)?;
            shelf.all()
        };
        blocking(read).await
    }

    /// Reads what is known of the folder of a run.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub async fn about(&self, run: RunId) -> Result<Option<About>, IsolationError> {
        let shelf = self.shelf.clone();
        blocking(move || shelf.about(run)).await
    }

    async fn note(&self, about: About) -> Result<(), IsolationError> {
        let shelf = self.shelf.clone();
        blocking(move || shelf.note(&about)).await
    }

    async fn remove_tree(&self, run: RunId) -> Result<(), IsolationError> {
        let tree = self.shelf.folder(run);
        blocking(move || remove_folder(&tree)).await
    }

    /// Removes the files, and then has git forget them: git follows a link in place of the folder.
    async fn remove_worktree(&self, about: &About) -> Result<(), IsolationError> {
        self.remove_tree(about.run).await?;
        let Some(common) = &about.common else { return Ok(()) };
        let listed = self.git_folder(about);
        if listed.exists() {
            let remove = self.git.command(common, "worktree").env("GIT_DIR", common);
            let tree = self.shelf.folder(about.run);
            let removed = remove.args(["remove", "--force", "--force"]).arg(tree).run().await;
            if let Err(error) = removed {
                tracing::info!(run = %about.run, %error, "git does not forget a worktree");
            }
        }
        blocking(move || {
            // An entry that is not complete is none to git. It bears the id of the run, so it is ours.
            remove_folder(&listed)?;
            // Only where no other is listed in it.
            let _ = listed.parent().map(fs::remove_dir);
            Ok(())
        })
        .await
    }

    /// The folder that git has for the files: of a worktree by its own name, which is the id of the run.
    pub(crate) fn git_folder(&self, about: &About) -> PathBuf {
        match &about.common {
            Some(common) => common.join("worktrees").join(about.run.to_string()),
            None => self.shelf.beside(about.run, "git"),
        }
    }

    /// Returns a file that only this process uses, for a short time.
    pub(crate) async fn scratch(&self, name: &str) -> Result<Scratch, IsolationError> {
        let (shelf, name) = (self.shelf.clone(), name.to_owned());
        blocking(move || Scratch::new(&shelf, &name)).await
    }

    fn snapshot(&self, about: &About) -> Snapshot<'_> {
        Snapshot {
            git: &self.git,
            tree: self.shelf.folder(about.run),
            git_folder: self.git_folder(about),
            index: self.shelf.beside(about.run, "index"),
            objects: (!about.begun.is_empty()).then(|| self.shelf.beside(about.run, "objects")),
            common: about.common.clone().unwrap_or_else(|| self.shelf.beside(about.run, "git")),
            copy_of: about.common.is_none().then(|| about.of.clone()),
        }
    }
}

/// Keeps an index as it is, out of the reach of the agent. By its time git tells which files were changed right after it.
fn keep_index(theirs: &Path, index: &Path) -> io::Result<()> {
    let part = index.with_extension("index.part");
    fs::copy(theirs, &part)?;
    let modified = fs::metadata(theirs)?.modified()?;
    File::options().write(true).open(&part)?.set_modified(modified)?;
    fs::rename(&part, index)
}

/// The files beside a folder, of which the last says that there are others.
const BESIDE: [&str; 5] = ["index.part", "patch.part", "patch", "earlier.patch", "json"];

/// The name of the shelf in the data folder.
const SHELF: &str = "isolated";

/// Does what touches files on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IsolationError> + Send + 'static,
) -> Result<T, IsolationError> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        // The threads are being shut down, and the caller is dropped with them: it is not told an end of which nothing is known.
        Err(error) if error.is_cancelled() => std::future::pending().await,
        Err(error) => {
            let gone = io::Error::other(error);
            Err(IsolationError::io("work in", Path::new("a thread"))(gone))
        }
    }
}
