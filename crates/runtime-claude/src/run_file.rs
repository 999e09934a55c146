//! Files in the folder of a run.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Makes a file in the run's own folder that only its owner can read.
///
/// The agent can write there: what an earlier attempt has put in this place, a link to any other file for one, is removed and not
/// followed.
pub(crate) fn create(run_folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    fs::create_dir_all(run_folder)?;
    let path = run_folder.join(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((file, path))
}
