//! A file system that loses what was not synced when its power is cut.
//!
//! ```text
//!  a program ── write, rename, … ──▶ as everybody sees it now
//!            ── fsync ──────────────▶ as it is on the disk        at each: what a power cut just before it would leave
//! ```
//!
//! It is mounted on `/dev/fuse`, lives in memory, and keeps each file and each folder twice: as it is seen, and as it was when
//! it was last synced. A folder is the names in it: a file that was synced is lost all the same where its name was not.
//! At each sync it writes down what would be left, in two ways: nothing that was not synced; or all names as they are seen, with
//! the contents that were synced, as after a journal of names alone.
//!
//! What programs write into the folder `told` has left the machine: it is what somebody was told by then.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use tempfile::TempDir;

/// The folder into which programs write what they tell.
pub const TOLD: &str = "told";

/// A mounted file system.
#[derive(Debug)]
pub struct Power {
    session: Option<BackgroundSession>,
    state: Shared,
    folder: TempDir,
}

/// What a power cut leaves, and what was told by then.
#[derive(Clone, Debug)]
pub struct Cut {
    /// What was about to be synced.
    pub before: PathBuf,
    /// What programs had written into the files of the folder `told`.
    pub told: BTreeMap<PathBuf, Bytes>,
    /// What is left where nothing is kept that was not synced.
    pub dropped: Image,
    /// What is left where all names are kept.
    pub renamed: Image,
}

/// Files, folders and links by their paths.
pub type Image = BTreeMap<PathBuf, Left>;

/// One of them.
#[derive(Clone, Debug)]
pub enum Left {
    /// A folder.
    Folder,
    /// A file.
    File(Bytes),
    /// A link.
    Link(PathBuf),
}

type Bytes = Arc<Vec<u8>>;
type Shared = Arc<Mutex<State>>;

#[derive(Debug)]
struct State {
    /// By their numbers, which begin at one. None is ever taken away: a file without a name may be open.
    nodes: Vec<Node>,
    cuts: Vec<Cut>,
}

#[derive(Debug)]
struct Node {
    now: Content,
    /// As it was last synced.
    synced: Content,
    mode: u16,
    links: u32,
    modified: SystemTime,
}

#[derive(Clone, Debug)]
enum Content {
    File(Bytes),
    Folder(Arc<BTreeMap<OsString, u64>>),
    Link(PathBuf),
    /// A pipe or a socket, which the kernel serves.
    Other(FileType),
}

const ROOT: u64 = 1;

/// Whatever changes is changed through the kernel, which so knows it.
const KNOWN: Duration = Duration::from_secs(3600);

impl Power {
    /// Mounts an empty one; what stands in the way where that cannot be done.
    pub fn mount() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = Node::new(Content::Folder(Arc::default()), 0o700);
        let state: Shared = Arc::new(Mutex::new(State { nodes: vec![root], cuts: Vec::new() }));
        let mut config = Config::default();
        config.mount_options.push(MountOption::FSName("power".to_owned()));
        let session = fuser::spawn_mount(Mounted(Arc::clone(&state)), folder.path(), &config)?;
        let power = Self { session: Some(session), state, folder };
        fs::create_dir(power.path().join(TOLD))?;
        Ok(power)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// What a power cut would have left just before each sync there was, and now.
    pub fn cuts(&self) -> Vec<Cut> {
        let mut state = lock(&self.state);
        state.cut(PathBuf::from("the end"));
        state.cuts.clone()
    }
}

impl Drop for Power {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            // Where a process is still in it, it goes with that.
            let _ = session.umount_and_join();
        }
    }
}

/// Writes what is left into a folder of an ordinary file system.
pub fn restore(image: &Image, into: &Path) -> io::Result<()> {
    for (path, left) in image {
        let path = into.join(path);
        match left {
            Left::Folder => fs::create_dir_all(path)?,
            Left::File(bytes) => fs::write(path, &**bytes)?,
            Left::Link(target) => std::os::unix::fs::symlink(target, path)?,
        }
    }
    Ok(())
}

impl Node {
    fn new(content: Content, mode: u16) -> Self {
        // What was never synced is empty.
        let synced = match &content {
            Content::File(_) => Content::File(Bytes::default()),
            Content::Folder(_) => Content::Folder(Arc::default()),
            other => other.clone(),
        };
        Self { now: content, synced, mode, links: 1, modified: now() }
    }

    fn kind(&self) -> FileType {
        match &self.now {
            Content::File(_) => FileType::RegularFile,
            Content::Folder(_) => FileType::Directory,
            Content::Link(_) => FileType::Symlink,
            Content::Other(kind) => *kind,
        }
    }

