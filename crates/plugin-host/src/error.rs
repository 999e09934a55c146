//! The reasons why a plugin cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;

use crate::load::abi_version;
use crate::package::{AbiVersion, PackageProblems};

/// A plugin that is not there, not what it says, not permitted, or not compatible. The text names the file, and the
/// versions where versions matter; what to do is in [`PluginError::hint`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// Nothing of this name in any place that was looked at.
    #[error("there is no {kind} `{name}` among the plugins here")]
    NotFound {
        /// The kind that was asked for: `plugin`, `runtime`, `merge`.
        kind: &'static str,
        /// By which name.
        name: String,
        /// The names of this kind that there are.
        known: Vec<String>,
        /// The folders that were searched.
        places: Vec<PathBuf>,
        /// The reasons why other plugins could not be considered.
        unreadable: Vec<String>,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// `plugin.toml` is wrong.
    #[error(transparent)]
    Package(#[from] PackageProblems),
    /// The folder has another name than the plugin in it.
    #[error("{}: the plugin is called `{name}`, its folder is not", path.display())]
    FolderName {
        /// The `plugin.toml`.
        path: PathBuf,
        /// The name in it.
        name: String,
    },
    /// The file of another user.
    #[error("{} belongs to user {owner}, neither to you ({ours}) nor to the superuser", path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// The user that owns it.
        owner: u32,
        /// The user of this process.
        ours: u32,
    },
    /// Others could change it.
    #[error("{} can be written by others (mode {mode:04o})", path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// The mode of the file.
        mode: u32,
    },
    /// The package has no library for this machine.
    #[error("the plugin `{name}` has no library for {target}, only for {}", has.join(", "))]
    NoFile {
        /// The plugin.
        name: String,
        /// The target of this machine.
        target: String,
        /// The targets for which there are files.
        has: Vec<String>,
    },
    /// The library is not there.
    #[error("there is no file {}", path.display())]
    Missing {
        /// The path at which it should be.
        path: PathBuf,
    },
    /// Something else than a library.
    #[error("{} is {what}, not a library", path.display())]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// The kind of file that it is.
        what: String,
    },
    /// A library for another machine.
    #[error("{} is for {found}, this machine is {ours}", path.display())]
    Machine {
        /// The file.
        path: PathBuf,
        /// The machine for which it was built.
        found: String,
        /// The machine of this host.
        ours: String,
    },
    /// Less than a whole library.
    #[error("{} is cut short: it needs {needed} bytes and has {found}", path.display())]
    Cut {
        /// The file.
        path: PathBuf,
        /// The number of bytes that its header asks for.
        needed: u64,
        /// The number of bytes that there are.
        found: u64,
    },
    /// The library is not the one that the package names.
    #[error("{} is not what its {file} says: the digest is {found}, not {expected}", path.display(), file = crate::package::PACKAGE_FILE)]
    Digest {
        /// The file.
        path: PathBuf,
        /// As the package has it.
        expected: ContentHash,
        /// As it is.
        found: ContentHash,
    },
    /// The plugin came with a checkout and was not trusted by its user.
    #[error("the plugin `{name}` in {} is not trusted", folder.display())]
    NotTrusted {
        /// The plugin.
        name: String,
        /// The folder of the plugin.
        folder: PathBuf,
    },
    /// Other files were trusted.
    #[error("the plugin `{name}` in {} has changed since it was trusted", folder.display())]
    Changed {
        /// The plugin.
        name: String,
        /// The folder of the plugin.
        folder: PathBuf,
    },
    /// Built for another interface.
    #[error("{} is for version {found} of the plugin interface, this is version {ours}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The plugin's.
        found: AbiVersion,
        /// The host's.
        ours: AbiVersion,
    },
    /// The system cannot open it: a library that it needs is missing, or its start-up code failed.
    #[error("{} cannot be opened: {why}", path.display())]
    NotOpened {
        /// The file.
        path: PathBuf,
        /// The words of the system.
        why: String,
    },
    /// The program of a plugin cannot be started.
    #[error("the plugin {} cannot be started: {why}", path.display())]
    NotStarted {
        /// The path of its `plugin.toml`.
        path: PathBuf,
        /// The reason in words.
        why: String,
    },
    /// A library of another kind.
    #[error("{} is no plugin: {why}", path.display())]
    NotAPlugin {
        /// The file.
        path: PathBuf,
        /// The evidence for it.
        why: String,
    },
    /// The same major version, and yet another layout.
    #[error("{} does not fit this host: it was built for {found} of the plugin interface, this is {ours}{}", path.display(), listed(differences))]
    Layout {
        /// The file.
        path: PathBuf,
        /// The plugin's version.
        found: AbiVersion,
        /// The host's.
        ours: AbiVersion,
        /// The innermost differences, up to three.
        differences: Vec<String>,
        /// All of it.
        whole: String,
    },
    /// A panic in it would end the host.
    #[error("{} was built with panic = \"abort\", so that its first panic would end the whole tree", path.display())]
    PanicAborts {
        /// The file.
        path: PathBuf,
    },
    /// The plugin says something else about itself than its package does.
    #[error("{} is not what its {file} says: {what}", path.display(), file = crate::package::PACKAGE_FILE)]
    Disagrees {
        /// The file.
        path: PathBuf,
        /// In what.
        what: String,
    },
    /// The file is another one than when it was loaded.
    #[error("{} has changed since it was loaded", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The file became another one between a look at it and the next.
    #[error("{} has changed since it was checked", path.display())]
    Swapped {
        /// The file.
        path: PathBuf,
    },
    /// The plugin answered a question with an error.
    #[error("the plugin {} refused to {doing}: {message}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The request.
        doing: String,
        /// The words of the plugin.
        message: String,
        /// Advice of the plugin, where it gives any.
        hint: Option<String>,
    },
    /// The settings do not fit the schema that it has of them.
    #[error("the settings of the plugin {} do not fit its schema: {}", path.display(), problems.join("; "))]
    Settings {
        /// The file.
        path: PathBuf,
        /// Each with its place in the settings.
        problems: Vec<String>,
    },
    /// The schema of its settings is none.
    #[error("the schema that the plugin {} has of its settings is no JSON Schema: {why}", path.display())]
    NoSchema {
        /// The file.
        path: PathBuf,
        /// The reason why it is no schema.
        why: String,
    },
    /// The process that loaded it for a trial did not live to tell.
    #[error("{} ended the process that loaded it for a trial: {how}{}", path.display(), said(stderr))]
    Died {
        /// The file.
        path: PathBuf,
        /// By which signal or code.
        how: String,
        /// The last that it said.
        stderr: String,
    },
    /// The trial could not be made.
    #[error("{} cannot be loaded for a trial: {why}", path.display())]
    NoTrial {
        /// The file.
        path: PathBuf,
        /// The reason in words.
        why: String,
    },
    /// The error of the process that loaded it for a trial.
    #[error("{message}")]
    InTrial {
        /// As it was told there.
        message: String,
        /// The advice about it.
        hint: Option<String>,
        /// The whole of a layout that does not fit.
        details: Option<String>,
    },
}

