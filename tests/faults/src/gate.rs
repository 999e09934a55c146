//! A real command behind a filter of the kernel, by which a chosen system call on its files fails, or the command dies there.
//!
//! ```text
//!  offshoot ── write, fsync, rename, … ──▶ kernel ──▶ held, and told to us ──▶ counted
//!                                            ▲                                   │
//!                                            └── goes on · fails · SIGKILL ◀─────┘
//! ```
//!
//! Unlike a library that is loaded before others this sees every call, however it is made; and it needs no rights. Only
//! calls of the command itself on files below one folder count: its agents and its keeper go on as they are.
#![expect(
    unsafe_code,
    reason = "the filter and its notifications are raw structures of the kernel"
)]

use std::ffi::CStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// What can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Bytes into a file, or its length.
    Write,
    /// A file or a folder is to be durable.
    Flush,
    /// A file gets another name.
    Rename,
    /// A file gets one more name.
    Link,
    /// A file that may be new is opened, or a folder is made.
    Create,
    /// A file or a folder is removed.
    Remove,
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error of the device, once.
    Error,
    /// No space is left, from then on.
    Full,
    /// The command is killed in its place.
    Death,
}

/// The call after so many more of its kind fails.
#[derive(Clone, Copy, Debug)]
pub struct Ambush {
    /// Which kind.
    pub call: Call,
    /// How many of them go well before.
    pub after: u64,
    /// How it fails.
    pub failure: Failure,
}

/// What came of a command.
#[derive(Debug)]
pub struct Passed {
    /// How it ended.
    pub status: ExitStatus,
    /// Where the ambush was met: the file, and what was done with it.
    pub met: Option<String>,
    /// How many calls of each kind there were.
    counts: [u64; Call::ALL.len()],
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Write, Self::Flush, Self::Rename, Self::Link, Self::Create, Self::Remove];
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Create => "creation",
            Self::Remove => "removal",
        })
    }
}

impl Passed {
    /// How many calls of a kind there were.
    pub fn count(&self, call: Call) -> u64 {
        self.counts[call as usize]
    }
}

