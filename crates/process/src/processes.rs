//! The one place that starts processes, and knows which of them live.

mod guests;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::Interest;

use crate::group::Group;
use crate::keeper::{Link, TOKEN_BYTES};
use crate::reaper::Reaper;
use crate::sys::{self, ChildList, ProcessId};
use crate::watch::watch;
use crate::{
    Adopted, Child, Exit, Identity, KeeperCommand, KeeperError, Landlord, ProcessesError, Program,
    ProgramError, StartError, capture, input,
};

/// The variable by which processes below us are known, wherever in the tree of processes they went. Each supervisor
/// adds an element to the value it was started with itself, so that one outside finds what is below one inside.
pub const MARK_VARIABLE: &str = "OFFSHOOT_SUPERVISOR";

/// How children are held.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who kills them if this process is killed. Without one, they live on then.
    pub keeper: Option<KeeperCommand>,
    /// Whether orphans below this process become its children, so that those which leave their group are found and
    /// ended with their run.
    ///
    /// This is a property of the whole process: orphans that nobody waits for stay zombies, so everything that starts
    /// processes in this one must be this crate. Children in this process's own group are left alone.
    pub subreaper: bool,
    /// The value of [`MARK_VARIABLE`] in this process's own environment, where it has one.
    pub inherited_mark: Option<String>,
    /// How long a killed process may take to end before it is declared lost. It does when the kernel is stuck in a call
    /// for it, a dead network disk for instance, or when it is another user's.
    pub end_limit: Duration,
    /// Who is told of each child, where this is a guest in somebody else's process: in a plugin. Such a copy has neither a
    /// keeper nor orphans of its own.
    pub landlord: Option<Arc<dyn Landlord>>,
}

impl Default for Options {
    fn default() -> Self {
        let end_limit = Duration::from_secs(10);
        Self { keeper: None, subreaper: false, inherited_mark: None, end_limit, landlord: None }
    }
}

/// Starts children and holds them. Cheap to clone. When the last clone and the last child are gone, so is the keeper.
#[derive(Clone, Debug)]
pub struct Processes(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) end_limit: Duration,
    keeper: Option<KeeperCommand>,
    token: String,
    /// What stands before our own element in each mark.
    inherited_mark: String,
    /// Where orphans come to us.
    children: Option<ChildList>,
    pub(crate) reaper: Reaper,
    landlord: Option<Arc<dyn Landlord>>,
    /// Whether orphans come to the landlord, which is to say, to this process.
    landlord_adopts: bool,
    /// Shared rather than sent to a task of its own, because reaping one child, listing all and telling the keeper must
    /// not overlap, and each takes a few microseconds. Only replacing a dead keeper takes longer.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Leaders that have not been reaped, with their start times.
    live: HashMap<u32, u64>,
    /// Children that may exist already and are not yet among `live`.
    starting: usize,
    /// Children so far, for their marks.
    serial: u64,
    /// Children that are nobody's program and were found to belong to no run. They are not looked at again. True for
    /// those which nobody else will reap.
    strangers: HashMap<u32, bool>,
    /// Leaders that other code in this process has started, with their start times.
    guests: HashMap<u32, u64>,
    keeper: Option<Link>,
}

/// Children that are nobody's program: orphans, and what other code in this process has started.
#[derive(Debug)]
pub(crate) struct Orphans {
    pub(crate) pids: Vec<u32>,
    /// Whether none of them can be a program that is just being started.
    pub(crate) quiet: bool,
}

impl Processes {
    /// What the marks of its children carry.
    #[cfg(test)]
    pub(crate) fn token(&self) -> &str {
        &self.0.token
    }

    /// Gets ready to hold children. Blocks for the few milliseconds that the keeper takes to start.
    pub fn start(options: Options) -> Result<Self, ProcessesError> {
        let Options { keeper, subreaper, inherited_mark, end_limit, landlord } = options;
        let system = |what| move |source| ProcessesError::System { what, source };
        if !sys::ignores_broken_pipes().map_err(system("signals cannot be read from /proc"))? {
            return Err(ProcessesError::BrokenPipe);
        }
        let token = new_token().map_err(system("no random numbers to be had"))?;
        let children = match subreaper {
            true => {
                let list = ChildList::open().map_err(system("the kernel lists no children"))?;
                sys::become_subreaper().map_err(system("orphans cannot be adopted"))?;
                Some(list)
            }
            false => None,
        };
        let link = keeper.as_ref().map(|keeper| Link::start(keeper, &token, [].into_iter()));
        let state = State { keeper: link.transpose()?, ..State::default() };
        let inherited_mark = inherited_mark.unwrap_or_default();
        let (reaper, state) = (Reaper::default(), Mutex::new(state));
        Ok(Self(Arc::new(Inner {
            end_limit,
            keeper,
            token,
            inherited_mark,
            children,
            reaper,
            landlord_adopts: landlord.as_ref().is_some_and(|landlord| landlord.orphans().is_some()),
            landlord,
            state,
        })))
    }

