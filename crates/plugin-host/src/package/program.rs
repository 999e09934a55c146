//! `[process]`: a plugin that is a program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;

use super::Package;

/// A plugin that is a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEntry {
    /// The program and its arguments. The words that name files in the folder of the plugin are part of it.
    pub command: Vec<String>,
    /// Further files and folders of the plugin, relative to its folder.
    pub files: Vec<PathBuf>,
    /// The number of processes: one for each run, or one for all.
    pub per: Per,
    /// The digest that the files must have, if the package names one.
    pub digest: Option<ContentHash>,
}

/// The unit that has a process of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// Each run and each merge.
    #[default]
    Run,
    /// The plugin: all its runs and merges are in one process.
    Plugin,
}

impl Per {
    /// The word in `plugin.toml`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Plugin => "plugin",
        }
    }
}

impl Package {
    /// The files that are the plugin on this machine, relative to its folder and sorted: its library, or the files of its
    /// program.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn code(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(process) = &self.process else {
            return Ok(self.library().map(|library| library.path.clone()).into_iter().collect());
        };
        let words = process.command.iter().map(Path::new);
        let words = words.filter(|word| is_within(word) && folder.join(word).is_file());
        let mut code: Vec<PathBuf> = words.map(|word| word.components().collect()).collect();
        for file in &process.files {
            walk(folder, file, &mut code)?;
        }
        code.sort();
        code.dedup();
        Ok(code)
    }

    /// The digest of the plugin on this machine, from the hashes of the files of [`code`](Self::code) in their order.
    pub fn code_digest(&self, files: &[(PathBuf, ContentHash)]) -> ContentHash {
        match (&self.process, files) {
            (None, [(_, library)]) => *library,
            _ => {
                // Debug quotes whatever a name may contain, so no two lists of files have the same text.
                let line = |(file, hash): &(PathBuf, ContentHash)| format!("{file:?} {hash}\n");
                ContentHash::of(files.iter().map(line).collect::<String>().as_bytes())
            }
        }
    }
}

/// True if a path leads to something within a folder, whatever there is.
pub(super) fn is_within(path: &Path) -> bool {
    use std::path::Component::{CurDir, Normal};

    let mut parts = path.components().peekable();
    // `./program` is a program in the folder.
    parts.next_if_eq(&CurDir);
    parts.peek().is_some() && parts.all(|part| matches!(part, Normal(_)))
}

/// Adds a file, or each file in a folder. A link is added as it is, and refused where it is opened.
fn walk(folder: &Path, path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let real = folder.join(path);
    if !fs::symlink_metadata(&real)?.is_dir() {
        files.push(path.components().collect());
        return Ok(());
    }
    for entry in fs::read_dir(real)? {
        walk(folder, &path.join(entry?.file_name()), files)?;
    }
    Ok(())
}
