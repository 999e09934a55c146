//! Files below a folder that is held open.
//!
//! Agents may write into parts of the data folder. A path that goes through such a part may lead anywhere by the time it is
//! opened: a folder was replaced by a link. So nothing below the data folder is opened by its whole path. Every step is taken
//! from a descriptor, and a link on the way is an error.
//!
//! The database is the exception: SQLite opens its files by their paths. They stand in the data folder itself.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use offshoot_model::Timestamp;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat, flock, fstat,
    fsync, mkdirat, openat, openat2, renameat, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};

/// The prefix of the names of temporary files, where they are outside of the folder that holds nothing else.
pub(crate) const PREFIX: &str = ".new-";

/// A folder that is held open, and by what path it was found. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    pub(crate) folder: Arc<OwnedFd>,
    path: Arc<PathBuf>,
}

/// A file that is written before it gets its name. Removed when dropped, unless it was named.
///
/// Its writer holds a lock on it, which the kernel lets go of with the process. So a file without a lock is one that will
/// never be finished: it can go at once, however young it is.
#[derive(Debug)]
pub(crate) struct NewFile {
    folder: Below,
    name: String,
    pub(crate) file: File,
    is_named: bool,
}

/// The metadata of what stands under a name. Links are not followed.
#[derive(Clone, Copy)]
pub(crate) struct There(Stat);

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// A folder on the way to something: enough to go on from, also where it may be entered and not listed.
const STEP: OFlags = OFlags::DIRECTORY.union(OFlags::PATH).union(OFlags::CLOEXEC);

/// Nothing is waited for: where a pipe stands instead of a file, opening it must not hang.
const FILE: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// True if the kernel resolves whole paths with the limits that are set here. Older kernels do not, and some sandboxes
/// forbid the call.
static RESOLVES: AtomicBool = AtomicBool::new(true);

