//! The errors of a host.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_config::Origin;
use offshoot_door::{BindError, StartError};
use offshoot_isolation::IsolationError;
use offshoot_plugin_host::PluginError;
use offshoot_process::{ProcessesError, ProgramError};
use offshoot_spawner::SpawnerError;
use offshoot_store::StoreError;

use crate::day_budget::DayError;
use crate::merging::ParseMergingError;
use crate::runtimes::RuntimeError;

/// A host that cannot be started, or a plugin or runtime that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The data folder or the record cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine cannot be started.
    #[error(transparent)]
    Spawner(#[from] SpawnerError),
    /// Processes cannot be held.
    #[error(transparent)]
    Process(#[from] ProcessesError),
    /// The `offshoot` command is not there.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A merge is not written as one.
    #[error(transparent)]
    Merging(#[from] ParseMergingError),
    /// The socket of the door cannot be used.
    #[error(transparent)]
    Door(#[from] BindError),
    /// The door cannot be served.
    #[error(transparent)]
    Serve(#[from] StartError),
    /// A built-in runtime cannot be used.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A runtime of programs was given none.
    #[error("the runtime `{runtime}` has no command to run")]
    NoCommand {
        /// The name of the runtime.
        runtime: &'static str,
    },
    /// A plugin cannot be used.
    #[error(transparent)]
    Plugin(#[from] Box<PluginError>),
    /// A plugin was not there, or was another one, when the tree began.
    #[error("the plugin `{name}` in {} {why}", folder.display())]
    NotOfThisTree {
        /// The name of the plugin.
        name: String,
        /// The folder of the plugin.
        folder: PathBuf,
        /// The reason why it cannot be used.
        why: &'static str,
    },
    /// The list of trusted files cannot be read.
    #[error("cannot read what is trusted")]
    Trust(#[source] Box<dyn Error + Send + Sync>),
    /// Settings of a runtime have another shape.
    #[error("{name} ({origin}): {source}")]
    Settings {
        /// The key of the settings.
        name: String,
        /// The place where the options are written.
        origin: Origin,
        /// The fault in the options.
        source: Arc<serde_json::Error>,
    },
    /// The day has too little left for a tree.
    #[error(transparent)]
    Day(#[from] DayError),
    /// A run cannot have a folder of its own.
    #[error("a run cannot have a folder of its own")]
    Isolation(#[from] IsolationError),
    /// The search for processes that an earlier supervisor has left running failed.
    #[error("cannot look for what an earlier supervisor left")]
    Orphans(#[source] io::Error),
    /// The meter cannot listen.
    #[error("the meter between agents and their models cannot listen on this machine")]
    Meter(#[source] io::Error),
    /// A limit cannot be tried for a fault of the system: a folder of the proof cannot be made, or a run of it failed.
    #[error("the limit cannot be tried")]
    Proof(#[source] io::Error),
    /// The system has no threads left.
    #[error("the system has no threads left for us")]
    Threads(#[source] io::Error),
}

impl HostError {
    /// Returns what can be done about it.
    pub fn hint(&self) -> Option<String> {
        let advice = match self {
            Self::Store(error) => return error.hint().map(str::to_owned),
            Self::Spawner(error) => return error.hint(),
            Self::Plugin(error) => return error.hint(),
            Self::Day(error) => return Some(error.hint()),
            Self::Merging(error) => return Some(error.hint()),
            Self::Isolation(error) => return error.hint().map(str::to_owned),
            Self::Process(_) | Self::Serve(_) | Self::Trust(_) => return None,
            Self::Door(error) => error.hint(),
            Self::Runtime(error) => error.hint(),
            Self::NoCommand { .. } => "set `command` for the agent in the configuration",
            Self::NotOfThisTree { .. } => {
                "agents use plugins as they were when their tree began: use it in the next one"
            }
            Self::Program(_) => "install the `offshoot` command, or add its folder to PATH",
            Self::Settings { .. } => {
                "correct it there: `offshoot config check FILE` says what is wrong"
            }
            Self::Orphans(_) => "`offshoot doctor` shows what this system lets us see",
            Self::Threads(_) => "end other programs, or raise `ulimit -u`; -j N runs fewer at once",
            Self::Meter(_) => {
                "`ulimit -n` may be too low; runtimes.NAME.meter = \"off\" does without it"
            }
            Self::Proof(_) => "set TMPDIR to a folder that can be written",
        };
        Some(advice.to_owned())
    }
}

impl From<PluginError> for HostError {
    fn from(error: PluginError) -> Self {
        Self::Plugin(Box::new(error))
    }
}

/// Returns an error of the system with the file that it is about.
pub(crate) fn at(path: &std::path::Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
