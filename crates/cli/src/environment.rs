//! The only place that reads the environment: once, at the start.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use offshoot_host::{KeeperLog, value};

use crate::code::FailureCode;
use crate::failure::Failure;

/// The environment of the process, beside its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// The working folder, absolute.
    pub(crate) working_folder: PathBuf,
    /// The folder for configuration of this user; none where there is no home.
    pub(crate) config_home: Option<PathBuf>,
    /// The folder for what the user's programs remember; none where there is no home.
    pub(crate) state_home: Option<PathBuf>,
    /// The folder for what the user's programs bring along; none where there is no home.
    pub(crate) data_home: Option<PathBuf>,
    /// The variable `XDG_RUNTIME_DIR`.
    pub(crate) runtime_folder: Option<PathBuf>,
    /// The variable `OFFSHOOT_DATA_DIR`.
    pub(crate) data_folder: Option<PathBuf>,
    /// The variable `OFFSHOOT_AUDIT_HEADS`.
    pub(crate) audit_heads: Option<PathBuf>,
    /// The variable `OFFSHOOT_LOG`.
    pub(crate) log: Option<OsString>,
    /// The log of the keeper, where there is a log.
    pub(crate) keeper_log: Option<KeeperLog>,
    /// Every variable, for settings and for what agents may see.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The file of this program, for agents that call back and for the keeper.
    pub(crate) executable: PathBuf,
}

/// The folder in which the machine's administrator puts configuration.
pub(crate) const SYSTEM_FOLDER: &str = "/etc/offshoot";

/// The folders of the machine's plugins: those of its administrator, and those of its packages.
pub(crate) const SYSTEM_PLUGINS: [&str; 2] =
    ["/usr/local/lib/offshoot/plugins", "/usr/lib/offshoot/plugins"];

/// Variables that begin so are settings.
const SETTING_PREFIX: &str = "OFFSHOOT__";

impl Environment {
    /// Reads it.
    pub(crate) fn read() -> Result<Self, Failure> {
        let variables: Vec<_> = env::vars_os().collect();
        let working_folder = env::current_dir().map_err(|error| {
            Failure::input(FailureCode::NoWorkingFolder, "cannot use the working directory")
                .caused_by(Some(&error))
                .hint("go to a folder that is there: cd \"$HOME\"")
        })?;
        let executable = env::current_exe().map_err(|error| {
            Failure::input(FailureCode::NoProgramFile, "cannot find the file of this program")
                .caused_by(Some(&error))
                .hint(
                    "the file may have been replaced or removed while it runs: type the same again",
                )
        })?;
        // The base directory rules say that a path which is not absolute is to be ignored.
        let folder = |name: &str| {
            value(&variables, name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let home = folder("HOME");
        let below_home = |tail: &str| home.as_ref().map(|home| home.join(tail));
        Ok(Self {
            config_home: folder("XDG_CONFIG_HOME").or_else(|| below_home(".config")),
            state_home: folder("XDG_STATE_HOME").or_else(|| below_home(".local/state")),
            data_home: folder("XDG_DATA_HOME").or_else(|| below_home(".local/share")),
            runtime_folder: folder("XDG_RUNTIME_DIR"),
            data_folder: value(&variables, "OFFSHOOT_DATA_DIR").map(PathBuf::from),
            audit_heads: value(&variables, "OFFSHOOT_AUDIT_HEADS").map(PathBuf::from),
            log: value(&variables, "OFFSHOOT_LOG").cloned(),
            keeper_log: None,
            working_folder,
            variables,
            executable,
        })
    }

    /// Returns what a host is given of it.
    pub(crate) fn of_host(&self) -> offshoot_host::Environment {
        offshoot_host::Environment {
            offshoot: self.executable.clone(),
            keeper_log: self.keeper_log.clone(),
            variables: self.variables.clone(),
            runtime_folder: self.runtime_folder.clone(),
            state_home: self.state_home.clone(),
        }
    }

    /// A path for people: below the home folder from there, and of a long one its end.
    pub(crate) fn short_path(&self, path: &Path) -> String {
        const LONGEST: usize = 40;
        let home = value(&self.variables, "HOME").map(Path::new);
        let below_home = home.and_then(|home| path.strip_prefix(home).ok());
        let text = match below_home {
            Some(rest) => Path::new("~").join(rest).display().to_string(),
            None => path.display().to_string(),
        };
        match text.char_indices().rev().nth(LONGEST - 1) {
            Some((at, _)) if at > 0 => format!("…{}", &text[at..]),
            _ => text,
        }
    }

    /// Variables that are settings, name and value.
    pub(crate) fn settings(&self) -> Result<Vec<(String, String)>, Failure> {
        let is_setting = |(name, _): &&(OsString, OsString)| {
            let rest = name.as_encoded_bytes().strip_prefix(SETTING_PREFIX.as_bytes());
            rest.is_some_and(|rest| !rest.is_empty())
        };
        let read = |(name, value): &(OsString, OsString)| {
            let both = name.to_str().zip(value.to_str());
            both.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| {
                let name = name.display();
                Failure::input(
                    FailureCode::VariableNotUtf8,
                    format_args!("the variable {name} of the environment is not UTF-8"),
                )
                .hint(format_args!("write it as UTF-8, or take it away: unset {name}"))
            })
        };
        self.variables.iter().filter(is_setting).map(read).collect()
    }

    /// A variable that is set to text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        value(&self.variables, name)?.to_str()
    }

    /// The folders in `OFFSHOOT_PLUGIN_PATH`.
    pub(crate) fn plugin_path(&self) -> Vec<PathBuf> {
        let folders = value(&self.variables, "OFFSHOOT_PLUGIN_PATH").map(env::split_paths);
        folders.into_iter().flatten().filter(|folder| !folder.as_os_str().is_empty()).collect()
    }

    /// `PATH`, for finding a program before it is started.
    pub(crate) fn path(&self) -> Option<&OsString> {
        value(&self.variables, "PATH")
    }
}