impl Below {
    /// Opens a folder by its path, which the user has named: links in it are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = openat(CWD, path, FOLDER, Mode::empty())?;
        Ok(Self { folder: folder.into(), path: Arc::new(path.to_owned()) })
    }

    /// By what path it was found: for messages, and for those who are handed a path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder below this one.
    pub(crate) fn folder(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let name = name.as_ref();
        let folder = self.resolve(name, FOLDER)?;
        Ok(Self { folder: folder.into(), path: Arc::new(self.path.join(name)) })
    }

    /// A folder below this one, made where it is missing, with those on the way to it. Only its owner may enter it.
    pub(crate) fn make_folder(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        if let Some(folder) = if_there(self.folder(name.as_ref()))? {
            return Ok(folder);
        }
        name.as_ref().components().try_fold(self.clone(), |at, part| {
            match mkdirat(&at.folder, part.as_os_str(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            at.folder(part)
        })
    }

    /// A file, to be read. What is no regular file is an error.
    pub(crate) fn read(&self, name: impl AsRef<Path>) -> io::Result<File> {
        regular(self.resolve(name.as_ref(), FILE | OFlags::RDONLY)?)
    }

    /// The whole text of a small file.
    pub(crate) fn read_text(&self, name: impl AsRef<Path>) -> io::Result<String> {
        io::read_to_string(self.read(name)?)
    }

    /// A file directly in this folder, to be read and written; made with mode 0600 where it is missing.
    pub(crate) fn open_or_make(&self, name: &str) -> io::Result<File> {
        let flags = FILE | OFlags::RDWR | OFlags::CREATE;
        regular(openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?)
    }

    /// A file directly in this folder that was not there before, with mode 0600.
    pub(crate) fn create_new(&self, name: &str) -> io::Result<File> {
        let flags = FILE | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// A new, empty file directly in this folder, locked and still without its name.
    pub(crate) fn new_file(&self, prefix: &str) -> io::Result<NewFile> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{prefix}{}-{count}", std::process::id());
            let file = match self.create_new(&name) {
                // Left by another process of the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let new = NewFile { folder: self.clone(), name, file, is_named: false };
            retry_on_intr(|| flock(&new.file, FlockOperation::LockExclusive))?;
            // A sweep may have removed the file between these two calls.
            if fstat(&new.file)?.st_nlink > 0 {
                return Ok(new);
            }
        }
    }

    /// Writes a whole file or none under its name in `to`. Until then it stands in this folder.
    pub(crate) fn write_whole(
        &self,
        to: &Self,
        name: &str,
        write: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let new = self.new_file(PREFIX)?;
        let mut buffered = io::BufWriter::new(&new.file);
        write(&mut buffered)?;
        io::Write::flush(&mut buffered)?;
        drop(buffered);
        new.name(to, name).map(drop)
    }

    /// Gives something directly in this folder another name. Whatever stood there is replaced.
    pub(crate) fn rename(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, name, &to.folder, new)?)
    }

    /// Removes a file directly in this folder.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Removes something directly in this folder with all that is in it. Links in it are removed, not followed.
    pub(crate) fn remove_all(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => return Ok(()),
            // The second is the answer that the standard allows.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = self.folder(name)?;
        for (name, _) in folder.entries()? {
            match name.to_str() {
                Some(name) => folder.remove_all(name)?,
                None => unlinkat(&folder.folder, &name, AtFlags::empty())?,
            }
        }
        Ok(unlinkat(&self.folder, name, AtFlags::REMOVEDIR)?)
    }

    /// Returns the metadata of what stands under a name directly in this folder.
    pub(crate) fn there(&self, name: &str) -> io::Result<There> {
        Ok(There(statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Returns the entries of this folder.
    pub(crate) fn entries(&self) -> io::Result<Vec<(OsString, There)>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(there) => {
                    found.push((OsString::from_vec(name.to_bytes().to_vec()), There(there)));
                }
                // The entry was removed in the meantime.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Makes the names in this folder durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.folder)?)
    }

    /// Lets only the owner enter this folder, or use a file in it. Answers whether others still can.
    pub(crate) fn close_to_others(&self, name: Option<&str>) -> io::Result<bool> {
        // Never opened to be read: closing a file lets go of every lock that this process has on it, and SQLite's locks on its files
        // are such. Other processes would then take the log for one that nothing uses, and delete it.
        let file = match name {
            Some(name) => match openat(&self.folder, name, FILE | OFlags::PATH, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(false),
                file => &file?,
            },
            None => &*self.folder,
        };
        let others = Mode::RWXG | Mode::RWXO;
        let now = fstat(file)?;
        if FileType::from_raw_mode(now.st_mode).is_symlink() {
            return Err(Errno::LOOP.into());
        }
        let mode = |stat: Stat| Mode::from_raw_mode(stat.st_mode);
        if !mode(now).intersects(others) {
            return Ok(false);
        }
        // A file of another user, or one on a file system without modes, stays as it is.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let _ = rustix::fs::chmod(path, mode(now).difference(others));
        Ok(mode(fstat(file)?).intersects(others))
    }

    /// Opens something below this folder, which neither leaves it nor goes over a link.
    fn resolve(&self, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        const STRICT: ResolveFlags = ResolveFlags::BENEATH
            .union(ResolveFlags::NO_SYMLINKS)
            .union(ResolveFlags::NO_MAGICLINKS);
        while RESOLVES.load(Ordering::Relaxed) {
            match openat2(&self.folder, name, flags, Mode::empty(), STRICT) {
                Err(Errno::NOSYS | Errno::PERM) => RESOLVES.store(false, Ordering::Relaxed),
                // Something was renamed meanwhile, so that the kernel is not sure.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
        self.walk(name, flags)
    }

    /// Opens the same as `resolve` does, one step of the path after the other.
    fn walk(&self, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut steps = name.components().peekable();
        let mut at: Option<OwnedFd> = None;
        while let Some(Component::Normal(step)) = steps.next() {
            let flags = if steps.peek().is_some() { STEP } else { flags };
            let from = at.as_ref().unwrap_or(&self.folder);
            at = Some(openat(from, step, flags | OFlags::NOFOLLOW, Mode::empty())?);
        }
        match (at, steps.next()) {
            (Some(at), None) => Ok(at),
            // The rest of it would lead upwards, or away.
            _ => Err(Errno::XDEV.into()),
        }
    }
}

impl NewFile {
    /// The present path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path.join(&self.name)
    }

    /// Gives it its name. Whatever stood there is replaced.
    pub(crate) fn name(mut self, to: &Below, name: &str) -> io::Result<()> {
        self.folder.rename(&self.name, to, name)?;
        self.is_named = true;
        Ok(())
    }

    /// Leaves the file where it is, until it is removed by other means.
    pub(crate) fn keep(mut self) -> io::Result<(File, PathBuf)> {
        let file = self.file.try_clone()?;
        self.is_named = true;
        Ok((file, self.path()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_named {
            // A file that stays is found by the next start.
            let _ = self.folder.remove(&self.name);
        }
    }
}

impl There {
    /// Of an open file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self(fstat(file)?))
    }

    pub(crate) fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.0.st_mode) == FileType::Directory
    }

    /// Returns the length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.0.st_size.try_into().unwrap_or(0)
    }

    /// True if the file has more than one name.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.st_nlink > 1
    }

    /// True if both are the same file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.0.st_dev, self.0.st_ino) == (other.0.st_dev, other.0.st_ino)
    }

    /// The time of the last write to it; none before 1970.
    pub(crate) fn modified(&self) -> Option<Timestamp> {
        let seconds = u64::try_from(self.0.st_mtime).ok()?;
        let micros = self.0.st_mtime_nsec / 1000;
        Some(Timestamp::from_micros(seconds.checked_mul(1_000_000)?.checked_add(micros)?))
    }
}

