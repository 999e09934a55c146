//! A project: the nearest folder, upwards, with files of ours in it. They come with a checkout, so they are data
//! until the user trusts them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use offshoot_model::ContentHash;
use rustix::fs::{Mode, OFlags, open};

use crate::code::FailureCode;
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
pub(crate) const PROJECT_FOLDER: &str = ".offshoot";

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
        let folder = folder
            .canonicalize()
            .map_err(|error| Failure::file(FailureCode::CannotFind, "find", folder, &error))?;
        Ok(Some(Self { folder, files }))
    }

    /// The project's configuration file, relative to its folder.
    pub(crate) fn config(&self) -> Result<Option<&Path>, Failure> {
        let named = |name| {
            let file = Path::new(PROJECT_FOLDER).join(name);
            self.files.iter().find(|found| **found == file).map(PathBuf::as_path)
        };
        one_of(CONFIG_FILES.map(named))
    }

    /// Agent definitions in Markdown, relative to the folder: those for Claude first, so that ours may refine them.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Path> {
        let is_definition = |file: &&Path| {
            let folder = file.parent();
            file.extension().is_some_and(|extension| extension == "md")
                && DEFINITIONS.iter().any(|name| folder == Some(Path::new(name)))
        };
        // Sorted, `.claude` comes before `.offshoot`.
        self.files.iter().map(PathBuf::as_path).filter(is_definition)
    }

    /// Reads all files, each of them once: what is compared with what was trusted is what takes effect.
    pub(crate) fn read(&self) -> Result<Reading, Failure> {
        let (mut hashes, mut texts) = (BTreeMap::new(), BTreeMap::new());
        let config = self.config()?;
        for file in &self.files {
            let path = self.folder.join(file);
            let bytes = fs::read(&path).map_err(Failure::reading(&path))?;
            hashes.insert(file.clone(), ContentHash::of(&bytes));
            if config == Some(file) || self.definitions().any(|definition| definition == file) {
                texts.insert(file.clone(), bytes);
            }
        }
        Ok(Reading { folder: self.folder.clone(), hashes, texts })
    }
}

/// The files of a project as they were when they were read.
#[derive(Debug)]
pub(crate) struct Reading {
    folder: PathBuf,
    /// Of every file, the hash of its content.
    hashes: BTreeMap<PathBuf, ContentHash>,
    /// The contents of the configuration and the definitions.
    texts: BTreeMap<PathBuf, Vec<u8>>,
}

impl Reading {
    /// Returns the content of the configuration or a definition, by its path relative to the folder.
    pub(crate) fn text(&self, file: &Path) -> Option<&[u8]> {
        self.texts.get(file).map(Vec::as_slice)
    }

    /// The hash of a file, by its path relative to the folder.
    pub(crate) fn hash(&self, file: &Path) -> Option<ContentHash> {
        self.hashes.get(file).copied()
    }

    /// A hash of the names and contents of all files, and of these named ones: another one as soon as anything differs.
    pub(crate) fn digest(&self, scripts: &[PathBuf]) -> Result<ContentHash, Failure> {
        // Debug quotes whatever a name may contain, so no two lists of files have the same text.
        let line = |(file, hash): (&PathBuf, &ContentHash)| format!("{file:?} {hash}\n");
        let mut lines: String = self.hashes.iter().map(line).collect();
        for file in scripts {
            let path = self.folder.join(file);
            let content = content(&path).map_err(Failure::reading(&path))?;
            lines.push_str(&format!("script {file:?} {content}\n"));
        }
        Ok(ContentHash::of(lines.as_bytes()))
    }

