//! Files and folders, each as it is seen and as it was last synced.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo, RenameFlags};

use super::{Bytes, Cut, Image, Left, Shared, TOLD};

/// The number of the folder that holds everything.
const ROOT: u64 = 1;

/// All files and folders, and what each power cut would have left.
#[derive(Debug)]
pub(super) struct Disk {
    /// By their numbers, which begin at one. None is ever taken away: a file without a name may be open.
    nodes: Vec<Node>,
    pub(super) cuts: Vec<Cut>,
}

/// A file or a folder.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) now: Content,
    /// The content as it was last synced.
    synced: Content,
    pub(super) mode: u16,
    pub(super) links: u32,
    pub(super) modified: SystemTime,
}

/// The content of a file, a folder or a link.
#[derive(Clone, Debug)]
pub(super) enum Content {
    File(Bytes),
    Folder(Arc<BTreeMap<OsString, u64>>),
    Link(PathBuf),
    /// A pipe or a socket, which the kernel serves.
    Other(FileType),
}

impl Node {
    pub(super) fn new(content: Content, mode: u16) -> Self {
        // What was never synced is empty.
        let synced = match &content {
            Content::File(_) => Content::File(Bytes::default()),
            Content::Folder(_) => Content::Folder(Arc::default()),
            other => other.clone(),
        };
        Self { now: content, synced, mode, links: 1, modified: now() }
    }

    pub(super) fn kind(&self) -> FileType {
        match &self.now {
            Content::File(_) => FileType::RegularFile,
            Content::Folder(_) => FileType::Directory,
            Content::Link(_) => FileType::Symlink,
            Content::Other(kind) => *kind,
        }
    }

    pub(super) fn attributes(&self, number: u64) -> FileAttr {
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
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

impl Default for Disk {
    /// An empty folder.
    fn default() -> Self {
        let root = Node::new(Content::Folder(Arc::default()), 0o700);
        Self { nodes: vec![root], cuts: Vec::new() }
    }
}

impl Disk {
    pub(super) fn node(&mut self, number: u64) -> &mut Node {
        &mut self.nodes[number as usize - 1]
    }

    pub(super) fn names(&mut self, folder: u64) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        let node = self.node(folder);
        node.modified = now();
        match &mut node.now {
            Content::Folder(names) => Ok(Arc::make_mut(names)),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn find(&mut self, folder: u64, name: &OsStr) -> Result<u64, Errno> {
        match &self.node(folder).now {
            Content::Folder(names) => names.get(name).copied().ok_or(Errno::ENOENT),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn make(
        &mut self,
        folder: u64,
        name: &OsStr,
        node: Node,
    ) -> Result<FileAttr, Errno> {
        if self.find(folder, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        self.nodes.push(node);
        let number = self.nodes.len() as u64;
        self.names(folder)?.insert(name.to_owned(), number);
        Ok(self.node(number).attributes(number))
    }

    pub(super) fn remove(&mut self, folder: u64, name: &OsStr) -> Result<(), Errno> {
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

    pub(super) fn rename(
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

    pub(super) fn write(&mut self, file: u64, at: usize, data: &[u8]) -> Result<u32, Errno> {
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
    pub(super) fn sync(&mut self, number: u64) {
        let path = self.path_of(number);
        self.cut(path);
        let node = self.node(number);
        node.synced = node.now.clone();
    }

    pub(super) fn cut(&mut self, before: PathBuf) {
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

    /// Returns what is below a folder: names as the first content says, contents as the second.
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

pub(super) fn lock(state: &Shared) -> MutexGuard<'_, Disk> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
