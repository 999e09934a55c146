//! The search for plugins: the places, their order, and what is found there. Nothing is loaded.
//!
//! ```text
//!   --plugin-path ▸ configuration ▸ OFFSHOOT_PLUGIN_PATH ▸ the project ▸ the user ▸ the system
//!                                                           first name wins
//! ```

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;
use serde::Serialize;

use crate::code::Code;
use crate::error::PluginError;
use crate::guard;
use crate::library::Library;
use crate::load::abi_version;
use crate::package::{PACKAGE_FILE, Package, target};
use crate::process::Program;

/// One folder to look in: a folder of plugins, or a plugin itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Absolute. It need not exist.
    pub folder: PathBuf,
    /// The origin of the place.
    pub origin: PlaceOrigin,
}

/// The origin of a place: what named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceOrigin {
    /// The command line.
    Flag,
    /// The configuration.
    Config,
    /// The environment.
    Environment,
    /// A checkout. What is in there has to be trusted first.
    Project,
    /// The user's own folder.
    User,
    /// The machine's folder.
    System,
}

/// The places, in order.
#[derive(Clone, Debug, Default)]
pub struct Search {
    places: Vec<Place>,
}

/// A folder that is a plugin, or should be.
#[derive(Debug)]
pub struct Candidate {
    /// The name of the folder, by which it is known.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The origin of the place that it is in.
    pub origin: PlaceOrigin,
    /// The package, or the reason why it cannot be read.
    pub package: Result<Package, PluginError>,
    /// The hash of the text that `package` was read from; none where there was no text.
    package_hash: Option<ContentHash>,
    /// The folder of the plugin of the same name that wins.
    pub shadowed_by: Option<PathBuf>,
}

/// A plugin whose files were read, once: what is trusted, checked and loaded of it are the bytes of that reading.
#[derive(Debug)]
pub struct Examined {
    name: String,
    folder: PathBuf,
    origin: PlaceOrigin,
    digest: ContentHash,
    checked: Checked,
}

/// A plugin that has passed everything that can be checked without running it.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(crate) code: Code,
    /// The package; none for a bare library.
    pub package: Option<Package>,
}

impl Search {
    /// In these places.
    pub fn new(places: Vec<Place>) -> Self {
        Self { places }
    }

    /// The places.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Everything that there is, in order; in one place by name.
    ///
    /// # Errors
    /// Fails if a place exists and cannot be read.
    pub fn all(&self) -> Result<Vec<Candidate>, PluginError> {
        let mut all: Vec<Candidate> = Vec::new();
        for place in &self.places {
            for folder in folders(&place.folder)? {
                let mut candidate = Candidate::read(folder, place.origin);
                if all.iter().any(|known| known.folder == candidate.folder) {
                    continue;
                }
                let first = all
                    .iter()
                    .find(|known| known.name == candidate.name && known.shadowed_by.is_none());
                candidate.shadowed_by = first.map(|first| first.folder.clone());
                all.push(candidate);
            }
        }
        Ok(all)
    }

    /// The plugin of this name.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn plugin(&self, name: &str) -> Result<Candidate, PluginError> {
        self.find("plugin", name, |candidate| vec![candidate.name.clone()])
    }

    /// The first plugin that offers a runtime of this name.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn runtime(&self, name: &str) -> Result<Candidate, PluginError> {
        self.find("runtime", name, |candidate| {
            candidate.offers(|package| package.runtimes.iter().map(ToString::to_string).collect())
        })
    }

    /// The first plugin that offers a merge of this name.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn merge(&self, name: &str) -> Result<Candidate, PluginError> {
        self.find("merge", name, |candidate| {
            candidate.offers(|package| package.merges.iter().map(ToString::to_string).collect())
        })
    }

    fn find(
        &self,
        kind: &'static str,
        name: &str,
        offered: impl Fn(&Candidate) -> Vec<String>,
    ) -> Result<Candidate, PluginError> {
        let mut known = Vec::new();
        let mut unreadable = Vec::new();
        for candidate in self.all()? {
            if candidate.shadowed_by.is_some() {
                continue;
            }
            let names = offered(&candidate);
            if names.iter().any(|offered| offered == name) {
                return Ok(candidate);
            }
            match candidate.package {
                // A user that asks for `x` where the folder `x` is broken wants to know that, not that there is no `x`.
                Err(error) if candidate.name == name => return Err(error),
                Err(error) => {
                    unreadable.extend(error.to_string().lines().next().map(str::to_owned))
                }
                Ok(_) => known.extend(names),
            }
        }
        let places = self.places.iter().map(|place| place.folder.clone()).collect();
        Err(PluginError::NotFound { kind, name: name.to_owned(), known, places, unreadable })
    }
}

impl Candidate {
    /// Reads what a folder says that it is.
    pub fn read(folder: PathBuf, origin: PlaceOrigin) -> Self {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (package, package_hash) = match read_package(&folder, &name) {
            Ok((package, hash)) => (Ok(package), Some(hash)),
            Err(error) => (Err(error), None),
        };
        Self { name, folder, origin, package, package_hash, shadowed_by: None }
    }