/// Opens a regular file to be read, by an absolute path on which there is no symbolic link. What was replaced by a link since the
/// path was made canonical is an error, in the last place and in any folder above it. A pipe is not waited for.
///
/// # Errors
/// Fails if the path is not absolute, leads over a link or to something else than a regular file (`InvalidInput`), or cannot be
/// opened.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    let Ok(name) = path.strip_prefix("/") else { return Err(Errno::INVAL.into()) };
    let folder = openat(CWD, "/", STEP, Mode::empty())?;
    Below { folder: folder.into(), path: Arc::new("/".into()) }.read(name)
}

/// Opens a regular file below a folder to append to it, and makes it where it is missing. A symbolic link below the folder is an
/// error, and so is a name that leads out of it. A pipe is not waited for.
///
/// # Errors
/// Fails if the name leads out of the folder, over a link or to something else than a regular file, or cannot be opened.
pub fn append_below(folder: &Path, name: &Path) -> io::Result<File> {
    let folder = openat(CWD, folder, STEP, Mode::empty())?;
    let below = Below { folder: folder.into(), path: Arc::new(name.to_owned()) };
    let (Some(last), Some(above)) = (name.file_name(), name.parent()) else {
        return Err(Errno::ISDIR.into());
    };
    let above = match above.as_os_str().is_empty() {
        true => below,
        false => Below { folder: below.resolve(above, STEP)?.into(), ..below },
    };
    let flags = FILE | OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let mode = Mode::from_raw_mode(0o666);
    regular(openat(&above.folder, last, flags, mode)?)
}

