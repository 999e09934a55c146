//! A repository of the user, as far as a worktree of it needs to be known.

use std::path::{Path, PathBuf};

use crate::error::IsolationError;
use crate::git::{Git, listed};

/// A repository with files, seen from a folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The folder of the files.
    pub top: PathBuf,
    /// The folder that all worktrees share, usually `.git`.
    pub common: PathBuf,
    /// The folder from which it is seen, below the top.
    pub below: PathBuf,
    /// The commit that was asked for.
    pub commit: String,
}

/// Facts about a commit that a run in a worktree of it has to know.
pub(crate) async fn survey(
    git: &Git,
    repository: &Repository,
) -> Result<Vec<String>, IsolationError> {
    let Repository { top, commit, .. } = repository;
    let mut notes = Vec::new();
    let status = git.command(top, "status").args(["--porcelain=v1", "-z", "--ignore-submodules"]);
    let dirty = status.run().await?.split(|byte| *byte == 0).filter(|part| part.len() > 3).count();
    if dirty > 0 {
        let of = top.display();
        notes.push(match dirty {
            1 => format!("1 uncommitted change of {of} is not in it"),
            _ => format!("{dirty} uncommitted changes of {of} are not in it"),
        });
    }
    let tree = git.command(top, "ls-tree").args(["-r", "-z", "--full-tree", commit]);
    let (mut submodules, mut attributes) = (Vec::new(), false);
    for entry in tree.run().await?.split(|byte| *byte == 0) {
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
        let (about, name) = (&entry[..tab], String::from_utf8_lossy(&entry[tab + 1..]));
        if about.starts_with(b"160000 ") {
            submodules.push(name.into_owned());
        } else {
            attributes |= name == ".gitattributes" || name.ends_with("/.gitattributes");
        }
    }
    if !submodules.is_empty() {
        notes.push(format!("submodules are empty folders in it: {}", names(&submodules)));
    }
    if attributes {
        let pattern = ":(attr:filter=lfs)";
        let command = git.command(top, "ls-files").args(["-z", "--", pattern]);
        let pointers: Vec<String> =
            listed(&command.run().await?).map(|path| path.to_string_lossy().into_owned()).collect();
        if !pointers.is_empty() {
            notes.push(format!("files of LFS are pointers in it: {}", names(&pointers)));
        }
    }
    Ok(notes)
}

/// The first of many names.
pub(crate) fn names(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}

impl Repository {
    /// Looks at the repository of a folder, and for a commit by its name.
    ///
    /// # Errors
    ///
    /// Fails if the folder is in none, or in one that is bare, broken or has no such commit.
    pub async fn of(git: &Git, folder: &Path, commit: &str) -> Result<Self, IsolationError> {
        let named = format!("{commit}^{{commit}}");
        let options = ["--path-format=absolute", "--is-bare-repository", "--git-common-dir"];
        let command = git.command(folder, "rev-parse").args(options);
        let command = command.args(["--show-toplevel", "--show-prefix", &named]);
        let (code, wrote, said) = command.outcome().await?;
        let text = String::from_utf8_lossy(&wrote);
        let lines: Vec<&str> = text.split('\n').collect();
        let folder = folder.to_owned();
        match lines[..] {
            ["true", ..] => Err(IsolationError::Bare { folder }),
            ["false", common, top, below, commit, ""] if code == 0 => Ok(Self {
                top: top.into(),
                common: common.into(),
                below: below.into(),
                commit: commit.to_owned(),
            }),
            ["false", _, _, _, ..] if code != 0 => {
                // A name that leads to an object which is not there.
                let named = git.command(&folder, "rev-parse").args(["--verify", "-q", commit]);
                match named.outcome().await?.0 {
                    0 => Err(IsolationError::Damaged { folder, said }),
                    _ => Err(IsolationError::NoCommit { folder, commit: commit.to_owned() }),
                }
            }
            [""] if said.contains("not a git repository") => {
                // Git says the same of one whose beginning it cannot read.
                match folder.ancestors().any(|above| above.join(".git").exists()) {
                    true => Err(IsolationError::Damaged { folder, said }),
                    false => Err(IsolationError::NoRepository { folder }),
                }
            }
            _ if code != 0 => {
                Err(IsolationError::Git { command: "rev-parse", code: Some(code), said })
            }
            _ => Err(IsolationError::Answer { command: "rev-parse", said: text.into_owned() }),
        }
    }
}
