//! Linux: process descriptors, `waitid`, groups and the sub-reaper flag.

mod cgroup;
mod limits;
mod own_open_files;
mod proc;
mod spawn;

pub use cgroup::process_namespace;
pub(crate) use cgroup::{ControlGroups, control_group, wait_until_empty};
pub(crate) use own_open_files::OpenFiles;
pub(crate) use proc::{
    ChildList, ProcessFolder, all_processes, below, child_numbers, environment_has,
    environment_value, has_open, ignores_broken_pipes, name, own_threads,
};
pub use proc::{Stat, boot_id, stat};
pub(crate) use spawn::{Image, spawn};

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, MemfdFlags, access, memfd_create};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, set_child_subreaper, test_kill_process_group, waitid,
};

use crate::Exit;

/// The id of a process that we may signal, and of the group it leads: never 0, never 1, because a call with
/// these reaches our own group or every process there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessId(Pid);

impl ProcessId {
    /// None for 0, 1 and what is no process id at all.
    pub(crate) fn new(raw: u32) -> Option<Self> {
        let raw = i32::try_from(raw).ok().filter(|raw| *raw > 1)?;
        Pid::from_raw(raw).map(Self)
    }

    pub(crate) fn get(self) -> u32 {
        self.0.as_raw_nonzero().get().unsigned_abs()
    }

    /// A descriptor of the process; it stays with this process even when the number is used again.
    pub(crate) fn open(self) -> io::Result<OwnedFd> {
        Ok(pidfd_open(self.0, PidfdFlags::empty())?)
    }

    /// Asks every member of the group to end. What is stopped is continued, or it could not hear.
    pub(crate) fn ask_group(self) {
        // A group that is gone, or not ours to signal, shows itself when its leader is waited for.
        let _ = kill_process_group(self.0, Signal::TERM);
        let _ = kill_process_group(self.0, Signal::CONT);
    }

    /// Kills every member of the group.
    pub(crate) fn kill_group(self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }

    /// True if the group has any member, zombies included.
    pub(crate) fn group_exists(self) -> bool {
        test_kill_process_group(self.0) != Err(rustix::io::Errno::SRCH)
    }

    /// Takes the status of a child of ours that has ended. None while it lives; an error where it is no child.
    pub(crate) fn reap(self) -> io::Result<Option<Exit>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(self.0), options)?;
        Ok(status.map(|status| match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Lost,
        }))
    }

    /// True if the process is a child of ours that has ended. Its status is left.
    pub(crate) fn can_be_reaped(self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.0), options), Ok(Some(_)))
    }

    /// Waits for a child that has been killed, and takes its status.
    pub(crate) fn reap_blocking(self) {
        // Any other error means that there is no child to wait for.
        let _ = retry_on_intr(|| waitid(WaitId::Pid(self.0), WaitIdOptions::EXITED));
    }
}

/// True if the child behind the descriptor has ended. It is left unreaped, so that its number, which is also its group's, cannot
/// be used again.
pub(crate) fn has_ended(process: impl AsFd) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that other code took the status: that is an end, too.
    !matches!(waitid(WaitId::PidFd(process.as_fd()), options), Ok(None))
}

/// Kills one process. Whether it could be signalled shows when it is waited for.
pub(crate) fn kill(process: impl AsFd) {
    let _ = pidfd_send_signal(process, Signal::KILL);
}

/// Waits until something can be read from the descriptor: for a process, until it has ended. False when the time is
/// over first.
pub(crate) fn wait_readable(descriptor: impl AsFd, limit: Duration) -> bool {
    wait_for(descriptor, PollFlags::IN, limit)
}

/// Waits until one of these is to be said of the descriptor. False when the time is over first.
fn wait_for(descriptor: impl AsFd, what: PollFlags, limit: Duration) -> bool {
    let mut fds = [PollFd::new(&descriptor, what)];
    let timeout = Timespec::try_from(limit).ok();
    // A signal that comes in between only makes the wait start again; these are rare and the limit is generous.
    loop {
        match poll(&mut fds, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) | Ok(0) => return false,
            Ok(_) => return true,
        }
    }
}

/// A file that has no name and takes no disk. No program that is started gets it unasked.
pub(crate) fn memory_file(name: &str) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// True if this user may execute the file.
pub(crate) fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

/// Makes orphans below this process its children, for the whole process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The group this process is in: 0 where that was made outside of our world of processes. A number to compare with, and
/// never to signal: signals go to a [`ProcessId`].
pub(crate) fn own_group() -> u32 {
    #[expect(unsafe_code, reason = "the safe wrapper takes the answer for a number above 0")]
    // SAFETY: it takes nothing, and cannot fail.
    let group = unsafe { libc::getpgrp() };
    group.unsigned_abs()
}

/// The session this process is in: one for each terminal. It is 0 where the session was made outside of our namespace of
/// processes, as in some containers. A number to compare with and to name things by, never to signal.
pub fn own_session() -> u32 {
    #[expect(unsafe_code, reason = "the safe wrapper takes the answer for a number above 0")]
    // SAFETY: it takes a number and asks for this process, for which it does not fail.
    let session = unsafe { libc::getsid(0) };
    session.unsigned_abs()
}