/// A command and all that it starts take less than a second; who takes a minute hangs.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// How long what a command leaves may take to go after it.
const REMAINS: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// Runs a command to its end, and until everything is gone that it has started. None, where the kernel has no such filter.
///
/// # Panics
///
/// Where it hangs, or leaves a process behind.
pub fn run(command: &mut Command, below: &Path, ambush: Option<Ambush>) -> Option<Passed> {
    let (ours, theirs) = UnixStream::pair().expect("two more descriptors");
    let filter = filter();
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated; what is used lives until the
    // child has become the command.
    unsafe {
        command.pre_exec(move || install(&filter, &theirs));
    }
    let child = match command.spawn() {
        Ok(child) => child,
        // Where it is not known or not permitted.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EPERM)) =>
        {
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let listener = received(&ours);
    let mut gate = Gate {
        below: below.to_owned(),
        ambush,
        listener,
        child,
        counts: [0; Call::ALL.len()],
        met: None,
    };
    let status = gate.watch();
    Some(Passed { status, met: gate.met, counts: gate.counts })
}

struct Gate {
    below: PathBuf,
    ambush: Option<Ambush>,
    listener: OwnedFd,
    child: Child,
    counts: [u64; Call::ALL.len()],
    met: Option<String>,
}

/// What becomes of a call.
enum Verdict {
    GoesOn,
    Fails(i32),
    /// The process that made the call is dead.
    Nothing,
}

impl Gate {
    fn watch(&mut self) -> ExitStatus {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.expect("a child has a number");
        let ended = pidfd_open(pid, PidfdFlags::empty()).expect("it is not reaped yet");
        let mut status = None;
        loop {
            let mut both = vec![PollFd::new(&self.listener, PollFlags::IN)];
            if status.is_none() {
                both.push(PollFd::new(&ended, PollFlags::IN));
            }
            let limit = if status.is_none() { PATIENCE } else { REMAINS };
            match poll(&mut both, Some(&limit)) {
                Ok(0) => {
                    let _ = self.child.kill();
                    let what = if status.is_none() { "it hangs" } else { "it left a process" };
                    panic!("{what}; met {:?}", self.met);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("{error}"),
            }
            let told = both[0].revents();
            let over = both.get(1).is_some_and(|ended| !ended.revents().is_empty());
            drop(both);
            if told.contains(PollFlags::IN) {
                self.next();
            } else if told.contains(PollFlags::HUP)
                && let Some(status) = status
            {
                return status;
            }
            if over {
                status = Some(self.child.wait().expect("the child cannot be waited for"));
            }
        }
    }

    fn next(&mut self) {
        // SAFETY: a structure of numbers, for which the kernel demands zeros.
        let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        if !self.ask(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut notice) {
            // The process that made the call was killed meanwhile.
            return;
        }
        let (error, flags) = match self.judge(&notice) {
            Verdict::GoesOn => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Verdict::Fails(error) => (-error, 0),
            Verdict::Nothing => return,
        };
        let mut answer = libc::seccomp_notif_resp { id: notice.id, val: 0, error, flags };
        // Fails where that process was killed meanwhile.
        self.ask(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut answer);
    }

    fn ask<T>(&self, what: libc::Ioctl, value: &mut T) -> bool {
        // SAFETY: the descriptor is that of a filter, and the value has the type that belongs to the question.
        let done =
            unsafe { libc::ioctl(self.listener.as_raw_fd(), what, std::ptr::from_mut(value)) };
        done == 0
    }

    fn judge(&mut self, notice: &libc::seccomp_notif) -> Verdict {
        let Some((call, path)) = call_of(notice) else { return Verdict::GoesOn };
        let own = || thread_group(notice.pid) == Some(self.child.id());
        if !path.starts_with(&self.below) || !own() {
            return Verdict::GoesOn;
        }
        let count = self.counts[call as usize];
        self.counts[call as usize] += 1;
        let Some(Ambush { call: wanted, after, failure }) = self.ambush else {
            return Verdict::GoesOn;
        };
        let here = call == wanted && count == after;
        let takes_space = matches!(call, Call::Write | Call::Create | Call::Link);
        let lasts = failure == Failure::Full && self.met.is_some() && takes_space;
        if !here && !lasts {
            return Verdict::GoesOn;
        }
        self.met.get_or_insert_with(|| format!("{call:?} {}", path.display()));
        match failure {
            Failure::Error => Verdict::Fails(libc::EIO),
            Failure::Full => Verdict::Fails(libc::ENOSPC),
            Failure::Death => {
                self.child.kill().expect("it is not reaped yet");
                Verdict::Nothing
            }
        }
    }
}

/// Where the name of a file stands among the arguments of a call.
enum Named {
    /// It is open, under this argument.
    Open(usize),
    /// A path, from the working folder.
    Path(usize),
    /// A path, from an open folder.
    In(usize, usize),
}

/// The calls that are held. Of those with two names the new one counts.
#[rustfmt::skip]
const CALLS: &[(libc::c_long, Call, Named)] = &[
    (libc::SYS_write, Call::Write, Named::Open(0)),
    (libc::SYS_pwrite64, Call::Write, Named::Open(0)),
    (libc::SYS_writev, Call::Write, Named::Open(0)),
    (libc::SYS_pwritev, Call::Write, Named::Open(0)),
    (libc::SYS_copy_file_range, Call::Write, Named::Open(2)),
    (libc::SYS_sendfile, Call::Write, Named::Open(0)),
    (libc::SYS_ftruncate, Call::Write, Named::Open(0)),
    (libc::SYS_fsync, Call::Flush, Named::Open(0)),
    (libc::SYS_fdatasync, Call::Flush, Named::Open(0)),
    (libc::SYS_renameat, Call::Rename, Named::In(2, 3)),
    (libc::SYS_renameat2, Call::Rename, Named::In(2, 3)),
    (libc::SYS_linkat, Call::Link, Named::In(2, 3)),
    (libc::SYS_symlinkat, Call::Link, Named::In(1, 2)),
    (libc::SYS_openat, Call::Create, Named::In(0, 1)),
    (libc::SYS_mkdirat, Call::Create, Named::In(0, 1)),
    (libc::SYS_unlinkat, Call::Remove, Named::In(0, 1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, Call::Rename, Named::Path(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, Call::Link, Named::Path(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_symlink, Call::Link, Named::Path(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, Call::Create, Named::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, Call::Create, Named::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, Call::Remove, Named::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, Call::Remove, Named::Path(0)),
];

/// What a call does, and with which file; none where it is not of interest.
fn call_of(notice: &libc::seccomp_notif) -> Option<(Call, PathBuf)> {
    let number = libc::c_long::from(notice.data.nr);
    let (_, call, named) = CALLS.iter().find(|(nr, ..)| *nr == number)?;
    let args = &notice.data.args;
    let makes = |flags: u64| {
        let flags = flags as libc::c_int;
        flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
    };
    match number {
        libc::SYS_openat if !makes(args[2]) => return None,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open if !makes(args[1]) => return None,
        _ => {}
    }
    let process = PathBuf::from(format!("/proc/{}", notice.pid));
    let open = |fd: u64| fs::read_link(process.join("fd").join((fd as i32).to_string())).ok();
    let text = |at: u64| text(&process, at);
    let path = match *named {
        Named::Open(fd) => open(args[fd])?,
        Named::Path(path) => fs::read_link(process.join("cwd")).ok()?.join(text(args[path])?),
        Named::In(folder, path) => {
            let path = text(args[path])?;
            match args[folder] as i32 {
                _ if path.is_absolute() => path,
                libc::AT_FDCWD => fs::read_link(process.join("cwd")).ok()?.join(path),
                _ => open(args[folder])?.join(path),
            }
        }
    };
    Some((*call, path))
}

/// A path in the memory of a process.
fn text(process: &Path, at: u64) -> Option<PathBuf> {
    let memory = File::open(process.join("mem")).ok()?;
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    // What follows may be no memory at all, so it is read as far as it goes.
    let page = |at: u64| 4096 - at % 4096;
    let mut read = 0;
    while read < bytes.len() && !bytes[..read].contains(&0) {
        let at = at + read as u64;
        let most = (bytes.len() - read).min(usize::try_from(page(at)).ok()?);
        read += memory.read_at(&mut bytes[read..read + most], at).ok().filter(|read| *read > 0)?;
    }
    let text = CStr::from_bytes_until_nul(&bytes).ok()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(text.to_bytes())))
}

/// The process of a thread.
fn thread_group(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The filter: what is in the list is held, and everything else goes on.
fn filter() -> Vec<libc::sock_filter> {
    // From where the kernel loads: the number of the call, and the machine that it is of.
    const NUMBER: u32 = 0;
    const MACHINE: u32 = 4;
    #[cfg(target_arch = "x86_64")]
    const THIS: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const THIS: u32 = 0xc000_00b7;
    let step = |code: u32, k: u32, jt: usize, jf: usize| libc::sock_filter {
        code: code as u16,
        k,
        jt: u8::try_from(jt).expect("a short list"),
        jf: u8::try_from(jf).expect("a short list"),
    };
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let equal = |k, jt, jf| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, jt, jf);
    let end = |answer| step(libc::BPF_RET | libc::BPF_K, answer, 0, 0);
    let many = CALLS.len();
    let mut steps = vec![load(MACHINE), equal(THIS, 0, many + 1), load(NUMBER)];
    for (at, (number, ..)) in CALLS.iter().enumerate() {
        steps.push(equal(u32::try_from(*number).expect("a small number"), many - at, 0));
    }
    steps.extend([end(libc::SECCOMP_RET_ALLOW), end(libc::SECCOMP_RET_USER_NOTIF)]);
    steps
}

/// In the child, before it becomes the command: installs the filter, and hands out the descriptor that is told.
fn install(filter: &[libc::sock_filter], to: &UnixStream) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the structure and what it points to live through the call, which only reads them.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for us, and closes it when this process becomes the command.
    let listener = unsafe { BorrowedFd::borrow_raw(listener as i32) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let listener = [listener];
    rights.push(SendAncillaryMessage::ScmRights(&listener));
    sendmsg(to, &[IoSlice::new(b"!")], &mut rights, SendFlags::empty())?;
    Ok(())
}

fn received(from: &UnixStream) -> OwnedFd {
    from.set_read_timeout(Some(Duration::from_secs(60))).expect("a minute is a time");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut rights, RecvFlags::CMSG_CLOEXEC)
        .expect("the child has sent it before it became the command");
    let sent = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    sent.expect("one descriptor")
}
