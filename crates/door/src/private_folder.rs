//! Folders that only their user can enter.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Makes a folder with mode 0700, or takes one that is this user's, and closes it where it was open. Its parent must
/// exist. A folder of another user is refused: where all users may write, another one may have made it first.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => return other,
    }
    let found = fs::symlink_metadata(path)?;
    if !belongs_to_us(&found) {
        let text = "it is no folder, or belongs to another user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// True if the content of a folder can be believed: it belongs to this user, and no other user can enter it.
pub(crate) fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| belongs_to_us(&found) && found.mode() & 0o077 == 0)
}

/// The folders of this user that do not depend on the current folder: below the one that a session's environment names,
/// below the one that systems make for each user, and one among the temporary files. More than one, because what
/// a process finds must not depend on an environment that it can change.
pub(crate) fn of_user(runtime_dir: Option<&Path>) -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let mut folders = Vec::new();
    let named = runtime_dir.map(|folder| folder.join("offshoot"));
    let made = PathBuf::from(format!("/run/user/{uid}/offshoot"));
    let temporary = PathBuf::from(format!("/tmp/offshoot-{uid}"));
    for folder in named.into_iter().chain([made, temporary]) {
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

fn belongs_to_us(found: &fs::Metadata) -> bool {
    found.is_dir() && found.uid() == rustix::process::getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_closed_to_others() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("new");
        make(&folder).unwrap();
        assert!(is_private(&folder));
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(!is_private(&folder));
        make(&folder).unwrap();
        assert!(is_private(&folder));
    }

    #[test]
    fn what_is_no_folder_of_ours_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| parent.path().join(name));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(parent.path(), &link).unwrap();
        for path in [file, link] {
            assert_eq!(make(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert!(!is_private(&path));
        }
        assert_eq!(make(&parent.path().join("a/b")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn folders_are_found_whatever_the_environment_says() {
        let named = of_user(Some(Path::new("/x")));
        assert_eq!(named[0], Path::new("/x/offshoot"));
        assert_eq!(named[1..], of_user(None));
        assert_eq!(of_user(Some(Path::new("relative"))), of_user(None));
    }
}
