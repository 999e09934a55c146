//! The owner of a file and the users that may change it. A library runs with all our rights, so a user that can write it can do what
//! we can.
//!
//! A file is opened from the root of the file system down, one folder at a time, and what is judged are the opened folders
//! and the opened file: a path that is exchanged meanwhile leads to what is refused, or to an error.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::error::PluginError;

/// The right to write, which others may not have.
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
/// In a folder with this bit only the owner of a file may replace it.
const STICKY: u32 = 0o1000;

/// Opens a file of a plugin for reading, by its path without symbolic links. The file and its folder must not be writable
/// by others; nor a folder above these, unless only the owner of an entry may replace it there.
pub(crate) fn open(file: &Path) -> Result<File, PluginError> {
    let names: Vec<_> = file.components().filter(|part| *part != Component::RootDir).collect();
    let Some((name, folders)) = names.split_last() else {
        return Err(PluginError::NotALibrary { path: file.to_owned(), what: "a folder".into() });
    };
    let mut path = PathBuf::from("/");
    let mut folder = open_folder(CWD, Path::new("/"), &path)?;
    for (place, name) in folders.iter().enumerate() {
        path.push(name);
        folder = open_folder(folder, name.as_ref(), &path)?;
        let strict = if place + 1 == folders.len() { Strict::Yes } else { Strict::ButSticky };
        check(&folder, strict, &path)?;
    }
    path.push(name);
    // Without waiting: a pipe is opened at once, and refused.
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let name: &Path = name.as_ref();
    let opened = openat(folder, name, how, Mode::empty()).map_err(|error| unread(&path, error))?;
    let opened = File::from(opened);
    let kind = opened.metadata().map_err(|error| PluginError::read(&path, error))?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "a special file" };
        return Err(PluginError::NotALibrary { path, what: what.into() });
    }
    check(&opened, Strict::Yes, &path)?;
    Ok(opened)
}

#[derive(Clone, Copy, PartialEq)]
enum Strict {
    Yes,
    ButSticky,
}

/// Opens a folder. One that may be passed through but not read is opened for passing through.
fn open_folder(above: impl AsFd, name: &Path, path: &Path) -> Result<File, PluginError> {
    let how = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(&above, name, how | OFlags::RDONLY, Mode::empty()) {
        #[cfg(target_os = "linux")]
        Err(Errno::ACCESS) => openat(&above, name, how | OFlags::PATH, Mode::empty()),
        opened => opened,
    };
    opened.map(File::from).map_err(|error| unread(path, error))
}

fn unread(path: &Path, error: Errno) -> PluginError {
    PluginError::read(path, error.into())
}

