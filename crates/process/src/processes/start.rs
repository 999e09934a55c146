//! Starting a program: its streams, its place among the living, and what was wrong where it does not start.

use std::io;
use std::os::fd::AsFd;
use std::pin::pin;

use tokio::io::Interest;

use super::{Inner, Notice, ProcessTable, Processes};
use crate::group::{Group, KnownGroup};
use crate::limits::{KillsBefore, goes_before_us};
use crate::sys::{self, Image, OpenFiles, ProcessId};
use crate::watch::watch;
use crate::{
    Child, Identity, KeeperError, Limits, MARK_VARIABLE, Program, ProgramError, StartError,
    capture, input,
};

impl Processes {
    /// Starts a program in a session and a group of its own. It must be called within a tokio runtime that has I/O and
    /// time, and blocks for the half millisecond that a start takes.
    ///
    /// When it answers, the keeper knows the group. Dropping the child kills it.
    ///
    /// # Errors
    /// Why it could not be started. Nothing of it is left then.
    pub fn spawn(&self, mut program: Program) -> Result<Child, StartError> {
        self.attempt(&mut program)
    }

    /// Like [`spawn`](Self::spawn). Where the system has no more descriptors, processes or memory, it waits until a child
    /// of these processes has ended, and tries again: one waiting start for each child that ends, in their order.
    ///
    /// Dropping the future gives the start up.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn). A lack of something is an error only where no child is left whose end could help.
    pub async fn spawn_when_possible(&self, mut program: Program) -> Result<Child, StartError> {
        let mut woken = false;
        loop {
            let mut ended = pin!(self.0.ended.notified());
            // From here on no end is missed.
            ended.as_mut().enable();
            match self.attempt(&mut program) {
                Err(error) if error.is_pressure() && self.0.has_children() => {
                    let error = error.to_string();
                    tracing::warn!(error, "start waits until another process has ended");
                    ended.await;
                    woken = true;
                }
                Err(error) => {
                    // Descriptors that were too few for this start may be enough for the next one.
                    if woken || error.is_pressure() {
                        self.0.ended.notify_one();
                    }
                    tracing::warn!(error = error.to_string(), "process not started");
                    return Err(error);
                }
                Ok(child) => return Ok(child),
            }
        }
    }

    /// Tries once. Where it fails, the program can be tried again.
    fn attempt(&self, program: &mut Program) -> Result<Child, StartError> {
        let Program { path, args, env, cwd, stdin, stdout, stderr, limits } = program;
        if !path.is_absolute() {
            return Err(ProgramError::NotAbsolute { path: path.clone() }.into());
        }
        let system = |source| StartError::System { path: path.clone(), source };
        let (stdin, input) = input::prepare(stdin.clone(), path)?;
        let (out_side, mut out_reader) = capture::prepare(stdout).map_err(system)?;
        let (err_side, mut err_reader) = capture::prepare(stderr).map_err(system)?;

        self.0.watch_keeper();
        self.0.enter_cgroup();
        let kills_before = KillsBefore::now();
        let starting = Starting::begin(&self.0);
        let mark = format!("{}.{};", self.0.token, starting.serial);
        env.retain(|(name, _)| name != MARK_VARIABLE);
        env.push((MARK_VARIABLE.into(), format!("{}{mark}", starting.mark_above()).into()));
        let stdio = [stdin.as_fd(), out_side.as_fd(), err_side.as_fd()];
        let image = Image { path, args, env, cwd, stdio };
        let process = sys::spawn(&image).map_err(|source| why(source, &image))?;
        let unclaimed = UnclaimedProcess(process);
        // Our copies of the child's sides must go, or its streams would never end. And where descriptors are scarce, they
        // make room for the one of the process.
        drop((stdin, out_side, err_side));
        if let Some(limit) = OpenFiles::before() {
            process.limit_open_files(limit);
        }
        goes_before_us(process);
        let bounded = self.0.bounded_group(process, limits.memory_bytes);
        // What the group bounds is not bounded twice.
        let memory_bytes = if bounded.is_some() { 0 } else { limits.memory_bytes };
        Limits { memory_bytes, ..*limits }.set(process, || sys::below(process.get()));
        let descriptor = process.open().map_err(system)?;
        let exit = watch(descriptor, Interest::READABLE).map_err(system)?;
        let start_time = sys::stat(process.get()).map_err(system)?.start_time;
        let identity = Identity { pid: process.get(), start_time };
        starting.enter(identity)?;
        // The caller holds it from here on.
        std::mem::forget(unclaimed);
        // Arguments and environment may hold secrets.
        tracing::debug!(pid = identity.pid, program = ?path.file_name().unwrap_or_default(), "process started");
        let group = Group::new(KnownGroup { inner: self.0.clone(), process, identity, mark }, exit);
        (out_reader.tap, err_reader.tap) = (stdout.tap.take(), stderr.tap.take());
        if limits.cpu_seconds > 0 {
            // From here on it is measured to its end.
            group.cpu.read();
        }
        let limits = *limits;
        let (stdout, stderr) = (out_reader, err_reader);
        Ok(Child { group, input, stdout, stderr, limits, bounded, kills_before })
    }
}

