//! The files of a plugin that is a program, before anything of it runs: each is read once, and what is hashed, checked and run is
//! what was read.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_model::ContentHash;

use crate::error::PluginError;
use crate::guard;
use crate::package::{PACKAGE_FILE, Package, ProcessEntry};

/// A program whose files were read.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The path of its `plugin.toml`. Absolute, without symbolic links.
    pub(crate) path: PathBuf,
    pub(crate) digest: ContentHash,
    pub(crate) entry: ProcessEntry,
    files: Arc<[ReadFile]>,
}

#[derive(Debug)]
struct ReadFile {
    /// Relative to the folder of the plugin.
    name: PathBuf,
    bytes: Vec<u8>,
    mode: u32,
}

impl Program {
    /// Reads the files that a package names.
    pub(crate) fn read(
        folder: &Path,
        package: &Package,
        entry: &ProcessEntry,
    ) -> Result<Self, PluginError> {
        let folder = folder.canonicalize().map_err(|error| PluginError::read(folder, error))?;
        let names = package.code(&folder).map_err(|error| PluginError::read(&folder, error))?;
        let files = names.into_iter().map(|name| ReadFile::read(&folder, name));
        let files = files.collect::<Result<Arc<[ReadFile]>, PluginError>>()?;
        let hashes = files.iter().map(|file| (file.name.clone(), ContentHash::of(&file.bytes)));
        let digest = package.code_digest(&hashes.collect::<Vec<_>>());
        let path = folder.join(PACKAGE_FILE);
        match entry.digest {
            Some(expected) if expected != digest => {
                Err(PluginError::Digest { path: folder, expected, found: digest })
            }
            _ => Ok(Self { path, digest, entry: entry.clone(), files }),
        }
    }

    /// Writes the files as they were read, below a folder.
    pub(crate) fn write_into(&self, folder: &Path) -> io::Result<()> {
        for file in &*self.files {
            let path = folder.join(&file.name);
            fs::create_dir_all(path.parent().expect("it is in the folder"))?;
            fs::write(&path, &file.bytes)?;
            fs::set_permissions(&path, Permissions::from_mode(file.mode))?;
        }
        Ok(())
    }
}

impl ReadFile {
    fn read(folder: &Path, name: PathBuf) -> Result<Self, PluginError> {
        let path = folder.join(&name);
        let unread = |error| PluginError::read(&path, error);
        let mut file: File = guard::open(&path)?;
        let executable = file.metadata().map_err(unread)?.permissions().mode() & 0o100 != 0;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unread)?;
        Ok(Self { name, bytes, mode: if executable { 0o755 } else { 0o644 } })
    }
}
