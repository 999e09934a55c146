//! From the name of a program to its file, once, before it is started many times.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::ProgramError;
use crate::sys::is_executable;

/// The folders in which programs are looked for when there is no `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The absolute path of a program, as a shell would find it: a name with a slash is a path, seen from `cwd`; any other is
/// looked for in the folders of `path_variable`, of which an empty one is `cwd`. Links are not followed, because some
/// programs ask by what name they were called.
///
/// ```
/// use std::path::Path;
/// use offshoot_process::{ProgramError, resolve_program};
///
/// let root = Path::new("/");
/// assert_eq!(resolve_program("/bin/sh".as_ref(), None, root)?, Path::new("/bin/sh"));
/// assert!(resolve_program("sh".as_ref(), Some("/nowhere:/bin".as_ref()), root)?.is_absolute());
/// let error = resolve_program("no-such-program".as_ref(), None, root).unwrap_err();
/// assert_eq!(error.to_string(), "program no-such-program not found");
/// # Ok::<(), ProgramError>(())
/// ```
pub fn resolve_program(
    name: &OsStr,
    path_variable: Option<&OsStr>,
    cwd: &Path,
) -> Result<PathBuf, ProgramError> {
    if name.is_empty() {
        return Err(ProgramError::NotFound { name: name.to_owned() });
    }
    if name.as_bytes().contains(&b'/') {
        return check(cwd.join(name), name);
    }
    // A file that cannot be executed does not end the search, but it is the better answer when nothing else is found.
    let mut found = ProgramError::NotFound { name: name.to_owned() };
    let folders = path_variable.unwrap_or(OsStr::new(DEFAULT_PATH));
    for folder in std::env::split_paths(folders) {
        match check(cwd.join(folder).join(name), name) {
            Ok(path) => return Ok(path),
            Err(error @ ProgramError::NotExecutable { .. }) => found = error,
            Err(_) => {}
        }
    }
    Err(found)
}

fn check(path: PathBuf, name: &OsStr) -> Result<PathBuf, ProgramError> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(ProgramError::IsDirectory { path }),
        Ok(metadata) if metadata.is_file() && is_executable(&path) => Ok(path),
        Ok(_) => Err(ProgramError::NotExecutable { path }),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(ProgramError::NotExecutable { path })
        }
        Err(_) => Err(ProgramError::NotFound { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_become_files() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let root = folder.path();
        for (file, mode) in [("one/tool", 0o755), ("two/tool", 0o755), ("one/text", 0o644)] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
            fs::write(&path, "").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        fs::create_dir_all(root.join("one/folder")).expect("a folder");
        let join = |folders: &[&str]| {
            std::env::join_paths(folders.iter().map(|folder| root.join(folder))).expect("no colon")
        };

        let check = |name: &str, path: &[&str], expected: Result<&str, &str>| {
            let path = (!path.is_empty()).then(|| join(path));
            let found = resolve_program(name.as_ref(), path.as_deref(), root);
            let expected = expected.map(|file| root.join(file)).map_err(str::to_owned);
            let found = found
                .map_err(|error| error.to_string().replace(&format!("{}/", root.display()), ""));
            assert_eq!(found, expected, "{name}");
        };
        check("tool", &["one", "two"], Ok("one/tool"));
        check("tool", &["two", "one"], Ok("two/tool"));
        check("tool", &["none", "two"], Ok("two/tool"));
        check("./one/tool", &[], Ok("./one/tool"));
        check("one/tool", &["two"], Ok("one/tool"));
        check("text", &["one", "two"], Err("one/text is not executable"));
        check("one/text", &[], Err("one/text is not executable"));
        check("one/folder", &[], Err("one/folder is a directory"));
        check("folder", &["one"], Err("program folder not found"));
        check("tool", &["none"], Err("program tool not found"));
        check("none/tool", &[], Err("program none/tool not found"));
        check("one/tool/x", &[], Err("program one/tool/x not found"));
        check("", &["one"], Err("program  not found"));
    }

    #[test]
    fn an_empty_folder_of_the_path_is_the_current_one() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::write(folder.path().join("tool"), "").expect("a file");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path().join("tool"), mode).expect("a mode");
        let found = resolve_program("tool".as_ref(), Some("/nowhere:".as_ref()), folder.path());
        assert_eq!(found, Ok(folder.path().join("tool")));
    }
}
