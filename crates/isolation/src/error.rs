//! The errors of folders that runs have of their own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_process::{ProgramError, StartError};

/// The reason why a folder cannot be made, or what was changed in it cannot be brought back.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsolationError {
    /// The program `git` is not there.
    #[error("the program git cannot be used")]
    NoGit(#[source] Arc<ProgramError>),
    /// The program `git` cannot be started.
    #[error("git cannot be started")]
    Start(#[source] Arc<StartError>),
    /// The folder is in no repository.
    #[error("{} is in no git repository", folder.display())]
    NoRepository {
        /// The folder.
        folder: PathBuf,
    },
    /// The repository is damaged.
    #[error("the repository of {} cannot be read: {said}", folder.display())]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// The last words of git.
        said: String,
    },
    /// The repository has no files beside it.
    #[error("the repository of {} is bare: it has no files to work on", folder.display())]
    Bare {
        /// The folder.
        folder: PathBuf,
    },
    /// The repository has no such commit.
    #[error("the repository of {} has no commit `{commit}`", folder.display())]
    NoCommit {
        /// The folder.
        folder: PathBuf,
        /// The name of the commit.
        commit: String,
    },
    /// A command of git failed.
    #[error("git {command} failed{}: {said}", code.map(|code| format!(" with code {code}")).unwrap_or_default())]
    Git {
        /// The command.
        command: &'static str,
        /// The exit code; none where a signal ended it.
        code: Option<i32>,
        /// The last words of it.
        said: String,
    },
    /// A command of git did not end.
    #[error("git {command} did not end within {seconds} s")]
    Hangs {
        /// The command.
        command: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// A command of git answered something else than its manual says.
    #[error("git {command} answered something that is not understood: {said}")]
    Answer {
        /// The command.
        command: &'static str,
        /// The answer, or its beginning.
        said: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The verb.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// A folder cannot be copied into itself.
    #[error("{} holds the folder {} into which it would be copied", folder.display(), into.display())]
    IntoItself {
        /// The folder.
        folder: PathBuf,
        /// The folder of the copies.
        into: PathBuf,
    },
    /// A run has no folder of its own here.
    #[error("the run has no folder of its own here")]
    Unknown,
}

impl IsolationError {
    /// Returns what can be done about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoGit(_) => "install git 2.40 or later, or run without --isolation",
            Self::NoRepository { .. } => {
                "use --isolation copy, which needs no repository, or begin one: git init"
            }
            Self::Bare { .. } => "work in a clone of it: git clone PATH",
            Self::NoCommit { .. } => {
                "name a commit that is there (git log), or make the first one: git commit"
            }
            Self::Git { .. } | Self::Answer { .. } | Self::Damaged { .. } => {
                "look at the repository with: git status, git fsck"
            }
            Self::Hangs { .. } => "look at the disk of the repository, and at its filters",
            Self::IntoItself { .. } => {
                "work in a folder below, or keep the data elsewhere with --data-dir"
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "make room on that disk"
            }
            Self::Start(_) | Self::Io { .. } | Self::Unknown => return None,
        })
    }

    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source: Arc::new(source) }
    }
}