/// Returns none in place of the error that there is no such file or folder.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn regular(opened: OwnedFd) -> io::Result<File> {
    let file = File::from(opened);
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder with a file, links and a pipe in it, and one beside it.
    fn place() -> (tempfile::TempDir, Below) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path();
        std::fs::create_dir_all(path.join("in/a/b")).unwrap();
        std::fs::write(path.join("in/a/b/file"), "inside").unwrap();
        std::fs::write(path.join("outside"), "outside").unwrap();
        symlink("../../../outside", path.join("in/a/b/link")).unwrap();
        symlink("a", path.join("in/also-a")).unwrap();
        symlink(path, path.join("in/up")).unwrap();
        rustix::fs::mknodat(CWD, path.join("in/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let below = Below::open(&path.join("in")).unwrap();
        (home, below)
    }

    #[test]
    fn no_path_leads_out_or_over_a_link() {
        let (_home, below) = place();
        let walk = |name: &str| below.walk(Path::new(name), FILE | OFlags::RDONLY);
        let resolve = |name: &str| below.resolve(Path::new(name), FILE | OFlags::RDONLY);
        type Open<'a> = &'a dyn Fn(&str) -> io::Result<OwnedFd>;
        for open in [&walk as Open<'_>, &resolve] {
            let file = open("a/b/file").and_then(regular).unwrap();
            assert_eq!(io::read_to_string(file).unwrap(), "inside");
            for name in [
                "a/b/link",
                "also-a/b/file",
                "up/outside",
                "../outside",
                "a/../../outside",
                "/etc/passwd",
                "a/b/missing",
            ] {
                assert!(open(name).is_err(), "{name}");
            }
            // It neither hangs nor is read.
            assert!(open("pipe").and_then(regular).is_err());
        }
        assert!(below.make_folder("up/made").is_err());
        assert!(below.make_folder("also-a/made").is_err());
        assert!(below.open_or_make("up").is_err());
        below.make_folder("a/b/made/too").unwrap();
    }

    #[test]
    fn a_line_is_appended_below_a_folder_alone() {
        let (home, _) = place();
        let inside = home.path().join("in");
        let append = |name: &str| {
            io::Write::write_all(&mut append_below(&inside, Path::new(name))?, b" more")
        };
        for name in ["a/b/file", "new", "new"] {
            append(name).unwrap();
        }
        assert_eq!(std::fs::read(inside.join("a/b/file")).unwrap(), b"inside more");
        assert_eq!(std::fs::read(inside.join("new")).unwrap(), b" more more");
        for name in
            ["a/b/link", "also-a/b/file", "up/outside", "../outside", "pipe", "a", "", "none/new"]
        {
            assert!(append(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_canonical_path_is_opened_and_one_with_links_is_not() {
        let (home, _) = place();
        let path = home.path().canonicalize().unwrap();
        let read = |name: &str| open_without_links(&path.join(name)).and_then(io::read_to_string);
        assert_eq!(read("in/a/b/file").unwrap(), "inside");
        for name in ["in/a/b/link", "in/also-a/b/file", "in/up/outside", "in/pipe", "in/a", "none"]
        {
            assert!(read(name).is_err(), "{name}");
        }
        assert!(open_without_links(Path::new("relative")).is_err());
    }

    #[test]
    fn what_is_removed_takes_no_link_along() {
        let (home, below) = place();
        below.remove_all("a").unwrap();
        below.remove_all("up").unwrap();
        below.remove_all("pipe").unwrap();
        assert!(!home.path().join("in/a").exists());
        assert_eq!(std::fs::read_to_string(home.path().join("outside")).unwrap(), "outside");
        assert!(below.remove_all("missing").is_err());
    }

    #[test]
    fn others_are_kept_out() {
        let (home, below) = place();
        let mode = |name: &str| {
            std::fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777
        };
        for (name, before, after) in [("in/a", 0o755, 0o700), ("in/a/b/file", 0o664, 0o600)] {
            let permissions = std::fs::Permissions::from_mode(before);
            std::fs::set_permissions(home.path().join(name), permissions).unwrap();
            let exposed = match name {
                "in/a" => below.folder("a").unwrap().close_to_others(None),
                _ => below.folder("a/b").unwrap().close_to_others(Some("file")),
            };
            assert!(!exposed.unwrap());
            assert_eq!(mode(name), after);
        }
    }

    #[test]
    fn a_new_file_has_a_name_of_its_own_until_it_is_named() {
        let (home, below) = place();
        let (one, two) = (below.new_file("x-").unwrap(), below.new_file("x-").unwrap());
        assert_ne!(one.path(), two.path());
        let aside = two.path();
        one.name(&below.folder("a").unwrap(), "named").unwrap();
        assert!(home.path().join("in/a/named").exists());
        drop(two);
        assert!(!aside.exists());
        let (_, path) = below.new_file("x-").unwrap().keep().unwrap();
        assert!(path.exists());
    }
}