    /// Returns the files of the project that these words name, as its files are named: programs, scripts and keys that act for
    /// the user as soon as the definitions that name them take effect. A relative name is one in the project's folder, or in one
    /// of these folders, in which agents work. A word may be a line for a shell, or an option with its value. One with a slash
    /// may also name a file that does not exist yet, but for the value of a long option: that is where results are often written.
    pub(crate) fn named_files(&self, words: &[&str], folders: &[&str]) -> Vec<PathBuf> {
        let separates = |c: char| c.is_whitespace() || "=\"'`;|&()<>,".contains(c);
        let before = std::iter::once(&"").chain(words);
        let names: BTreeSet<(&str, bool)> = words
            .iter()
            .zip(before)
            .flat_map(|(word, before)| {
                // `--name` takes the next word, `--name=value` has its value, and `--` ends the options.
                let takes = before.len() > 2 && before.starts_with("--") && !before.contains('=');
                let is_option = takes || word.starts_with("--");
                let names = word.split(separates).chain([*word]);
                names.filter(|name| !name.is_empty()).map(move |name| (name, !is_option))
            })
            .collect();
        let folders: BTreeSet<PathBuf> =
            folders.iter().chain([&"."]).map(|folder| self.folder.join(folder)).collect();
        let in_project = |(folder, (name, may_appear)): (&PathBuf, (&str, bool))| {
            let is_path = name.contains('/') && !name.ends_with('/');
            let is_name = is_path && !name.contains("://") && !name.contains(separates);
            self.names_of(&folder.join(name), may_appear && is_name)
        };
        let files: BTreeSet<PathBuf> = folders
            .iter()
            .flat_map(|folder| names.iter().map(move |&name| (folder, name)))
            .flat_map(in_project)
            .collect();
        files.into_iter().collect()
    }

    /// The names of a file within the project: its own, over which its content is read as a program reads it, and the one to
    /// which links lead. None where there is no file, unless it may appear.
    fn names_of(&self, path: &Path, may_appear: bool) -> Vec<PathBuf> {
        let target = match path.canonicalize() {
            Ok(target) if target.is_file() => Some(target),
            Err(error) if may_appear && is_absent(&error) => None,
            _ => return Vec::new(),
        };
        // With each `..` as it was written: behind a link it leads elsewhere than its name says.
        let own = Some(path).filter(|path| folded(path).starts_with(&self.folder));
        let names = own.into_iter().chain(target.as_deref());
        let names = names.filter_map(|name| name.strip_prefix(&self.folder).ok());
        names.map(|name| name.components().collect()).collect()
    }
}

/// An absolute path without `.` and `..`, by its names alone: no link is followed.
pub(crate) fn folded(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut folded, part| {
        match part {
            Component::ParentDir => drop(folded.pop()),
            part => folded.push(part),
        }
        folded
    })
}

/// The text that stands for the content of a named file. A folder is no file, and a pipe in the place of one is not waited for.
fn content(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match open(path, flags, Mode::empty()).map_err(io::Error::from) {
        Err(error) if is_absent(&error) => return Ok("gone".to_owned()),
        file => File::from(file?),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(if metadata.is_dir() { "gone" } else { "no file" }.to_owned());
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(ContentHash::of(&bytes).to_string())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The configuration file in a folder, TOML or JSON5; both at once is one too many.
pub(crate) fn config_in(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    one_of(CONFIG_FILES.map(|name| Some(folder.join(name)).filter(|file| file.is_file())))
}

/// Finds the one configuration file of a folder.
fn one_of<P: AsRef<Path>>(found: [Option<P>; 2]) -> Result<Option<P>, Failure> {
    match found {
        [Some(toml), Some(json5)] => Err(Failure::input(
            FailureCode::TwoConfigurations,
            format_args!(
                "there are two configuration files: {} and {}",
                toml.as_ref().display(),
                json5.as_ref().display()
            ),
        )
        .hint("keep one of them")),
        [toml, json5] => Ok(toml.or(json5)),
    }
}

/// Looks at the files of a project, to compare them with those that are trusted.
fn walk(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let absolute = root.join(folder);
    let failed = Failure::reading(&absolute);
    for entry in fs::read_dir(&absolute).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let path = folder.join(entry.file_name());
        let kind = entry.file_type().map_err(&failed)?;
        if kind.is_dir() {
            walk(root, &path, files)?;
        } else if root.join(&path).is_dir() {
            // The folder behind the link could change without a change of the project.
            let link = root.join(&path);
            return Err(Failure::input(
                FailureCode::LinkedFolder,
                format_args!(
                    "{} is a symbolic link to a folder, which cannot be trusted",
                    link.display()
                ),
            )
            .hint("put the files there themselves"));
        } else {
            files.push(path);
        }
    }
    Ok(())
}
