//! The projects that this user trusts, each with the digest of what was trusted. Kept in the user's state folder,
//! where no checkout can write.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use offshoot_model::{ContentHash, PathText, json_error};
use serde::{Deserialize, Serialize};

use crate::code::FailureCode;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::project::{Project, Reading};
use crate::replaced_file;

/// The list, as it was read.
#[derive(Debug)]
pub(crate) struct Trusted {
    path: PathBuf,
    list: List,
}

/// The trust in a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trust {
    /// Exactly these files were trusted.
    Trusted,
    /// Other files were.
    Changed,
    /// Never seen.
    Unknown,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    version: u32,
    projects: BTreeMap<Folder, ContentHash>,
    /// Of a project, the files that its definitions name, such as scripts: they were trusted with it.
    #[serde(default)]
    scripts: BTreeMap<Folder, PathText<Vec<PathBuf>>>,
    /// Plugins by their folders.
    #[serde(default)]
    plugins: BTreeMap<Folder, ContentHash>,
}

/// A folder as the key of an object in JSON: its path, or where that is not UTF-8, its bytes in Base64 behind a word with which
/// no absolute path begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Folder(PathBuf);

/// The word before the bytes of a path.
const BYTES: &str = "base64:";

const VERSION: u32 = 1;

impl Trusted {
    /// Reads the list; an empty one where there is none yet.
    pub(crate) fn read(environment: &Environment) -> Result<Self, Failure> {
        let path = environment
            .state_home
            .as_ref()
            .ok_or_else(|| {
                Failure::input(FailureCode::NoTrustFolder, "there is no place to remember trust in")
                    .hint("set HOME or XDG_STATE_HOME")
            })?
            .join("offshoot/trust.json");
        let list = match fs::read(&path) {
            Ok(bytes) => parse(&path, &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                List { version: VERSION, ..List::default() }
            }
            Err(error) => {
                return Err(Failure::file(FailureCode::CannotRead, "read", &path, &error));
            }
        };
        Ok(Self { path, list })
    }

    /// Judges the trust in this project, and returns what was read of it where it is trusted: this reading is what takes effect.
    /// Nothing is trusted where there is no place to remember it in.
    pub(crate) fn look(
        project: &Project,
        environment: &Environment,
    ) -> Result<(Trust, Option<Reading>), Failure> {
        if environment.state_home.is_none() {
            return Ok((Trust::Unknown, None));
        }
        Self::read(environment)?.judge(project)
    }

    /// Judges the trust in this project, and returns what was read of it where it is trusted.
    pub(crate) fn judge(&self, project: &Project) -> Result<(Trust, Option<Reading>), Failure> {
        let Some(trusted) = self.list.projects.get(project.folder.as_path()) else {
            return Ok((Trust::Unknown, None));
        };
        let scripts = self.scripts(&project.folder);
        let reading = project.read()?;
        Ok(match reading.digest(scripts)? == *trusted {
            true => (Trust::Trusted, Some(reading)),
            false => (Trust::Changed, None),
        })
    }

    /// The named files that were trusted with a project.
    pub(crate) fn scripts(&self, folder: &Path) -> &[PathBuf] {
        self.list.scripts.get(folder).map_or(&[], |PathText(files)| files)
    }

    /// The trusted projects by path, with their digests.
    pub(crate) fn projects(&self) -> impl Iterator<Item = (&Path, &ContentHash)> {
        self.list.projects.iter().map(|(Folder(folder), digest)| (folder.as_path(), digest))
    }

    /// Trusts these very files, among them named ones that are in no folder of ours.
    pub(crate) fn add(
        &mut self,
        folder: &Path,
        digest: ContentHash,
        scripts: Vec<PathBuf>,
    ) -> Result<(), Failure> {
        let key = Folder(folder.to_owned());
        self.list.projects.insert(key.clone(), digest);
        match scripts.is_empty() {
            true => self.list.scripts.remove(folder),
            false => self.list.scripts.insert(key, PathText(scripts)),
        };
        self.write()
    }

    /// Trusts a project no longer. False where it was not trusted.
    pub(crate) fn remove(&mut self, folder: &Path) -> Result<bool, Failure> {
        let was_there = self.list.projects.remove(folder).is_some();
        self.list.scripts.remove(folder);
        if was_there {
            self.write()?;
        }
        Ok(was_there)
    }

    /// Returns the digest that was trusted of the plugin in this folder.
    pub(crate) fn plugin(&self, folder: &Path) -> Option<ContentHash> {
        self.list.plugins.get(folder).copied()
    }

    /// Trusts this very plugin.
    pub(crate) fn add_plugin(
        &mut self,
        folder: PathBuf,
        digest: ContentHash,
    ) -> Result<(), Failure> {
        self.list.plugins.insert(Folder(folder), digest);
        self.write()
    }

    /// Trusts a plugin no longer. False where it was not trusted.
    pub(crate) fn remove_plugin(&mut self, folder: &Path) -> Result<bool, Failure> {
        let was_there = self.list.plugins.remove(folder).is_some();
        if was_there {
            self.write()?;
        }
        Ok(was_there)
    }

    fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(&self.list).expect("any path has a text");
        replaced_file::replace(&self.path, &text).map_err(Failure::writing(&self.path))
    }
}

impl Borrow<Path> for Folder {
    fn borrow(&self) -> &Path {
        &self.0
    }
}

impl From<Folder> for String {
    fn from(Folder(path): Folder) -> Self {
        let bytes = |path: OsString| BYTES.to_owned() + &BASE64.encode(path.as_bytes());
        path.into_os_string().into_string().unwrap_or_else(bytes)
    }
}

impl TryFrom<String> for Folder {
    type Error = data_encoding::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Ok(Self(match text.strip_prefix(BYTES) {
            Some(bytes) => OsString::from_vec(BASE64.decode(bytes.as_bytes())?).into(),
            None => text.into(),
        }))
    }
}

/// Reads the list of trusted projects.
fn parse(path: &Path, bytes: &[u8]) -> Result<List, Failure> {
    let list: List = serde_json::from_slice(bytes).map_err(|error| {
        let why = io::Error::other(json_error("", &error));
        Failure::input(FailureCode::TrustUnreadable, format_args!("{} is damaged", path.display()))
            .caused_by(Some(&why))
            .hint("remove it, then trust your projects again")
    })?;
    if list.version > VERSION {
        return Err(Failure::input(
            FailureCode::TrustUnreadable,
            format_args!("{} was written by a newer version of this program", path.display()),
        ));
    }
    Ok(list)
}
