//! The code of a plugin, read and checked before anything of it runs: a library or the files of a program.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;

use crate::library::Library;
use crate::package::{LibraryFile, Package, ProcessEntry, target};
use crate::process::Program;

/// A library or a program.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Library(Library),
    Program(Program),
}

impl Code {
    /// The library, or the `plugin.toml` of the program.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Library(library) => &library.path,
            Self::Program(program) => &program.path,
        }
    }

    pub(crate) fn digest(&self) -> ContentHash {
        match self {
            Self::Library(library) => library.digest,
            Self::Program(program) => program.digest,
        }
    }

    /// Writes what was read into an empty folder. Returns the package that describes it there, with its digest.
    pub(crate) fn write_into(&self, folder: &Path, package: &Package) -> io::Result<Package> {
        let digest = Some(self.digest());
        match self {
            Self::Library(library) => {
                let path = PathBuf::from(library.path.file_name().expect("a library has a name"));
                let mut file = File::create_new(folder.join(&path))?;
                library.write_to(&mut file)?;
                file.set_permissions(Permissions::from_mode(0o755))?;
                let files = [(target(), LibraryFile { path, digest })].into();
                Ok(Package { files, ..package.clone() })
            }
            Self::Program(program) => {
                program.write_into(folder)?;
                let process = Some(ProcessEntry { digest, ..program.entry.clone() });
                Ok(Package { process, ..package.clone() })
            }
        }
    }
}
