//! A copy of a folder, whose files share their blocks with the originals where the file system can.

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::ioctl_ficlone;

use crate::error::IsolationError;
use crate::repository::names;

/// The outcome of a copy.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    /// True if some file could not share its blocks.
    plain: bool,
    /// Pipes, sockets and devices: neither files, folders nor links.
    left_out: Vec<String>,
    /// True if the folder belongs to a repository elsewhere, whose files a command in the copy would change.
    pointer: bool,
}

/// Copies a folder without what lies in `without`.
pub(crate) fn copy_folder(
    from: &Path,
    to: &Path,
    without: &[PathBuf],
) -> Result<Copied, IsolationError> {
    let mut copied = Copied::default();
    copy_below(from, to, from, without, &mut copied)?;
    Ok(copied)
}

impl Copied {
    /// Facts that a user of the copy has to know.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.plain {
            notes.push("a plain copy: files cannot share their blocks here".to_owned());
        }
        if self.pointer {
            notes.push("it is no repository: .git leads elsewhere, and was not copied".to_owned());
        }
        if !self.left_out.is_empty() {
            notes.push(format!("neither files nor folders, not copied: {}", names(&self.left_out)));
        }
        notes
    }
}

fn copy_below(
    from: &Path,
    to: &Path,
    top: &Path,
    without: &[PathBuf],
    copied: &mut Copied,
) -> Result<(), IsolationError> {
    let read = IsolationError::io("read", from);
    let metadata = fs::symlink_metadata(from).map_err(read)?;
    let made = DirBuilder::new().mode(0o700).create(to);
    made.map_err(IsolationError::io("make", to))?;
    for entry in fs::read_dir(from).map_err(IsolationError::io("read", from))? {
        let entry = entry.map_err(IsolationError::io("read", from))?;
        let (path, into) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(IsolationError::io("read", &path))?;
        let is_git = entry.file_name() == ".git";
        // The worktrees of the repository are no worktrees of its copy.
        let is_list = entry.file_name() == "worktrees" && from.ends_with(".git");
        if without.contains(&path) || is_list && kind.is_dir() {
            continue;
        }
        if is_git && !kind.is_dir() && from == top {
            copied.pointer = true;
        } else if kind.is_dir() {
            copy_below(&path, &into, top, without, copied)?;
        } else if kind.is_symlink() {
            let link = || symlink(fs::read_link(&path)?, &into);
            link().map_err(IsolationError::io("copy", &path))?;
        } else if kind.is_file() {
            match copy_file(&path, &into) {
                Ok(shares) => copied.plain |= !shares,
                // It is gone since the folder was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(IsolationError::io("copy", &path)(error)),
            }
        } else {
            let name = path.strip_prefix(top).unwrap_or(&path);
            copied.left_out.push(name.to_string_lossy().into_owned());
        }
    }
    // Last, because a folder that is for reading only takes no files.
    fs::set_permissions(to, metadata.permissions()).map_err(IsolationError::io("make", to))
}

/// Copies one file, with its mode and its time. Returns true if it shares its blocks.
fn copy_file(from: &Path, to: &Path) -> io::Result<bool> {
    let source = File::open(from)?;
    let metadata = source.metadata()?;
    let mode = metadata.permissions().mode();
    let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let shares = metadata.len() == 0 || ioctl_ficlone(&target, &source).is_ok();
    if !shares {
        io::copy(&mut &source, &mut &target)?;
    }
    target.set_permissions(fs::Permissions::from_mode(mode))?;
    target.set_times(FileTimes::new().set_modified(metadata.modified()?))?;
    Ok(shares)
}
