//! Whether a process is gone, without looking again and again.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process that is watched from a moment at which its number certainly meant it.
#[derive(Debug)]
pub struct Watched(Option<OwnedFd>);

impl Watched {
    /// Watches a process; one that has already been reaped counts as gone.
    ///
    /// # Panics
    ///
    /// Where this is no number of a process.
    pub fn new(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
        match pidfd_open(pid.expect("a number of a process"), PidfdFlags::empty()) {
            Ok(descriptor) => Self(Some(descriptor)),
            Err(Errno::SRCH) => Self(None),
            Err(error) => panic!("a process cannot be watched: {error}"),
        }
    }

    /// Waits until it has ended. A zombie has: whose child it was may take its time. False when the limit comes first.
    pub fn is_gone_within(&self, limit: Duration) -> bool {
        let Some(descriptor) = &self.0 else { return true };
        let mut fds = [PollFd::new(descriptor, PollFlags::IN)];
        let limit = Timespec::try_from(limit).expect("a limit of some seconds");
        retry_on_intr(|| poll(&mut fds, Some(&limit))).expect("a process can be watched") == 1
    }

    /// Whether it has ended by now.
    pub fn is_gone(&self) -> bool {
        self.is_gone_within(Duration::ZERO)
    }
}