/// A child that may exist already, while it is not yet among the living.
struct Starting<'a> {
    inner: &'a Inner,
    serial: u64,
    /// The registrar's part of its mark.
    mark_above: Option<String>,
    entered: bool,
}

impl<'a> Starting<'a> {
    fn begin(inner: &'a Inner) -> Self {
        let registrar = inner.options.registrar.as_ref();
        let mark_above = registrar.and_then(|registrar| registrar.starting());
        let mut state = inner.state.lock();
        state.starting += 1;
        state.serial += 1;
        Self { inner, serial: state.serial, mark_above, entered: false }
    }

    /// The elements before our own in the mark of the child.
    fn mark_above(&self) -> &str {
        self.mark_above.as_deref().unwrap_or_else(|| self.inner.inherited_mark())
    }

    /// Enters the child among the living, and tells the party that ends it if we are killed.
    fn enter(mut self, group: Identity) -> Result<(), KeeperError> {
        // Set even where this fails: the program is ended then, and `not_started` must not be told.
        self.entered = true;
        if let Some(registrar) = &self.inner.options.registrar {
            registrar.started(group).map_err(|source| {
                registrar.ended(group);
                KeeperError::Told { source }
            })?;
        }
        let mut state = self.inner.state.lock();
        enter(self.inner, &mut state, group)?;
        state.live.insert(group.pid, group.start_time);
        Ok(())
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.inner.state.lock().starting -= 1;
        if let (Some(registrar), false) = (&self.inner.options.registrar, self.entered) {
            registrar.not_started();
        }
    }
}

/// Tells the keeper of a group. A keeper that has died is replaced, and told of all that live.
pub(super) fn enter(
    inner: &Inner,
    state: &mut ProcessTable,
    group: Identity,
) -> Result<(), KeeperError> {
    let Some(keeper) = &mut state.keeper else { return Ok(()) };
    if keeper.add(group).is_ok() {
        return Ok(());
    }
    let (pid, found) = (keeper.pid(), keeper.fault());
    inner.replace_keeper(state, Some(group))?;
    inner.notice(Notice::KeeperFailed { pid, found, error: None });
    Ok(())
}

/// A program that runs, and that no caller holds yet.
struct UnclaimedProcess(ProcessId);

impl Drop for UnclaimedProcess {
    fn drop(&mut self) {
        self.0.kill_group();
        self.0.reap_blocking();
    }
}

/// Finds the reason of a failed start. The system answers with the same numbers for the folder and the program.
fn why(source: io::Error, image: &Image<'_>) -> StartError {
    let path = image.path.to_owned();
    if source.kind() == io::ErrorKind::ArgumentListTooLong {
        let args = image.args.iter().map(|arg| arg.len() + 1);
        let env = image.env.iter().filter(|(name, _)| name != MARK_VARIABLE);
        let env = env.map(|(name, value)| name.len() + value.len() + 2);
        return StartError::TooLong { path, bytes: args.chain(env).sum() };
    }
    if let Err(source) = std::fs::read_dir(image.cwd).map(drop)
        && source.kind() != io::ErrorKind::PermissionDenied
    {
        return StartError::Folder { path: image.cwd.to_owned(), source };
    }
    match ProgramError::of(&path, &source) {
        Some(error) => error.into(),
        None => StartError::System { path, source },
    }
}