    /// Starts a program in a group of its own. It must be called within a tokio runtime that has I/O and time, and blocks
    /// for the half millisecond that a start takes.
    ///
    /// When it answers, the keeper knows the group. Whoever drops the child kills it.
    pub fn spawn(&self, program: Program) -> Result<Child, StartError> {
        let Program { path, args, env, cwd, stdin, stdout, stderr } = program;
        if !path.is_absolute() {
            return Err(ProgramError::NotAbsolute { path }.into());
        }
        let system = |source| StartError::System { path: path.clone(), source };
        let (stdin, input) = input::prepare(stdin, &path)?;
        let (stdout, out_reader) = capture::prepare(stdout).map_err(system)?;
        let (stderr, err_reader) = capture::prepare(stderr).map_err(system)?;

        let starting = Starting::begin(&self.0);
        let mark = format!("{}.{};", self.0.token, starting.serial);
        #[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
        let mut command = Command::new(&path);
        // All of this keeps to what `posix_spawn` can do. A `pre_exec` would make it a fork, which copies page tables:
        // 20 ms instead of 0.4 ms for a supervisor of 400 MiB.
        command
            .args(&args)
            .env_clear()
            .envs(env.iter().map(|(name, value)| (name, value)))
            .env(MARK_VARIABLE, format!("{}{mark}", starting.mark_above()))
            .current_dir(&cwd)
            .process_group(0)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        let child = command.spawn().map_err(|source| why(source, &path, &cwd, &args, &env))?;
        // Our copies of the child's sides must go, or its streams would never end.
        drop(command);
        let process = ProcessId::new(child.id()).expect("a child's number is above 1");
        let unborn = Unborn(Some(process));
        let descriptor = process.open().map_err(system)?;
        let exit = watch(descriptor, Interest::READABLE).map_err(system)?;
        let start_time = sys::stat(process.get()).map_err(system)?.start_time;
        let identity = Identity { pid: process.get(), start_time };
        starting.enter(identity)?;
        unborn.held();
        let group = Group::new(Arc::clone(&self.0), process, identity, mark, exit);
        Ok(Child { group, input, stdout: out_reader, stderr: err_reader })
    }

    /// The children that have not been waited for to the end.
    pub fn live(&self) -> Vec<Identity> {
        let state = self.0.state();
        state.live.iter().map(|(&pid, &start_time)| Identity { pid, start_time }).collect()
    }
}

impl Inner {
    /// Whether orphans come to us.
    pub(crate) fn adopts(&self) -> bool {
        self.children.is_some() || self.landlord_adopts
    }

    /// Ends the account of a leader that has ended, unless there are orphans to be looked at first. The leader is
    /// reaped last: until then its number, which is its group's, belongs to nobody else.
    pub(crate) fn settle(&self, leader: Identity) -> Option<Exit> {
        let mut state = self.state();
        let nothing_else = self.list(&mut state).is_ok_and(|orphans| orphans.pids.is_empty());
        nothing_else.then(|| self.reap(&mut state, leader))
    }

    /// Ends the account of a leader that has ended.
    pub(crate) fn reap_leader(&self, leader: Identity) -> Exit {
        self.reap(&mut self.state(), leader)
    }

    /// Reaps one orphan. Nobody may list children meanwhile: the kernel's list can leave somebody out when it becomes
    /// shorter while it is read.
    pub(crate) fn reap_orphan(&self, orphan: ProcessId) -> bool {
        let state = self.state();
        !state.live.contains_key(&orphan.get()) && matches!(orphan.reap(), Ok(Some(_)))
    }

    /// Children that are nobody's program, except known strangers.
    pub(crate) fn orphans(&self) -> io::Result<Orphans> {
        self.list(&mut self.state())
    }

    /// A child that is nobody's program belongs to no run.
    pub(crate) fn leave(&self, stranger: ProcessId, reap: bool) {
        self.state().strangers.insert(stranger.get(), reap);
    }

    fn list(&self, state: &mut State) -> io::Result<Orphans> {
        if let Some(landlord) = self.landlord.as_ref().filter(|_| self.landlord_adopts) {
            return Ok(Self::list_of(&**landlord, state));
        }
        let State { live, starting, strangers, keeper, .. } = state;
        let keeper = keeper.as_ref().map(Link::pid);
        let (mut pids, mut present) = (Vec::new(), 0);
        if let Some(children) = &self.children {
            children.for_each(|pid| match strangers.contains_key(&pid) {
                true => present += 1,
                false if live.contains_key(&pid) || keeper == Some(pid) => {}
                false => pids.push(pid),
            })?;
            // One that is gone may have its number given to somebody else.
            if present < strangers.len() {
                let mut children_now = HashSet::new();
                children.for_each(|pid| {
                    children_now.insert(pid);
                })?;
                strangers.retain(|pid, _| children_now.contains(pid));
            }
            let ended = |pid| matches!(ProcessId::new(pid).map(ProcessId::reap), Some(Ok(Some(_))));
            strangers.retain(|&pid, reap| !(*reap && !live.contains_key(&pid) && ended(pid)));
        }
        Ok(Orphans { pids, quiet: *starting == 0 })
    }

