//! Whose a file is and who may change it. A library runs with all our rights, so whoever can write it can do what we can.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::PluginError;

/// What others may not have: the right to write.
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
/// In a folder with this bit only the owner of a file may replace it.
const STICKY: u32 = 0o1000;

/// Checks a file of a plugin: the file, its folder, and the folder in which that lies.
pub(crate) fn check(file: &Path) -> Result<(), PluginError> {
    check_one(file, Strict::Yes)?;
    let mut above = file.ancestors().skip(1);
    if let Some(folder) = above.next() {
        check_one(folder, Strict::Yes)?;
    }
    if let Some(search) = above.next() {
        check_one(search, Strict::ButSticky)?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Strict {
    Yes,
    ButSticky,
}

fn check_one(path: &Path, strict: Strict) -> Result<(), PluginError> {
    let metadata = fs::metadata(path).map_err(|source| PluginError::read(path, source))?;
    let (owner, mode) = (metadata.uid(), metadata.mode());
    let ours = rustix::process::geteuid().as_raw();
    let path = || path.to_owned();
    if owner != 0 && owner != ours {
        return Err(PluginError::Owner { path: path(), owner, ours });
    }
    let sticky = strict == Strict::ButSticky && mode & STICKY != 0;
    // By custom a group with the number of its user has no other member; many systems give every file such a group, and
    // let it write.
    let private = metadata.gid() == ours;
    let others = if private { OTHERS_WRITE } else { OTHERS_WRITE | GROUP_WRITES };
    if mode & others != 0 && !sticky {
        return Err(PluginError::Writable { path: path(), mode: mode & 0o7777 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let place = tempfile::tempdir().expect("there is room");
        let folder = place.path().join("plugins/p");
        fs::create_dir_all(&folder).expect("there is room");
        let file = folder.join("libp.so");
        fs::write(&file, "x").expect("there is room");
        for path in [&file, &folder, &place.path().join("plugins")] {
            chmod(path, 0o755);
        }
        (place, file)
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn what_others_can_write_is_refused() {
        let (place, file) = place();
        check(&file).expect("nobody else can write it");
        let folder = file.parent().expect("a file is in a folder");
        for (path, mode) in
            [(file.as_path(), 0o757), (folder, 0o1777), (&place.path().join("plugins"), 0o777)]
        {
            chmod(path, mode);
            let error = check(&file).expect_err("others can write it");
            let expected = format!("{} can be written by others (mode {mode:04o})", path.display());
            assert_eq!(error.to_string(), expected);
            chmod(path, 0o755);
        }
        chmod(&place.path().join("plugins"), 0o1777);
        check(&file).expect("a sticky folder of folders protects each of them");
    }

    #[test]
    fn a_group_of_several_is_others() {
        let (_place, file) = place();
        chmod(&file, 0o775);
        let group = fs::metadata(&file).expect("it is there").gid();
        let ours = rustix::process::geteuid().as_raw();
        assert_eq!(check(&file).is_ok(), group == ours);
        if std::os::unix::fs::chown(&file, None, Some(12_345)).is_ok() {
            check(&file).expect_err("whoever is in that group can write it");
        }
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        let (_place, file) = place();
        if std::os::unix::fs::chown(&file, Some(12_345), None).is_err() {
            // Only the superuser can give a file away.
            return;
        }
        let error = check(&file).expect_err("it is somebody else's");
        assert!(error.to_string().contains("belongs to user 12345"), "{error}");
    }
}