impl PluginError {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    /// More than a message can hold, for those who want all of it.
    pub fn details(&self) -> Option<&str> {
        match self {
            Self::Layout { whole, .. } => Some(whole),
            Self::InTrial { details, .. } => details.as_deref(),
            _ => None,
        }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotFound { known, places, unreadable, .. } => {
                let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
                let places = match places.as_slice() {
                    [] => "no folder".to_owned(),
                    places => places.join(", "),
                };
                let unusable = unreadable.iter().map(|why| format!("; unusable: {why}"));
                let unusable: String = unusable.collect();
                match known.as_slice() {
                    [] => format!("looked in {places}{unusable}"),
                    known => format!("there are {}; looked in {places}{unusable}", known.join(", ")),
                }
            }
            Self::Read { .. } | Self::Package(_) => return None,
            Self::FolderName { name, .. } => format!("rename the folder to `{name}`"),
            Self::Owner { path, .. } => {
                format!("copy it, or take it over with `chown \"$USER\" {}`", path.display())
            }
            Self::Writable { path, .. } => {
                format!("other users can change it, and its code would run as you: `chmod go-w {}`", path.display())
            }
            Self::NoFile { target, .. } => format!("build it for {target}, and name it in plugin.toml under [files.{target}]"),
            Self::Missing { .. } => "build it, or correct the path in plugin.toml".to_owned(),
            Self::NotALibrary { .. } => {
                "give the file that `cargo build` makes of a crate of type cdylib".to_owned()
            }
            Self::Machine { .. } => "get the plugin for this machine, or build it here".to_owned(),
            Self::Cut { .. } => "copy it again, or build it again".to_owned(),
            Self::Digest { .. } => {
                "get the plugin again; if you have built it yourself, `offshoot plugin add` writes the digest".to_owned()
            }
            Self::NotTrusted { name, .. } => {
                format!("look at where it comes from, then run `offshoot plugin trust {name}`")
            }
            Self::Changed { name, .. } => {
                format!("look at what has changed, then run `offshoot plugin trust {name}`")
            }
            Self::Version { ours, .. } => rebuild(*ours),
            Self::Layout { ours, .. } => {
                format!("{}; --verbose shows all that differs", rebuild(*ours))
            }
            Self::NotOpened { .. } => {
                "`ldd` shows which libraries it needs; build it on this system, or for it".to_owned()
            }
            Self::NotStarted { .. } => {
                "process.command in plugin.toml names a file of its folder, or a program on PATH".to_owned()
            }
            Self::NotAPlugin { .. } => {
                format!("a plugin is a cdylib with `export_plugin!` of SDK {}.x", abi_version().major)
            }
            Self::PanicAborts { .. } => {
                "take `panic = \"abort\"` out of its profile and rebuild it".to_owned()
            }
            Self::Disagrees { .. } => "correct plugin.toml, or rebuild the library".to_owned(),
            Self::Replaced { .. } => {
                "a library cannot be unloaded: start anew to use the new one".to_owned()
            }
            Self::Swapped { .. } => "see who writes it, then try again".to_owned(),
            Self::Refused { hint: Some(hint), .. } => hint.clone(),
            Self::Refused { hint: None, .. } => {
                "the settings of a plugin stand in plugins.options.NAME, those of a runtime in runtimes.NAME.options, those of a merge in plugins.merges.NAME".to_owned()
            }
            Self::Settings { .. } => {
                "they stand in plugins.options.NAME; `offshoot plugin inspect` shows the schema".to_owned()
            }
            Self::NoSchema { .. } => "tell its author; `config_schema` takes a JSON Schema".to_owned(),
            Self::NoTrial { .. } => {
                "a new library is first opened in another process of this program: see why that cannot be, and try again".to_owned()
            }
            Self::Died { .. } => {
                "it runs code when it is opened; do not use it, and tell its author".to_owned()
            }
            Self::InTrial { hint, .. } => return hint.clone(),
        })
    }
}

fn rebuild(ours: AbiVersion) -> String {
    format!("rebuild it with SDK {}.x", ours.major)
}

fn listed(differences: &[String]) -> String {
    differences.iter().map(|line| format!("\n  {line}")).collect()
}

fn said(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}