fn check(opened: &File, strict: Strict, path: &Path) -> Result<(), PluginError> {
    let status = opened.metadata().map_err(|error| PluginError::read(path, error))?;
    let (owner, mode) = (status.uid(), status.mode());
    let ours = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != ours {
        return Err(PluginError::Owner { path: path.to_owned(), owner, ours });
    }
    if strict == Strict::ButSticky && mode & STICKY != 0 {
        return Ok(());
    }
    // By custom a group with the number of its user has no other member; many systems give every file such a group, and
    // let it write. With an access control list the same bits are what any of its users and groups may have at most.
    let private = status.gid() == ours && !named_others_write(opened);
    let others = if private { OTHERS_WRITE } else { OTHERS_WRITE | GROUP_WRITES };
    if mode & others != 0 {
        return Err(PluginError::Writable { path: path.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

/// True if an access control list names a user or a group, beside the owner and the file's group, that may write. A list that
/// cannot be read counts as one that does.
#[cfg(target_os = "linux")]
fn named_others_write(opened: &File) -> bool {
    use std::os::fd::AsRawFd;

    // By this path, because a folder may have been opened for passing through only.
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let mut list = [0; LONGEST_LIST];
    match rustix::fs::getxattr(path, "system.posix_acl_access", &mut list) {
        Ok(length) => names_writers(&list[..length]),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}

#[cfg(not(target_os = "linux"))]
fn named_others_write(_opened: &File) -> bool {
    false
}

/// Bytes of an access control list that is looked into. No file system of Linux takes a longer one without a setting.
#[cfg(target_os = "linux")]
const LONGEST_LIST: usize = 4096;

/// Reads the kernel's form of a list: its version, then entries of a kind, rights and a number.
#[cfg(target_os = "linux")]
fn names_writers(list: &[u8]) -> bool {
    const USER: u16 = 0x02;
    const GROUP: u16 = 0x08;
    const WRITE: u16 = 0x02;
    let (entries, _) = list.get(4..).unwrap_or_default().as_chunks::<8>();
    entries.iter().any(|entry| {
        let [kind, rights] = [[entry[0], entry[1]], [entry[2], entry[3]]].map(u16::from_le_bytes);
        matches!(kind, USER | GROUP) && rights & WRITE != 0
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("no temporary folder can be made");
        let folder = place.path().join("plugins/p");
        fs::create_dir_all(&folder).expect("the folder cannot be made");
        let file = folder.join("libp.so");
        fs::write(&file, "x").expect("the file cannot be written");
        for path in [&file, &folder, &place.path().join("plugins")] {
            chmod(path, 0o755);
        }
        (place, file)
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode cannot be set");
    }

    #[test]
    fn what_others_can_write_is_refused() {
        let (place, file) = place();
        open(&file).expect("no other user can write it");
        let folder = file.parent().expect("a file is in a folder");
        for (path, mode) in
            [(file.as_path(), 0o757), (folder, 0o1777), (&place.path().join("plugins"), 0o777)]
        {
            chmod(path, mode);
            let error = open(&file).expect_err("others can write it");
            let expected = format!("{} can be written by others (mode {mode:04o})", path.display());
            assert_eq!(error.to_string(), expected);
            chmod(path, 0o755);
        }
        chmod(&place.path().join("plugins"), 0o1777);
        open(&file).expect("a sticky folder of folders protects each of them");
    }

    #[test]
    fn a_group_of_several_is_others() {
        let (_place, file) = place();
        chmod(&file, 0o775);
        let group = fs::metadata(&file).expect("the file is not there").gid();
        let ours = rustix::process::geteuid().as_raw();
        assert_eq!(open(&file).is_ok(), group == ours);
        if std::os::unix::fs::chown(&file, None, Some(12_345)).is_ok() {
            open(&file).expect_err("a user of that group can write it");
        }
    }

    #[test]
    fn an_access_control_list_that_lets_others_write_is_seen() {
        // As the kernel keeps it: version 2, then the owner, user 12345, the group, the mask, and the others.
        let list = |named: u8, mask: u8| {
            let entry = |kind: u8, rights: u8, id: u32| {
                [&[kind, 0, rights, 0][..], &id.to_le_bytes()].concat()
            };
            let no_id = u32::MAX;
            let entries = [
                vec![2, 0, 0, 0],
                entry(0x01, 7, no_id),
                entry(0x02, named, 12_345),
                entry(0x04, 5, no_id),
                entry(0x10, mask, no_id),
                entry(0x20, 5, no_id),
            ];
            entries.concat()
        };
        let (_place, file) = place();
        let set = |path: &Path, list: &[u8]| {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(path, "system.posix_acl_access", list, flags)
        };
        if set(&file, &list(7, 7)) == Err(Errno::OPNOTSUPP) {
            // Not every file system has such lists.
            return;
        }
        let folder = file.parent().expect("a file is in a folder");
        open(&file).expect_err("a user that it names can write it");
        // The mask takes the right away, or the entry does not have it.
        for list in [list(7, 5), list(5, 5)] {
            set(&file, &list).expect("there are lists");
            open(&file).expect("no other user can write it");
        }
        set(folder, &list(7, 7)).expect("there are lists");
        open(&file).expect_err("a user that it names can replace it");
    }

    #[test]
    fn each_folder_above_is_looked_at() {
        let place = tempfile::tempdir().expect("no temporary folder can be made");
        let folder = place.path().join("a/b/c/plugins/p");
        fs::create_dir_all(&folder).expect("the folder cannot be made");
        let file = folder.join("libp.so");
        fs::write(&file, "x").expect("the file cannot be written");
        for path in file.ancestors().take(6) {
            chmod(path, 0o755);
        }
        open(&file).expect("no other user can write it");
        let above = place.path().join("a");
        chmod(&above, 0o777);
        let error = open(&file).expect_err("others can put another `b` there");
        assert!(error.to_string().contains("/a can be written by others"), "{error}");
        chmod(&above, 0o1777);
        open(&file).expect("others can put nothing in the place of `b`");
        // One that can only be passed through is judged all the same.
        chmod(&above, 0o711);
        open(&file).expect("no other user can write it");
    }

    #[test]
    fn what_is_opened_is_what_is_judged() {
        let (place, file) = place();
        let folder = file.parent().expect("a file is in a folder");
        // What a path leads to may be exchanged for a link after its links were followed.
        let real = place.path().join("real");
        fs::rename(folder, &real).expect("the file cannot be renamed");
        std::os::unix::fs::symlink(&real, folder).expect("the link cannot be made");
        open(&file).expect_err("its folder has become a link");
        let link = real.join("link.so");
        std::os::unix::fs::symlink("libp.so", &link).expect("the link cannot be made");
        open(&link).expect_err("it has become a link");
        // A pipe is not waited for.
        let pipe = real.join("pipe.so");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(CWD, &pipe, kind, Mode::RWXU, 0).expect("a pipe");
        let error = open(&pipe).expect_err("it is no file");
        assert!(error.to_string().ends_with("pipe.so is a special file, not a library"), "{error}");
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let (_place, file) = place();
        if std::os::unix::fs::chown(&file, Some(12_345), None).is_err() {
            // Only the superuser can give a file away.
            return;
        }
        let error = open(&file).expect_err("it is another user's");
        assert!(error.to_string().contains("belongs to user 12345"), "{error}");
    }
}
