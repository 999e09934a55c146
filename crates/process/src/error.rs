//! The errors of a start.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

/// The reason why a program could not be started. Nothing of it is left.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such program, or it is none.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The folder it was to work in cannot be used.
    #[error("folder {} cannot be entered", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The input cannot be read.
    #[error("input {} cannot be read", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Arguments and environment are together longer than the system takes.
    #[error("arguments and environment of {} are too long: {bytes} bytes", path.display())]
    TooLong {
        /// The program.
        path: PathBuf,
        /// Of arguments and environment together.
        bytes: usize,
    },
    /// The system has none left of something: processes, memory, descriptors.
    #[error("{} cannot be started", path.display())]
    System {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The keeper is gone and cannot be replaced. Children would not be held, so none is started.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
}

/// The reason why a name is no program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Nothing of this name is where it was looked for.
    #[error("program {} not found", name.display())]
    NotFound {
        /// As it was given.
        name: OsString,
    },
    /// The file is there, but it cannot be executed.
    #[error("{} is not executable", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The file may be executed, but has no form that the system knows: another machine's program, or a script that does not name
    /// its interpreter.
    #[error("{} is of no executable format", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// The path is a folder.
    #[error("{} is a directory", path.display())]
    IsDirectory {
        /// The folder.
        path: PathBuf,
    },
    /// A start takes only absolute paths.
    #[error("program path {} is not absolute", path.display())]
    NotAbsolute {
        /// As it was given.
        path: PathBuf,
    },
}

/// The reason why there is no keeper.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeeperError {
    /// The program of the keeper could not be started.
    #[error("keeper {} cannot be started", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The program that was started is no keeper, or it ended at once.
    #[error("keeper {} does not answer", path.display())]
    Silent {
        /// The program.
        path: PathBuf,
    },
    /// The keeper took no message.
    #[error("keeper cannot be told")]
    Told {
        /// The error of the system.
        source: io::Error,
    },
}

/// The reason why processes cannot be held at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProcessesError {
    /// The keeper.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// The system did not tell or do what is needed for holding children.
    #[error("{what}")]
    System {
        /// The step that failed.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A child that closes its input would end this process.
    #[error("SIGPIPE is not ignored")]
    BrokenPipe,
}

impl StartError {
    /// Returns advice on what to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Program(error) => error.hint(),
            Self::Folder { .. } => Some("check that the folder exists and may be entered"),
            Self::Input { .. } => Some("check that the file exists and may be read"),
            Self::TooLong { .. } => Some(
                "pass large texts on standard input or in a file: one variable or argument takes 128 KiB",
            ),
            Self::System { .. } => Some(
                "run fewer at once, or raise the limits of processes and open files (ulimit -u, -n)",
            ),
            Self::Keeper(_) => None,
        }
    }

    /// True if another try later can help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::System { .. }) || self.is_pressure()
    }

    /// True if the system had too little of something that other processes give back when they end: descriptors,
    /// processes, memory. It says nothing about the program.
    pub fn is_pressure(&self) -> bool {
        let (Self::Folder { source, .. }
        | Self::Input { source, .. }
        | Self::System { source, .. }
        | Self::Keeper(KeeperError::Start { source, .. } | KeeperError::Told { source })) = self
        else {
            return false;
        };
        let error = source.raw_os_error().map(Errno::from_raw_os_error);
        matches!(error, Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM))
    }
}

impl ProgramError {
    /// Returns advice on what to do next.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound { .. } => "check the name and PATH",
            Self::NotExecutable { .. } => "check the file's mode: chmod +x",
            Self::Format { .. } => {
                "a script's first line must say by what it runs, such as #!/bin/sh"
            }
            Self::IsDirectory { .. } => "name the program inside it",
            Self::NotAbsolute { .. } => "resolve it first",
        })
    }

    /// Converts the error of the system for executing a file.
    pub(crate) fn of(path: &std::path::Path, error: &io::Error) -> Option<Self> {
        let path = path.to_owned();
        match error.raw_os_error().map(Errno::from_raw_os_error)? {
            Errno::NOENT | Errno::NOTDIR if path.exists() => Some(Self::Format { path }),
            Errno::NOENT | Errno::NOTDIR => Some(Self::NotFound { name: path.into() }),
            Errno::ACCESS if path.is_dir() => Some(Self::IsDirectory { path }),
            Errno::ACCESS | Errno::PERM => Some(Self::NotExecutable { path }),
            Errno::NOEXEC => Some(Self::Format { path }),
            _ => None,
        }
    }
}