    /// Reads its library or its program, and checks everything that can be checked without running it, but for trust.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn examine(self) -> Result<Examined, PluginError> {
        let Self { name, folder, origin, package, package_hash, .. } = self;
        let package = package?;
        let package_hash = package_hash.expect("a package was read from a text");
        let ours = abi_version();
        if package.abi.major != ours.major {
            let path = folder.join(PACKAGE_FILE);
            return Err(PluginError::Version { path, found: package.abi, ours });
        }
        let code = match &package.process {
            Some(entry) => Code::Program(Program::read(&folder, &package, entry)?),
            None => Code::Library(library(&folder, &package)?),
        };
        let digest = trust_digest(package_hash, code.digest());
        let checked = Checked { code, package: Some(package) };
        Ok(Examined { name, folder, origin, digest, checked })
    }

    /// [`examine`](Self::examine) and [`judge`](Examined::judge) in one.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(self, trusted: Option<ContentHash>) -> Result<Checked, PluginError> {
        self.examine()?.judge(trusted)
    }

    fn offers(&self, names: impl Fn(&Package) -> Vec<String>) -> Vec<String> {
        self.package.as_ref().map(names).unwrap_or_default()
    }
}

impl Examined {
    /// The name of its folder, by which it is known.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The digest by which it is trusted. See [`trust_digest`].
    pub fn digest(&self) -> ContentHash {
        self.digest
    }

    /// Checks it against the digest that the user has trusted, if any. What is in a project needs one.
    ///
    /// # Errors
    /// [`PluginError::NotTrusted`] or [`PluginError::Changed`].
    pub fn judge(self, trusted: Option<ContentHash>) -> Result<Checked, PluginError> {
        let Self { name, folder, origin, digest, checked } = self;
        match trusted {
            Some(trusted) if trusted != digest => Err(PluginError::Changed { name, folder }),
            None if origin == PlaceOrigin::Project => Err(PluginError::NotTrusted { name, folder }),
            _ => Ok(checked),
        }
    }
}

/// The digest by which a plugin is trusted: of the hash of its `plugin.toml` and of the digest of its code on this machine. See
/// [`Package::code_digest`].
pub fn trust_digest(package: ContentHash, code: ContentHash) -> ContentHash {
    ContentHash::of(format!("{package}\n{code}\n").as_bytes())
}

impl Checked {
    /// A plugin by its `plugin.toml`, or a bare library, for looking into it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn file(path: &Path) -> Result<Self, PluginError> {
        match (path.file_name(), path.parent()) {
            (Some(name), Some(folder)) if name == PACKAGE_FILE => {
                Candidate::read(folder.to_owned(), PlaceOrigin::Flag).check(None)
            }
            _ => Ok(Self { code: Code::Library(Library::check(path)?), package: None }),
        }
    }

    /// The library, or the `plugin.toml` of a program. Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        self.code.path()
    }

    /// True for a program: it is started in a process of its own in any case.
    pub fn is_program(&self) -> bool {
        matches!(self.code, Code::Program(_))
    }

    /// Writes the library or the files of the program into an empty folder, as they were when they were checked. Returns the
    /// package that describes them there, with their digest.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    ///
    /// # Panics
    /// For a bare library, which has no package.
    pub fn write_into(&self, folder: &Path) -> io::Result<Package> {
        let package = self.package.as_ref().expect("a folder has a package");
        self.code.write_into(folder, package)
    }

    /// The digest of the library or of the files of the program.
    pub fn digest(&self) -> ContentHash {
        self.code.digest()
    }
}

impl fmt::Display for PlaceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Flag => "--plugin-path",
            Self::Config => "configuration",
            Self::Environment => "OFFSHOOT_PLUGIN_PATH",
            Self::Project => "project",
            Self::User => "user",
            Self::System => "system",
        })
    }
}

/// The plugins in a place, by name. A place that is a plugin is one.
fn folders(place: &Path) -> Result<Vec<PathBuf>, PluginError> {
    if place.join(PACKAGE_FILE).is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(PluginError::read(place, error)),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let folder = entry.map_err(|error| PluginError::read(place, error))?.path();
        if folder.join(PACKAGE_FILE).is_file() {
            folders.push(folder);
        }
    }
    folders.sort();
    Ok(folders)
}

fn read_package(folder: &Path, name: &str) -> Result<(Package, ContentHash), PluginError> {
    let path = folder.join(PACKAGE_FILE);
    let real = path.canonicalize().map_err(|error| PluginError::read(&path, error))?;
    let mut text = String::new();
    let mut file = guard::open(&real)?;
    file.read_to_string(&mut text).map_err(|error| PluginError::read(&path, error))?;
    let package = Package::parse(&text, &path)?;
    if package.name.as_str() != name {
        return Err(PluginError::FolderName { path, name: package.name.to_string() });
    }
    Ok((package, ContentHash::of(text.as_bytes())))
}

fn library(folder: &Path, package: &Package) -> Result<Library, PluginError> {
    let Some(file) = package.library() else {
        return Err(PluginError::NoFile {
            name: package.name.to_string(),
            target: target(),
            has: package.files.keys().cloned().collect(),
        });
    };
    let library = Library::check(&folder.join(&file.path))?;
    match file.digest {
        Some(expected) if expected != library.digest => {
            let Library { path, digest: found, .. } = library;
            Err(PluginError::Digest { path, expected, found })
        }
        _ => Ok(library),
    }
}

#[cfg(test)]
mod tests;
