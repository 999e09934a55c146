//! The socket on which a supervisor listens.
//!
//! ```text
//!  {folder}/{name}                     the socket, where its path fits into the 107 bytes of a socket's address
//!  {folder}/{name} -> {short}/{name}   otherwise a link that points to it
//! ```
//!
//! Promise: a socket on which no process listens is removed; one on which a process listens is never removed.
//! A listener removes its own files at the end, and no others.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::Registry;
use crate::private_folder;

/// The longest path of a socket: `sun_path` without its last zero.
const LONGEST_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The time for which a full queue of a listener is waited for. It empties as fast as the supervisor answers, which is at once.
pub(crate) const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// A socket that accepts connections from now on. Its files are removed when it is dropped.
#[derive(Debug)]
pub struct DoorSocket {
    pub(crate) listener: UnixListener,
    pub(crate) files: SocketFiles,
}

/// The reason why this process cannot listen there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The folder cannot be made, read or locked.
    #[error("cannot keep a socket in `{}`", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process listens there, or a file stands there.
    #[error("`{}` is in use", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The path is too long for a socket, and so is that of each folder that could stand in.
    #[error("the path `{}` is too long for a socket", path.display())]
    TooLong {
        /// The socket.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot listen at `{}`", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The files of a socket, removed when dropped, unless others have taken their place.
#[derive(Debug)]
pub(crate) struct SocketFiles {
    /// The path to connect to.
    path: PathBuf,
    /// The folder that the socket was asked for.
    folder: PathBuf,
    /// Files with the numbers that tell them from later ones of the same name.
    made: Vec<(PathBuf, (u64, u64))>,
}

impl DoorSocket {
    /// Listens in a folder, which is made with mode 0700 where it does not exist; its parent must exist. Sockets in it on
    /// which no process listens are removed. Where its path is too long, the socket stands in a folder of `registry`.
    ///
    /// # Errors
    ///
    /// See [`BindError`].
    pub fn bind(folder: &Path, name: &str, registry: &Registry) -> Result<Self, BindError> {
        let failed = |source| BindError::Folder { folder: folder.to_owned(), source };
        private_folder::make(folder).map_err(failed)?;
        // Another process must not find the socket after it was made and before it accepts connections.
        let turn = File::open(folder).map_err(failed)?;
        turn.lock().map_err(failed)?;
        sweep(folder, registry).map_err(failed)?;

        let place = folder.join(name);
        if fs::symlink_metadata(&place).is_ok() {
            return Err(BindError::InUse { path: place });
        }
        if fits(&place) {
            let listener = listen(&place)?;
            let files = SocketFiles::new(place, folder);
            return Ok(Self { listener, files });
        }
        let short = registry
            .folders()
            .iter()
            .find(|folder| fits(&folder.join(name)) && private_folder::make(folder).is_ok())
            .map(|folder| folder.join(name))
            .ok_or_else(|| BindError::TooLong { path: place.clone() })?;
        if is_stale(&short) {
            // A failure shows in the next step.
            let _ = fs::remove_file(&short);
        }
        let listener = listen(&short)?;
        let mut files = SocketFiles::new(short, folder);
        symlink(&files.path, &place).map_err(failed)?;
        files.add(place);
        Ok(Self { listener, files })
    }

    /// Returns the path to connect to: short enough for every client in every language.
    pub fn path(&self) -> &Path {
        &self.files.path
    }

    /// Returns the folder that the socket was asked for.
    pub(crate) fn folder(&self) -> &Path {
        &self.files.folder
    }
}

/// The path at which a client finds the socket of that name: itself, or what it points to where it is too long.
pub(crate) fn reachable(path: &Path) -> io::Result<PathBuf> {
    if fits(path) { Ok(path.to_owned()) } else { fs::read_link(path) }
}

/// Connects, and waits for a full queue at most so long. Blocks.
pub(crate) fn connect_within(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = open_socket()?;
    // For a Unix socket, sending begins with connecting.
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    rustix::io::retry_on_intr(|| connect(&socket, &address))?;
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(UnixStream::from(socket))
}

fn open_socket() -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = SocketFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = SocketFlags::empty();
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

fn fits(path: &Path) -> bool {
    path.as_os_str().as_bytes().len() <= LONGEST_PATH
}

fn listen(path: &Path) -> Result<UnixListener, BindError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse { path: path.to_owned() },
        _ => BindError::Listen { path: path.to_owned(), source },
    };
    // Until its mode is set the folder keeps others out.
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Removes the sockets that supervisors have left which did not end by themselves.
fn sweep(folder: &Path, registry: &Registry) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let place = entry?.path();
        let Ok(target) = fs::read_link(&place) else {
            if is_stale(&place) {
                fs::remove_file(&place)?;
            }
            continue;
        };
        // A link that points elsewhere is none of ours.
        if !target.parent().is_some_and(|at| registry.folders().iter().any(|folder| folder == at)) {
            continue;
        }
        if is_stale(&target) {
            fs::remove_file(&target)?;
        }
        if fs::symlink_metadata(&target).is_err() {
            fs::remove_file(&place)?;
        }
    }
    Ok(())
}

/// True if no process listens on this socket. A full queue means that one does.
fn is_stale(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = || {
        let address = SocketAddrUnix::new(path)?;
        let socket = open_socket()?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok::<_, io::Error>(connect(&socket, &address) == Err(Errno::CONNREFUSED))
    };
    is_socket && refused().unwrap_or(false)
}

