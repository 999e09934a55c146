//! The supervisor's side of its keeper.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::{Errno, read, write};

use super::record::{READY, Record};
use super::{KeeperCommand, TOKEN_BYTES};
use crate::sys::{self, ProcessId};
use crate::{Identity, KeeperError};

/// How long a keeper may take to come up, or to end: it only has to be scheduled.
const LIMIT: Duration = Duration::from_secs(10);

/// A keeper that holds.
#[derive(Debug)]
pub(crate) struct Link {
    /// None once the keeper has been let go.
    pipe: Option<OwnedFd>,
    process: ProcessId,
    descriptor: OwnedFd,
}

impl Link {
    /// Starts a keeper and waits until it holds, which blocks for as long as a program takes to start.
    pub(crate) fn start(
        command: &KeeperCommand,
        token: &str,
        live: impl Iterator<Item = Identity>,
    ) -> Result<Self, KeeperError> {
        debug_assert_eq!(token.len(), TOKEN_BYTES);
        let path = || command.program.clone();
        let start = |source| KeeperError::Start { path: path(), source };
        let (stdin, pipe) = crate::pipe::to_child().map_err(start)?;
        let (stdout, answer) = crate::pipe::from_child().map_err(start)?;
        #[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
        let child = Command::new(&command.program)
            .args(&command.args)
            .env_clear()
            .current_dir("/")
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::null())
            .spawn()
            .map_err(start)?;
        let process = ProcessId::new(child.id()).expect("a child's number is above 1");
        let descriptor = match process.open() {
            Ok(descriptor) => descriptor,
            Err(error) => {
                // Without its pipe it ends by itself; it is not reaped, which is the least of what is missing then.
                return Err(start(error));
            }
        };
        let mut link = Self { pipe: Some(pipe), process, descriptor };
        if !is_ready(&answer) {
            sys::kill(&link.descriptor);
            return Err(KeeperError::Silent { path: path() });
        }
        link.write(token.as_bytes())?;
        live.map(Record::Add).try_for_each(|record| link.tell(record))?;
        Ok(link)
    }

    /// A group that is to be killed if we end.
    pub(crate) fn add(&mut self, group: Identity) -> Result<(), KeeperError> {
        self.tell(Record::Add(group))
    }

    /// A group that is gone.
    pub(crate) fn remove(&mut self, group: Identity) -> Result<(), KeeperError> {
        self.tell(Record::Remove(group))
    }

    /// The keeper's number, which is no child of anybody's run.
    pub(crate) fn pid(&self) -> u32 {
        self.process.get()
    }

    /// Goes without a word, as a killed supervisor does, and waits until the keeper has done its work.
    #[cfg(test)]
    pub(super) fn break_off(mut self) {
        self.pipe = None;
        assert!(sys::wait_readable(&self.descriptor, LIMIT));
    }

    fn tell(&mut self, record: Record) -> Result<(), KeeperError> {
        self.write(&record.to_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), KeeperError> {
        let Some(pipe) = &self.pipe else {
            return Err(KeeperError::Told { source: io::ErrorKind::BrokenPipe.into() });
        };
        loop {
            match write(pipe, bytes) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // The pipe takes four thousand records; a keeper that has not read them is stopped or starved. One that
                // cannot be told does not hold.
                Err(error) => {
                    self.pipe = None;
                    return Err(KeeperError::Told { source: error.into() });
                }
            }
        }
    }
}

/// Lets the keeper go, and waits until it is gone. One that had failed is killed.
impl Drop for Link {
    fn drop(&mut self) {
        let told = self.tell(Record::Done).is_ok();
        self.pipe = None;
        if !told || !sys::wait_readable(&self.descriptor, LIMIT) {
            sys::kill(&self.descriptor);
            sys::wait_readable(&self.descriptor, LIMIT);
        }
        // An error means that it was reaped by somebody who reaps everything.
        let _ = self.process.reap();
    }
}

/// Whether the keeper says what a keeper says, and nothing after it.
fn is_ready(answer: &OwnedFd) -> bool {
    let mut said = Vec::new();
    let mut block = [0; 64];
    while said.len() <= READY.len() && sys::wait_readable(answer, LIMIT) {
        match read(answer, &mut block) {
            Ok(0) => return said == READY,
            Ok(length) => said.extend_from_slice(&block[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return false,
        }
    }
    false
}
