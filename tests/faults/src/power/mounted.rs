//! The file system as the kernel asks it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::disk::{Content, Disk, Node, lock, now};
use super::{Bytes, Shared};

/// Whatever changes is changed through the kernel, which so knows it.
const KNOWN: Duration = Duration::from_secs(3600);

/// The file system's side that answers the kernel.
pub(super) struct Mounted(pub(super) Shared);

impl Mounted {
    fn entry(&self, reply: ReplyEntry, act: impl FnOnce(&mut Disk) -> Result<FileAttr, Errno>) {
        match act(&mut lock(&self.0)) {
            Ok(attributes) => reply.entry(&KNOWN, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn empty(&self, reply: ReplyEmpty, act: impl FnOnce(&mut Disk) -> Result<(), Errno>) {
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
