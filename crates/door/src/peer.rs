//! The process at the other end of a connection, as the kernel tells it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerPidfd;
use offshoot_model::{BootId, ProcessIdentity};
use offshoot_process::{boot_id, groups_of_others, stat};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::UnixStream;

use crate::lineage::Lineage;

/// The process that opened a connection, by the kernel's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user id.
    pub uid: u32,
    /// The process id; none where it lives in a process namespace that is not seen from here. It may have ended since, or given
    /// the connection to others: what was descended from a run stays that run's.
    pub pid: Option<u32>,
}

impl Peer {
    /// Asks the kernel (`SO_PEERCRED`).
    pub(crate) fn of(stream: &UnixStream) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Ok(Self { uid: credentials.uid(), pid })
    }
}

/// The process at the other end and its parents, as they are now. None where it is gone, or cannot be seen.
///
/// A number alone may belong to another process by now. The kernel gives a descriptor of the process that opened the
/// connection (`SO_PEERPIDFD`): while that has the number, after everything was read, it had it all the time. Before Linux 6.5
/// there is none, and the number is believed.
pub(crate) fn lineage_of(stream: &UnixStream, peer: Peer) -> Option<Lineage> {
    let pid = peer.pid?;
    match getsockopt(stream, PeerPidfd) {
        Ok(process) => lineage(pid).filter(|_| number(&process) == Some(pid)),
        Err(Errno::ENOPROTOOPT) => lineage(pid),
        // The process has ended.
        Err(_) => None,
    }
}

/// True if the process that listens at the other end has ended. Others may hold its socket still. Before Linux 6.5 one that was not
/// waited for counts as alive.
pub(crate) fn listener_has_ended(stream: &UnixStream) -> bool {
    match getsockopt(stream, PeerPidfd) {
        // A descriptor of a process can be read once it has ended.
        Ok(process) => {
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            poll(&mut ended, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        }
        Err(Errno::ENOPROTOOPT) => {
            let pid = Peer::of(stream).ok().and_then(|peer| peer.pid);
            pid.is_some_and(|pid| process_identity(pid).is_none())
        }
        // The process has ended, and was waited for.
        Err(Errno::ESRCH | Errno::ENODATA | Errno::EINVAL) => true,
        Err(_) => false,
    }
}

/// The number of the process behind a descriptor; none where it has ended and no process can be mistaken for it any more.
fn number(process: &OwnedFd) -> Option<u32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_fd().as_raw_fd()));
    let info = info.ok()?;
    let number = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    // Of one that has ended it is -1, of one that is not seen from here 0.
    number.trim().parse().ok().filter(|number| *number > 0)
}

/// A process and its parents, from `/proc`.
pub(crate) fn lineage(pid: u32) -> Option<Lineage> {
    Lineage::walk(pid, |pid| stat(pid).ok())
}

/// Returns this process and its parents.
pub(crate) fn own_lineage() -> Option<Lineage> {
    lineage(std::process::id())
}

/// The nearest parent of this process that was started as a supervisor. The registry is that of a user id, which an agent may
/// change, as it may change the registry; with which words its parents were started, it may not.
pub fn supervisor_above_by_name() -> Option<ProcessIdentity> {
    supervisor_by_name(&own_lineage()?)
}

/// The nearest parent of a process that was started as a supervisor.
pub(crate) fn supervisor_by_name(lineage: &Lineage) -> Option<ProcessIdentity> {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::file_name);
    let is_supervisor = |process: &&ProcessIdentity| {
        let mut line = Vec::new();
        let file = File::open(format!("/proc/{}/cmdline", process.pid)).ok();
        // Words further behind decide nothing.
        file.is_some_and(|file| file.take(64 * 1024).read_to_end(&mut line).is_ok())
            && opens_a_tree(&line, own)
    };
    lineage.parents().iter().find(is_supervisor).copied()
}

/// True if these words are those of a command that opens a tree.
fn opens_a_tree(line: &[u8], own: Option<&OsStr>) -> bool {
    let mut words = line.split(|byte| *byte == 0);
    let name = words.next().map(|word| Path::new(OsStr::from_bytes(word)));
    let name = name.and_then(Path::file_name);
    let is_ours = name.is_some() && (name == own || name == Some(OsStr::new("offshoot")));
    is_ours && words.any(|word| [&b"run"[..], b"map", b"fanout", b"resume", b"mcp"].contains(&word))
}

/// True if a process is in the control group of a supervisor, other than this process, in which this process is not: then it was
/// started below that one, whatever its parents say. The name of such a group has the number of its supervisor in it.
pub(crate) fn is_in_group_of_another(pid: u32) -> bool {
    let found = groups_of_others(pid);
    let own = || groups_of_others(std::process::id());
    !found.is_empty()
        && (pid == std::process::id() || !found.iter().all(|group| own().contains(group)))
}

/// True if a process below this one is in the control group of a supervisor that is below this one too.
pub(crate) fn is_in_group_below(pid: u32) -> bool {
    let (own, above) = (std::process::id().to_string(), groups_of_others(std::process::id()));
    // The name of a group is `offshoot-WORLD-PID-START`.
    let is_own = |group: &String| group.split('-').nth(2) == Some(&*own);
    groups_of_others(pid).iter().any(|group| !is_own(group) && !above.contains(group))
}

/// The boot of this machine: a file in the registry may be of an earlier one.
pub(crate) fn boot() -> Option<BootId> {
    boot_id().map(BootId::from_u128)
}

/// Names a process for as long as this machine runs; none where it is gone.
///
/// ```
/// let here = offshoot_door::process_identity(std::process::id()).expect("the process is gone");
/// assert_eq!(here.pid, std::process::id());
/// ```
pub fn process_identity(pid: u32) -> Option<ProcessIdentity> {
    stat(pid).ok().map(|found| ProcessIdentity::new(pid, found.start_time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_has_the_number_of_its_process_until_that_is_gone() {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        #[expect(clippy::disallowed_methods, reason = "a child of a test, which ends with it")]
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        assert_eq!(number(&process), Some(child.id()));
        child.wait().unwrap();
        assert_eq!(number(&process), None);
    }

    #[test]
    fn a_supervisor_is_known_by_the_words_that_started_it() {
        let check = |words: &[&str], expected: bool| {
            let line = words.join("\0");
            assert_eq!(
                opens_a_tree(line.as_bytes(), Some(OsStr::new("own"))),
                expected,
                "{words:?}"
            );
        };
        check(&["/usr/bin/offshoot", "-q", "run", "x"], true);
        check(&["own", "mcp"], true);
        check(&["offshoot", "show", "x"], false);
        check(&["sh", "offshoot", "run"], false);
        check(&["run"], false);
        check(&[], false);
    }

    #[test]
    fn this_process_knows_its_parents() {
        let own = own_lineage().expect("the lineage of this process cannot be read");
        assert_eq!(own.process(), process_identity(std::process::id()).unwrap());
        assert_eq!(own.parents()[0].pid, std::os::unix::process::parent_id());
        assert_eq!(process_identity(0), None);
    }
}