    fn attributes(&self, number: u64) -> FileAttr {
        let size = match &self.now {
            Content::File(bytes) => bytes.len() as u64,
            Content::Link(target) => target.as_os_str().len() as u64,
            Content::Folder(_) | Content::Other(_) => 0,
        };
        FileAttr {
            ino: INodeNo(number),
            size,
            blocks: size.div_ceil(512),
            atime: self.modified,
            mtime: self.modified,
            ctime: self.modified,
            crtime: UNIX_EPOCH,
            kind: self.kind(),
            perm: self.mode & 0o7777,
            nlink: self.links,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a file has the time of the system")]
fn now() -> SystemTime {
    SystemTime::now()
}

impl State {
    fn node(&mut self, number: u64) -> &mut Node {
        &mut self.nodes[number as usize - 1]
    }

    fn names(&mut self, folder: u64) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        let node = self.node(folder);
        node.modified = now();
        match &mut node.now {
            Content::Folder(names) => Ok(Arc::make_mut(names)),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn find(&mut self, folder: u64, name: &OsStr) -> Result<u64, Errno> {
        match &self.node(folder).now {
            Content::Folder(names) => names.get(name).copied().ok_or(Errno::ENOENT),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn make(&mut self, folder: u64, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        if self.find(folder, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        self.nodes.push(node);
        let number = self.nodes.len() as u64;
        self.names(folder)?.insert(name.to_owned(), number);
        Ok(self.node(number).attributes(number))
    }

    fn remove(&mut self, folder: u64, name: &OsStr) -> Result<(), Errno> {
        let number = self.find(folder, name)?;
        if let Content::Folder(names) = &self.node(number).now
            && !names.is_empty()
        {
            return Err(Errno::ENOTEMPTY);
        }
        self.names(folder)?.remove(name);
        self.node(number).links -= 1;
        Ok(())
    }

    fn rename(
        &mut self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let number = self.find(from.0, from.1)?;
        let replaced = self.find(to.0, to.1).ok();
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return Err(Errno::EINVAL);
        }
        if flags.contains(RenameFlags::RENAME_NOREPLACE) && replaced.is_some() {
            return Err(Errno::EEXIST);
        }
        if replaced == Some(number) {
            return Ok(());
        }
        if replaced.is_some() {
            self.remove(to.0, to.1)?;
        }
        self.names(from.0)?.remove(from.1);
        self.names(to.0)?.insert(to.1.to_owned(), number);
        Ok(())
    }

    fn write(&mut self, file: u64, at: usize, data: &[u8]) -> Result<u32, Errno> {
        let node = self.node(file);
        node.modified = now();
        let Content::File(bytes) = &mut node.now else { return Err(Errno::EBADF) };
        let bytes = Arc::make_mut(bytes);
        if bytes.len() < at + data.len() {
            bytes.resize(at + data.len(), 0);
        }
        bytes[at..at + data.len()].copy_from_slice(data);
        Ok(data.len() as u32)
    }

    /// Makes it durable, after a look at what a power cut would leave without that.
    fn sync(&mut self, number: u64) {
        let path = self.path_of(number);
        self.cut(path);
        let node = self.node(number);
        node.synced = node.now.clone();
    }

    fn cut(&mut self, before: PathBuf) {
        let told = match self.find(ROOT, OsStr::new(TOLD)) {
            Ok(folder) => self.image(folder, &|node| (&node.now, &node.now)),
            Err(_) => Image::new(),
        };
        let told = told.into_iter().filter_map(|(path, left)| match left {
            Left::File(bytes) => Some((path, bytes)),
            Left::Folder | Left::Link(_) => None,
        });
        let told = told.collect();
        let dropped = self.image(ROOT, &|node| (&node.synced, &node.synced));
        let renamed = self.image(ROOT, &|node| (&node.now, &node.synced));
        self.cuts.push(Cut { before, told, dropped, renamed });
    }

    /// What is below a folder: names as the first says, contents as the second.
    fn image(&self, root: u64, of: &dyn Fn(&Node) -> (&Content, &Content)) -> Image {
        let mut image = Image::new();
        let mut open = vec![(PathBuf::new(), root)];
        while let Some((path, number)) = open.pop() {
            let (names, content) = of(&self.nodes[number as usize - 1]);
            let left = match (names, content) {
                (Content::Folder(names), _) => {
                    open.extend(names.iter().map(|(name, number)| (path.join(name), *number)));
                    Left::Folder
                }
                (_, Content::File(bytes)) => Left::File(Arc::clone(bytes)),
                (_, Content::Link(target)) => Left::Link(target.clone()),
                _ => continue,
            };
            image.insert(path, left);
        }
        image
    }

    fn path_of(&self, number: u64) -> PathBuf {
        let mut open = vec![(PathBuf::new(), ROOT)];
        while let Some((path, at)) = open.pop() {
            if at == number {
                return path;
            }
            if let Content::Folder(names) = &self.nodes[at as usize - 1].now {
                open.extend(names.iter().map(|(name, number)| (path.join(name), *number)));
            }
        }
        PathBuf::from("a file without a name")
    }
}

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What answers the kernel.
struct Mounted(Shared);

impl Mounted {
    fn entry(&self, reply: ReplyEntry, act: impl FnOnce(&mut State) -> Result<FileAttr, Errno>) {
        match act(&mut lock(&self.0)) {
            Ok(attributes) => reply.entry(&KNOWN, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn empty(&self, reply: ReplyEmpty, act: impl FnOnce(&mut State) -> Result<(), Errno>) {
        match act(&mut lock(&self.0)) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }
}

impl Filesystem for Mounted {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, |state| {
            let number = state.find(parent.0, name)?;
            Ok(state.node(number).attributes(number))
        });
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&KNOWN, &lock(&self.0).node(ino.0).attributes(ino.0));
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = lock(&self.0);
        let node = state.node(ino.0);
        if let Some(mode) = mode {
            node.mode = (mode & 0o7777) as u16;
        }
        if let (Some(size), Content::File(bytes)) = (size, &mut node.now) {
            Arc::make_mut(bytes).resize(size as usize, 0);
            node.modified = now();
        }
        match mtime {
            Some(TimeOrNow::SpecificTime(time)) => node.modified = time,
            Some(TimeOrNow::Now) => node.modified = now(),
            None => {}
        }
        reply.attr(&KNOWN, &node.attributes(ino.0));
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match &lock(&self.0).node(ino.0).now {
            Content::Link(target) => reply.data(target.as_os_str().as_bytes()),
            _ => reply.error(Errno::EINVAL),
        }
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        let content = match mode & libc::S_IFMT {
            libc::S_IFIFO => Content::Other(FileType::NamedPipe),
            libc::S_IFSOCK => Content::Other(FileType::Socket),
            _ => Content::File(Bytes::default()),
        };
        let node = Node::new(content, (mode & !umask & 0o7777) as u16);
        self.entry(reply, |state| state.make(parent.0, name, node));
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let content = Content::Folder(Arc::default());
        let node = Node::new(content, (mode & !umask & 0o7777) as u16);
        self.entry(reply, |state| state.make(parent.0, name, node));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(reply, |state| state.remove(parent.0, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(reply, |state| state.remove(parent.0, name));
    }

    fn symlink(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let node = Node::new(Content::Link(target.to_owned()), 0o777);
        self.entry(reply, |state| state.make(parent.0, name, node));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.empty(reply, |state| state.rename((parent.0, name), (newparent.0, newname), flags));
    }

    fn link(
        &self,
        _: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        self.entry(reply, |state| {
            if state.find(newparent.0, newname).is_ok() {
                return Err(Errno::EEXIST);
            }
            state.names(newparent.0)?.insert(newname.to_owned(), ino.0);
            let node = state.node(ino.0);
            node.links += 1;
            Ok(node.attributes(ino.0))
        });
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The kernel's own copy of a file is true: all that is written goes through it.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let node = Node::new(Content::File(Bytes::default()), (mode & !umask & 0o7777) as u16);
        match lock(&self.0).make(parent.0, name, node) {
            Ok(attributes) => reply.created(
                &KNOWN,
                &attributes,
                Generation(0),
                FileHandle(0),
                FopenFlags::FOPEN_KEEP_CACHE,
            ),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match &lock(&self.0).node(ino.0).now {
            Content::File(bytes) => {
                let from = bytes.len().min(offset as usize);
                let to = bytes.len().min(from + size as usize);
                reply.data(&bytes[from..to]);
            }
            _ => reply.error(Errno::EISDIR),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match lock(&self.0).write(ino.0, offset as usize, data) {
            Ok(written) => reply.written(written),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        lock(&self.0).sync(ino.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        lock(&self.0).sync(ino.0);
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut state = lock(&self.0);
        let Content::Folder(names) = state.node(ino.0).now.clone() else {
            return reply.error(Errno::ENOTDIR);
        };
        let own = [(OsString::from("."), ino.0), (OsString::from(".."), ino.0)];
        let all = own.into_iter().chain(names.iter().map(|(name, at)| (name.clone(), *at)));
        for ((name, number), next) in all.zip(1..).skip(offset as usize) {
            let kind = state.node(number).kind();
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