    /// As [`Self::list`], of a landlord, who knows which children are whose program. It reaps what is nobody's.
    fn list_of(landlord: &dyn Landlord, state: &mut State) -> Orphans {
        let Some(Adopted { mut pids, quiet }) = landlord.orphans() else {
            return Orphans { pids: Vec::new(), quiet: true };
        };
        state.strangers.retain(|pid, _| pids.contains(pid));
        pids.retain(|pid| !state.strangers.contains_key(pid) && !state.live.contains_key(pid));
        Orphans { pids, quiet }
    }

    fn reap(&self, state: &mut State, leader: Identity) -> Exit {
        // Somebody who was here before has taken the status with him.
        if state.live.get(&leader.pid) != Some(&leader.start_time) {
            return Exit::Lost;
        }
        // First the keeper forgets the number, then it may be used again. A keeper that does not hear is replaced at
        // the next start.
        if let Some(keeper) = &mut state.keeper {
            let _ = keeper.remove(leader);
        }
        if let Some(landlord) = &self.landlord {
            landlord.ended(leader);
        }
        state.live.remove(&leader.pid);
        let leader = ProcessId::new(leader.pid).expect("it has been signalled before");
        leader.reap().ok().flatten().unwrap_or(Exit::Lost)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the state")
    }
}

/// A child that may exist already, while it is not yet among the living.
struct Starting<'a> {
    inner: &'a Inner,
    serial: u64,
    /// The landlord's part of its mark.
    mark_above: Option<String>,
    entered: bool,
}

impl<'a> Starting<'a> {
    fn begin(inner: &'a Inner) -> Self {
        let mark_above = inner.landlord.as_ref().and_then(|landlord| landlord.starting());
        let mut state = inner.state();
        state.starting += 1;
        state.serial += 1;
        Self { inner, serial: state.serial, mark_above, entered: false }
    }

    /// What stands before our own element in its mark.
    fn mark_above(&self) -> &str {
        self.mark_above.as_deref().unwrap_or(&self.inner.inherited_mark)
    }

    /// Now it is, and whoever ends it if we are killed knows.
    fn enter(mut self, group: Identity) -> Result<(), KeeperError> {
        // Said even where it fails: then it is ended, and that is told by nobody.
        self.entered = true;
        if let Some(landlord) = &self.inner.landlord {
            landlord.started(group).map_err(|source| {
                landlord.ended(group);
                KeeperError::Told { source }
            })?;
        }
        let mut state = self.inner.state();
        enter(self.inner, &mut state, group)?;
        state.live.insert(group.pid, group.start_time);
        Ok(())
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.inner.state().starting -= 1;
        if let (Some(landlord), false) = (&self.inner.landlord, self.entered) {
            landlord.not_started();
        }
    }
}

/// Tells the keeper of a group. A keeper that has died is replaced, and told of all that live.
fn enter(inner: &Inner, state: &mut State, group: Identity) -> Result<(), KeeperError> {
    let told = match &mut state.keeper {
        Some(keeper) => keeper.add(group),
        None if inner.keeper.is_some() => {
            Err(KeeperError::Told { source: io::ErrorKind::BrokenPipe.into() })
        }
        None => Ok(()),
    };
    if let (Err(_), Some(command)) = (told, &inner.keeper) {
        state.keeper = None;
        let live = state.live.iter().chain(&state.guests);
        let live = live.map(|(&pid, &start_time)| Identity { pid, start_time });
        let link = Link::start(command, &inner.token, live.chain([group]))?;
        state.keeper = Some(link);
    }
    Ok(())
}

/// A program that runs, and that nobody holds yet.
struct Unborn(Option<ProcessId>);

impl Unborn {
    fn held(mut self) {
        self.0 = None;
    }
}

impl Drop for Unborn {
    fn drop(&mut self) {
        if let Some(process) = self.0 {
            process.kill_group();
            process.reap_blocking();
        }
    }
}

/// 16 random bytes in hexadecimal.
fn new_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES / 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a failed start was about. The system answers with the same numbers for the folder and the program.
fn why(
    source: io::Error,
    path: &std::path::Path,
    cwd: &std::path::Path,
    args: &[std::ffi::OsString],
    env: &[(std::ffi::OsString, std::ffi::OsString)],
) -> StartError {
    let path = path.to_owned();
    if source.kind() == io::ErrorKind::ArgumentListTooLong {
        let args = args.iter().map(|arg| arg.len() + 1);
        let env = env.iter().map(|(name, value)| name.len() + value.len() + 2);
        return StartError::TooLong { path, bytes: args.chain(env).sum() };
    }
    if let Err(source) = std::fs::read_dir(cwd).map(drop)
        && source.kind() != io::ErrorKind::PermissionDenied
    {
        return StartError::Folder { path: cwd.to_owned(), source };
    }
    match ProgramError::of(&path, &source) {
        Some(error) => error.into(),
        None => StartError::System { path, source },
    }
}
