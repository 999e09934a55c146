//! The facts of the process that a host lives in.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_process::resolve_program;

use crate::error::HostError;

/// The variables, folders and the program that a host uses. Nothing in this crate reads the environment of the process itself.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The `offshoot` command: agents call it as `$OFFSHOOT`, and it is started as keeper and to try out plugins. Absolute.
    pub offshoot: PathBuf,
    /// Every variable, for settings and for what agents may see.
    pub variables: Vec<(OsString, OsString)>,
    /// `XDG_RUNTIME_DIR`: supervisors of the user are found there.
    pub runtime_folder: Option<PathBuf>,
    /// The folder for what the user's programs remember. Without one, a new plugin is tried out each time it is loaded.
    pub state_home: Option<PathBuf>,
    /// The log of the keeper, which has no environment of its own. None logs nothing.
    pub keeper_log: Option<KeeperLog>,
}

/// The level and the file of the keeper's log.
#[derive(Clone, Debug)]
pub struct KeeperLog {
    /// As in `OFFSHOOT_LOG`.
    pub directives: Arc<str>,
    /// The standard error of the keeper.
    pub stream: Arc<OwnedFd>,
}

impl Environment {
    /// Takes the variables of this process, and the `offshoot` that is in its `PATH`.
    ///
    /// # Errors
    ///
    /// Fails if there is no such program.
    pub fn of_process() -> Result<Self, HostError> {
        let variables: Vec<_> = env::vars_os().collect();
        let path = value(&variables, "PATH").map(OsString::as_os_str);
        let offshoot = resolve_program("offshoot".as_ref(), path, Path::new("/"))?;
        Ok(Self::of(variables, offshoot))
    }

    /// Takes these variables, and this `offshoot`.
    pub fn of(variables: Vec<(OsString, OsString)>, offshoot: impl Into<PathBuf>) -> Self {
        let folder = |name: &str| value(&variables, name).map(PathBuf::from);
        // The base directory rules say that a path which is not absolute is to be ignored.
        let folder = |name: &str| folder(name).filter(|path| path.is_absolute());
        let state_home = folder("XDG_STATE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join(".local/state")));
        let runtime_folder = folder("XDG_RUNTIME_DIR");
        Self { offshoot: offshoot.into(), runtime_folder, state_home, variables, keeper_log: None }
    }

    /// Returns a variable that is set to text.
    pub fn text(&self, name: &str) -> Option<&str> {
        value(&self.variables, name)?.to_str()
    }

    /// Returns `PATH`, for finding a program before it is started.
    pub fn path(&self) -> Option<&OsStr> {
        value(&self.variables, "PATH").map(OsString::as_os_str)
    }
}

/// Returns a variable that is set and not empty.
pub fn value<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsString> {
    variables.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value)
}
