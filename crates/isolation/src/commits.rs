//! Commits made of patches, beside the files and the index of the user.

use std::path::Path;

use crate::error::IsolationError;
use crate::git::{Git, listed};
use crate::removal::remove_file;
use crate::workspaces::blocking;

/// A repository in which commits are made. Nothing but its objects is written.
pub(crate) struct Commits<'a> {
    pub(crate) git: &'a Git,
    /// The folder of the files of the user, which stay as they are.
    pub(crate) top: &'a Path,
    /// A file for the index of one commit after the other.
    pub(crate) index: &'a Path,
}

/// The outcome of putting two states together.
#[derive(Debug)]
pub(crate) enum Put {
    /// A tree.
    Clean(String),
    /// The files of which both sides have changed the same part.
    Conflict(Vec<String>),
}

impl Commits<'_> {
    /// Makes the commit that a patch is, on its base; none where the patch does not fit.
    pub(crate) async fn of_patch(
        &self,
        base: &str,
        patch: &Path,
        message: &str,
    ) -> Result<Option<String>, IsolationError> {
        let index = self.index.to_owned();
        blocking(move || remove_file(&index)).await?;
        let command = |name| self.git.command(self.top, name).env("GIT_INDEX_FILE", self.index);
        command("read-tree").arg(base).run().await?;
        let apply = command("apply").args(["--cached", "--binary", "--whitespace=nowarn"]);
        let (code, _, _) = apply.arg(patch).outcome().await?;
        if code != 0 {
            return Ok(None);
        }
        let tree = command("write-tree").line().await?;
        self.commit(&tree, base, message).await.map(Some)
    }

    /// Makes a commit of a tree.
    pub(crate) async fn commit(
        &self,
        tree: &str,
        parent: &str,
        message: &str,
    ) -> Result<String, IsolationError> {
        let command = self.git.command(self.top, "commit-tree").envs([
            ("GIT_AUTHOR_NAME", "offshoot"),
            ("GIT_AUTHOR_EMAIL", ""),
            ("GIT_COMMITTER_NAME", "offshoot"),
            ("GIT_COMMITTER_EMAIL", ""),
        ]);
        command.args(["--no-gpg-sign", "-p", parent, "-m", message, tree]).line().await
    }

    /// Puts what a commit has changed since its base onto another commit, in three ways.
    pub(crate) async fn put(
        &self,
        base: &str,
        onto: &str,
        commit: &str,
    ) -> Result<Put, IsolationError> {
        let merge = self.git.command(self.top, "merge-tree");
        let merge = merge.args(["--write-tree", "-z", "--name-only", "--no-messages"]);
        let base = format!("--merge-base={base}");
        let (code, wrote, said) = merge.args([&*base, onto, commit]).outcome().await?;
        let mut parts = listed(&wrote).map(|part| part.to_string_lossy().into_owned());
        match (code, parts.next()) {
            (0, Some(tree)) => Ok(Put::Clean(tree)),
            (1, Some(_)) => {
                let mut files: Vec<String> =
                    parts.map(|file| own_name(&file, [onto, commit]).to_owned()).collect();
                files.dedup();
                Ok(Put::Conflict(files))
            }
            _ => Err(IsolationError::Git { command: "merge-tree", code: Some(code), said }),
        }
    }

    /// Lists the files in which two states differ.
    pub(crate) async fn differ(&self, a: &str, b: &str) -> Result<Vec<String>, IsolationError> {
        let diff = self.git.command(self.top, "diff-tree");
        let diff = diff.args(["-r", "-z", "--name-only", "--no-renames", a, b]);
        Ok(listed(&diff.run().await?).map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// True if the repository has this commit.
    pub(crate) async fn has(&self, commit: &str) -> Result<bool, IsolationError> {
        let named = format!("{commit}^{{commit}}");
        let probe = self.git.command(self.top, "cat-file").args(["-e", &named]);
        Ok(probe.outcome().await?.0 == 0)
    }
}

/// The name of a file that git has moved out of the way of a folder, which it does by adding the commit of the file.
fn own_name<'a>(file: &'a str, commits: [&str; 2]) -> &'a str {
    let without = |commit: &str| file.rsplit_once(commit)?.0.strip_suffix('~');
    commits.into_iter().find_map(without).unwrap_or(file)
}
