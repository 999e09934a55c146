//! The supervisor's side of its keeper.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::{Errno, read};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use super::ledger::Ledger;
use super::{KeeperCommand, READY};
use crate::cgroup::Cgroup;
use crate::sys::{self, ProcessId};
use crate::{Identity, KeeperError};

/// The time in which a keeper has to come up, or to end: it only has to be scheduled.
const LIMIT: Duration = Duration::from_secs(10);

/// A keeper that holds.
#[derive(Debug)]
pub(crate) struct Link {
    ledger: Ledger,
    /// The connection; when it closes, the keeper does its work. None once it has been let go.
    line: Option<OwnedFd>,
    process: ProcessId,
    descriptor: OwnedFd,
}

impl Link {
    /// Starts a keeper and waits until it holds, which blocks for as long as a program takes to start.
    pub(crate) fn start(
        command: &KeeperCommand,
        token: &str,
        cgroup: Option<&Cgroup>,
        live: impl Iterator<Item = Identity>,
    ) -> Result<Self, KeeperError> {
        let start = |source| KeeperError::Start { path: command.program.clone(), source };
        let ledger = Ledger::new(token, cgroup.map(|cgroup| &*cgroup.path), live).map_err(start)?;
        let stdin = ledger.file.try_clone().map_err(start)?;
        let flags = SocketFlags::CLOEXEC;
        let (stdout, line) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|error| start(error.into()))?;
        let log = command.log.as_ref().map(|log| log.try_clone()).transpose().map_err(start)?;
        #[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
        let child = Command::new(&command.program)
            .args(&command.args)
            .env_clear()
            .current_dir("/")
            .stdin(stdin)
            .stdout(stdout)
            .stderr(log.map_or_else(Stdio::null, Stdio::from))
            .spawn()
            .map_err(start)?;
        let process = ProcessId::new(child.id()).expect("a child's number is above 1");
        // Where that fails it ends by itself, without its line; it is not reaped, which is the least of what is missing then.
        let descriptor = process.open().map_err(start)?;
        let ready = is_ready(&line);
        let link = Self { ledger, line: Some(line), process, descriptor };
        if !ready {
            sys::kill(&link.descriptor);
            return Err(KeeperError::Silent { path: command.program.clone() });
        }
        if let Some(cgroup) = cgroup {
            // Where it has to stay inside it ends together with those whom it kills, as the last thing that it does.
            let _ = cgroup.put_out(link.process);
        }
        tracing::debug!(keeper = link.pid(), "keeper started");
        Ok(link)
    }

    /// A group that is to be killed if we end. An error where there is no keeper any more.
    pub(crate) fn add(&mut self, group: Identity) -> Result<(), KeeperError> {
        if self.has_ended() {
            return Err(KeeperError::Told { source: io::ErrorKind::BrokenPipe.into() });
        }
        self.ledger.enter(group).map_err(|source| KeeperError::Told { source })
    }

    /// A group that is gone.
    pub(crate) fn remove(&mut self, group: Identity) -> Result<(), KeeperError> {
        self.ledger.strike(group).map_err(|source| KeeperError::Told { source })
    }

    /// Asks for a sign of life. False where it cannot be asked.
    pub(crate) fn ask(&self) -> bool {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        self.line.as_ref().is_some_and(|line| send(line, b"?", flags).is_ok())
    }

    /// True if the keeper has given a sign of life since the last look.
    pub(crate) fn has_answered(&self) -> bool {
        let Some(line) = &self.line else { return false };
        let mut block = [0; 64];
        let mut answered = false;
        while let Ok((_, 1..)) = recv(line, &mut block, RecvFlags::DONTWAIT) {
            answered = true;
        }
        answered
    }

    /// True if the keeper has ended.
    pub(crate) fn has_ended(&self) -> bool {
        sys::has_ended(&self.descriptor)
    }

    /// True if something has stopped the keeper.
    pub(crate) fn is_stopped(&self) -> bool {
        sys::stat(self.pid()).is_ok_and(|found| found.stopped)
    }

    /// Returns a descriptor that becomes readable when the keeper has ended.
    pub(crate) fn end(&self) -> io::Result<OwnedFd> {
        self.descriptor.try_clone()
    }

    /// Ends one that does not hear.
    pub(crate) fn kill(self) {
        sys::kill(&self.descriptor);
    }

    /// The keeper's number; the keeper belongs to no run.
    pub(crate) fn pid(&self) -> u32 {
        self.process.get()
    }

    /// Goes without a word, as a killed supervisor does, and waits until the keeper has done its work.
    #[cfg(test)]
    pub(super) fn break_off(mut self) {
        self.line = None;
        assert!(sys::wait_readable(&self.descriptor, LIMIT));
    }
}

/// Lets the keeper go, and waits until it is gone. One that had failed is killed.
impl Drop for Link {
    fn drop(&mut self) {
        let told = self.ledger.discard().is_ok();
        self.line = None;
        if !told || !sys::wait_readable(&self.descriptor, LIMIT) {
            sys::kill(&self.descriptor);
            sys::wait_readable(&self.descriptor, LIMIT);
        }
        // An error means that it was reaped by code that reaps everything.
        let _ = self.process.reap();
    }
}

/// True if the keeper says that it is ready, and nothing after it.
fn is_ready(answer: &OwnedFd) -> bool {
    let mut said = Vec::new();
    let mut block = [0; 64];
    while said.len() < READY.len() && sys::wait_readable(answer, LIMIT) {
        match read(answer, &mut block) {
            Ok(0) => return false,
            Ok(length) => said.extend_from_slice(&block[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return false,
        }
    }
    said == READY
}