impl SocketFiles {
    fn new(path: PathBuf, folder: &Path) -> Self {
        let mut files = Self { path: path.clone(), folder: folder.to_owned(), made: Vec::new() };
        files.add(path);
        files
    }

    fn add(&mut self, path: PathBuf) {
        if let Some(number) = number(&path) {
            self.made.push((path, number));
        }
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for (path, made) in &self.made {
            if number(path) == Some(*made) {
                // Another process may have removed it already.
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn number(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

impl BindError {
    /// Returns advice on what to do next.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "choose a data folder that belongs to you and can be written",
            Self::InUse { .. } => "another supervisor answers there; choose another name",
            Self::TooLong { .. } => "choose a shorter XDG_RUNTIME_DIR",
            Self::Listen { .. } => "choose a data folder on a file system that knows sockets",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    struct Place {
        _parent: tempfile::TempDir,
        folder: PathBuf,
        registry: Registry,
    }

    /// A folder below one whose path has about so many bytes.
    fn place(length: usize) -> Place {
        let parent = tempfile::tempdir().unwrap();
        let mut folder = parent.path().to_owned();
        while folder.as_os_str().len() < length {
            folder.push("a-folder-with-a-long-name-for-tests");
        }
        fs::create_dir_all(&folder).unwrap();
        let registry = Registry::in_folders([parent.path().join("user")]);
        Place { folder: folder.join("doors"), registry, _parent: parent }
    }

    impl Place {
        fn bind(&self, name: &str) -> Result<DoorSocket, BindError> {
            DoorSocket::bind(&self.folder, name, &self.registry)
        }
    }

    fn talks(path: &Path, socket: &DoorSocket) {
        let path = reachable(path).unwrap();
        let mut client = connect_within(&path, CONNECT_PATIENCE).unwrap();
        let (mut server, _) = socket.listener.accept().unwrap();
        server.write_all(b"x").unwrap();
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
    }

    #[test]
    fn a_socket_is_its_users_alone_and_goes_with_its_owner() {
        for length in [0, 300] {
            let place = place(length);
            let socket = place.bind("a.sock").unwrap();
            let named = place.folder.join("a.sock");
            talks(&named, &socket);
            talks(socket.path(), &socket);
            let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
            assert_eq!(mode(socket.path()), 0o600);
            assert_eq!(mode(socket.path().parent().unwrap()), 0o700);
            assert_eq!(mode(&place.folder), 0o700);
            assert!(socket.path().as_os_str().len() <= LONGEST_PATH);
            assert_eq!(socket.path() == named, length == 0);
            let path = socket.path().to_owned();
            drop(socket);
            assert!(fs::symlink_metadata(&named).is_err() && fs::symlink_metadata(&path).is_err());
        }
    }

    #[test]
    fn a_stale_one_is_removed_and_a_live_one_is_not_taken() {
        for length in [0, 300] {
            let place = place(length);
            let live = place.bind("live.sock").unwrap();
            // A killed supervisor leaves files and no listener.
            let DoorSocket { listener, files } = place.bind("stale.sock").unwrap();
            drop(listener);
            let left = files.path.clone();
            std::mem::forget(files);
            assert!(is_stale(&left) && !is_stale(live.path()));

            let error = place.bind("live.sock").unwrap_err();
            assert!(matches!(error, BindError::InUse { .. }), "{error}");
            assert!(fs::symlink_metadata(&left).is_err());
            assert!(fs::symlink_metadata(place.folder.join("stale.sock")).is_err());
            // The search has connected to it, and is accepted first.
            while live.listener.accept().is_ok() {}
            talks(live.path(), &live);
            place.bind("stale.sock").unwrap();
        }
    }

    #[test]
    fn other_files_stay() {
        let place = place(0);
        drop(place.bind("a.sock").unwrap());
        let [file, link] = ["file.sock", "link.sock"].map(|name| place.folder.join(name));
        fs::write(&file, "x").unwrap();
        symlink("/nowhere/x.sock", &link).unwrap();
        let error = place.bind("file.sock").unwrap_err();
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"x");
        assert!(fs::symlink_metadata(&link).is_ok());
    }

    #[test]
    fn an_owner_removes_no_file_of_its_successor() {
        let place = place(0);
        let first = place.bind("a.sock").unwrap();
        fs::remove_file(first.path()).unwrap();
        let second = place.bind("a.sock").unwrap();
        drop(first);
        talks(second.path(), &second);
    }

    #[test]
    fn a_folder_that_cannot_be_one_is_named() {
        let mut place = place(0);
        fs::write(&place.folder, "").unwrap();
        let error = place.bind("a.sock").unwrap_err();
        assert!(matches!(error, BindError::Folder { .. }), "{error}");
        place.folder = place.folder.join("x".repeat(200));
        assert!(place.bind("a.sock").is_err());
    }

    #[test]
    fn a_path_for_which_nothing_can_stand_in_is_named() {
        let deep = place(300);
        let place = Place { registry: Registry::in_folders([deep.folder.clone()]), ..deep };
        let error = place.bind("a.sock").unwrap_err();
        assert!(matches!(error, BindError::TooLong { .. }), "{error}");
    }
}
