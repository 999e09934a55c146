//! A project: the nearest folder, upwards, with files of ours in it. They come with a checkout, so they are data
//! until the user trusts them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;

use crate::failure::Failure;

/// A project and its files.
#[derive(Debug)]
pub(crate) struct Project {
    /// Absolute, without symbolic links: the name under which it is trusted.
    pub(crate) folder: PathBuf,
    /// Everything that would take effect, relative to the folder, sorted.
    pub(crate) files: Vec<PathBuf>,
}

/// Folders of agent definitions.
const DEFINITIONS: [&str; 2] = [".claude/agents", ".offshoot/agents"];
/// Folders of definitions and code, with everything in them.
const FOLDERS: [&str; 3] = [DEFINITIONS[0], DEFINITIONS[1], ".offshoot/plugins"];
/// Configuration files, in a folder of ours.
pub(crate) const CONFIG_FILES: [&str; 2] = ["config.toml", "config.json5"];
/// Ours, in a project.
const PROJECT_FOLDER: &str = ".offshoot";

impl Project {
    /// The nearest project, from `start` upwards.
    pub(crate) fn nearest(start: &Path) -> Result<Option<Self>, Failure> {
        start.ancestors().find_map(|folder| Self::at(folder).transpose()).transpose()
    }

    /// The project in this very folder, if there is one.
    pub(crate) fn at(folder: &Path) -> Result<Option<Self>, Failure> {
        let config = CONFIG_FILES.iter().map(|name| Path::new(PROJECT_FOLDER).join(name));
        let mut files: Vec<PathBuf> = config.filter(|file| folder.join(file).is_file()).collect();
        for name in FOLDERS {
            if folder.join(name).is_dir() {
                walk(folder, Path::new(name), &mut files)?;
            }
        }
        if files.is_empty() {
            return Ok(None);
        }
        files.sort();
        let folder =
            folder.canonicalize().map_err(|error| Failure::file("find", folder, &error))?;
        Ok(Some(Self { folder, files }))
    }

    /// The project's configuration file.
    pub(crate) fn config(&self) -> Result<Option<PathBuf>, Failure> {
        config_in(&self.folder.join(PROJECT_FOLDER))
    }

    /// Agent definitions in Markdown: those for Claude first, so that ours may refine them.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = PathBuf> {
        let is_definition = |file: &&PathBuf| {
            let folder = file.parent();
            file.extension().is_some_and(|extension| extension == "md")
                && DEFINITIONS.iter().any(|name| folder == Some(Path::new(name)))
        };
        // Sorted, `.claude` comes before `.offshoot`.
        self.files.iter().filter(is_definition).map(|file| self.folder.join(file))
    }

    /// A hash of the names and contents of all files: another one as soon as anything differs.
    pub(crate) fn digest(&self) -> Result<ContentHash, Failure> {
        Ok(digest_of(&self.hashes()?))
    }

    /// The hash of each file, from one reading.
    pub(crate) fn hashes(&self) -> Result<BTreeMap<PathBuf, ContentHash>, Failure> {
        let hash = |file: &PathBuf| {
            let path = self.folder.join(file);
            let bytes = fs::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
            Ok((file.clone(), ContentHash::of(&bytes)))
        };
        self.files.iter().map(hash).collect()
    }
}

/// The digest of a project whose files have these hashes.
pub(crate) fn digest_of(hashes: &BTreeMap<PathBuf, ContentHash>) -> ContentHash {
    // Debug quotes whatever a name may contain, so no two lists of files have the same text.
    let lines: String = hashes.iter().map(|(file, hash)| format!("{file:?} {hash}\n")).collect();
    ContentHash::of(lines.as_bytes())
}

/// The configuration file in a folder, TOML or JSON5; both at once is one too many.
pub(crate) fn config_in(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let [toml, json5] =
        CONFIG_FILES.map(|name| Some(folder.join(name)).filter(|file| file.is_file()));
    match (toml, json5) {
        (Some(toml), Some(json5)) => Err(Failure::input(format_args!(
            "there are two configuration files: {} and {}",
            toml.display(),
            json5.display()
        ))
        .hint("keep one of them")),
        (toml, json5) => Ok(toml.or(json5)),
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let absolute = root.join(folder);
    let failed = |error: &std::io::Error| Failure::file("read", &absolute, error);
    for entry in fs::read_dir(&absolute).map_err(|error| failed(&error))? {
        let entry = entry.map_err(|error| failed(&error))?;
        let path = folder.join(entry.file_name());
        let kind = entry.file_type().map_err(|error| failed(&error))?;
        if kind.is_dir() {
            walk(root, &path, files)?;
        } else if root.join(&path).is_dir() {
            // What it leads to could change without the project changing.
            let link = root.join(&path);
            return Err(Failure::input(format_args!(
                "{} is a symbolic link to a folder, which cannot be trusted",
                link.display()
            ))
            .hint("put the files there themselves"));
        } else {
            files.push(path);
        }
    }
    Ok(())
}
