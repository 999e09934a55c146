//! Changes of runs, brought to the files of the user.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::commits::{Commits, Put};
use crate::error::IsolationError;
use crate::git::listed;
use crate::removal::remove_file;
use crate::repository::Repository;
use crate::scratch::Scratch;
use crate::workspaces::{Workspaces, blocking};

/// Changes that are to be brought.
#[derive(Clone, Debug)]
pub enum Bring {
    /// A patch, and the commit on which it was made, where it is one.
    Patch {
        /// The file of the patch.
        patch: PathBuf,
        /// The commit.
        base: Option<String>,
    },
    /// All between two commits.
    Commits {
        /// The first one, whose changes are not among them.
        base: String,
        /// The last one.
        tip: String,
    },
}

/// The outcome of bringing changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Brought {
    /// The files that were changed; they are not staged.
    Done(Vec<String>),
    /// Nothing was changed, because these files have changes that are not committed.
    Dirty(Vec<String>),
    /// Nothing was changed, because others have changed the same lines of these files.
    Conflict(Vec<String>),
    /// Nothing was changed, because the patch does not fit; git says why.
    Unfit(String),
}

impl Workspaces {
    /// Brings changes to the files of a folder. All of them, or none where one of the files has changes that are not committed, or
    /// has become another.
    ///
    /// # Errors
    ///
    /// Fails if git does.
    pub async fn bring(&self, folder: &Path, what: &Bring) -> Result<Brought, IsolationError> {
        let repository = Repository::of(self.git(), folder, "HEAD").await;
        let repository = match (repository, what) {
            (Ok(repository), _) => repository,
            // A folder that is no repository has no commit to compare with.
            (Err(IsolationError::NoRepository { .. }), Bring::Patch { patch, .. }) => {
                return self.fit(folder, patch).await;
            }
            (Err(error), _) => return Err(error),
        };
        let scratch = self.scratch("bring").await?;
        let brought = self.bring_into(&repository, what, &scratch).await;
        blocking(move || scratch.remove()).await?;
        brought
    }

    async fn bring_into(
        &self,
        repository: &Repository,
        what: &Bring,
        scratch: &Scratch,
    ) -> Result<Brought, IsolationError> {
        let commits = Commits { git: self.git(), top: &repository.top, index: &scratch.path };
        let (base, tip) = match what {
            Bring::Commits { base, tip } => (base.clone(), tip.clone()),
            Bring::Patch { patch, base } => {
                let Some(base) = base else { return self.fit(&repository.top, patch).await };
                let made = match commits.has(base).await? {
                    true => commits.of_patch(base, patch, "changes").await?,
                    false => None,
                };
                let Some(tip) = made else { return self.fit(&repository.top, patch).await };
                (base.clone(), tip)
            }
        };
        let tree = match commits.put(&base, &repository.commit, &tip).await? {
            Put::Clean(tree) => tree,
            Put::Conflict(files) => return Ok(Brought::Conflict(files)),
        };
        let changed = commits.differ(&repository.commit, &tree).await?;
        if changed.is_empty() {
            return Ok(Brought::Done(changed));
        }
        let status = ["--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
        let status = self.git().command(&repository.top, "status").args(status).run().await?;
        // Names that are not UTF-8 are written as `changed` has them: one too many is refused rather than one too few.
        let dirty: BTreeSet<String> = listed(&status)
            .filter_map(|entry| Some(entry.to_string_lossy().get(3..)?.to_owned()))
            .collect();
        let dirty: Vec<String> =
            changed.iter().filter(|file| dirty.contains(*file)).cloned().collect();
        if !dirty.is_empty() {
            return Ok(Brought::Dirty(dirty));
        }
        let file = scratch.beside("patch");
        let unfinished = file.clone();
        blocking(move || remove_file(&unfinished)).await?;
        let diff = self.git().command(&repository.top, "diff-tree");
        let form = ["-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv"];
        let prefixes = ["--src-prefix=a/", "--dst-prefix=b/"];
        let diff = diff.args(form).args(prefixes).args([&repository.commit, &tree]);
        diff.into_file(&file).await?;
        Ok(match self.fit(&repository.top, &file).await? {
            Brought::Done(_) => Brought::Done(changed),
            other => other,
        })
    }

    /// Applies a patch to files as they are: all of it or nothing.
    async fn fit(&self, top: &Path, patch: &Path) -> Result<Brought, IsolationError> {
        let names = self.git().command(top, "apply").args(["--numstat", "-z"]);
        let names = names.arg(patch).run().await?;
        let name = |entry: PathBuf| Some(entry.to_string_lossy().rsplit('\t').next()?.to_owned());
        let files: Vec<String> = listed(&names).filter_map(name).collect();
        let apply = self.git().command(top, "apply").args(["--binary", "--whitespace=nowarn"]);
        let (code, _, said) = apply.arg(patch).outcome().await?;
        Ok(if code == 0 { Brought::Done(files) } else { Brought::Unfit(said) })
    }
}
