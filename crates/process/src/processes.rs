//! The one place that starts processes, and knows which of them live.

mod guests;
mod heartbeat;
mod notice;
mod orphans;
mod start;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::cgroup::{BoundedGroup, Cgroup};
use crate::keeper::{Link, TOKEN_BYTES};
use crate::reaper::Reaper;
use crate::sys::{self, ChildList, OpenFiles, ProcessId};
use crate::{Exit, Identity, KeeperCommand, ProcessRegistrar, ProcessesError, remains};
pub use notice::{KeeperFault, Notice};
pub(crate) use orphans::HeldStray;

/// The variable by which processes below us are known, wherever in the tree of processes they went. Each supervisor
/// adds an element to the value it was started with itself, so that one outside finds what is below one inside.
pub const MARK_VARIABLE: &str = "OFFSHOOT_SUPERVISOR";

/// Descriptors that a child takes in this process while it lives: its process, three streams, and two connections of it
/// to the service that answers its requests.
const FILES_PER_CHILD: u64 = 6;

/// Descriptors for everything else: databases, files that are written, the other sides of streams during a start.
const SPARE_FILES: u64 = 64;

/// The options for holding children.
#[derive(Clone, Debug)]
pub struct Options {
    /// The keeper, which kills them if this process is killed. Without one, they live on then.
    pub keeper: Option<KeeperCommand>,
    /// True if orphans below this process become its children, so that those which leave their group are found and ended: with
    /// their run where their session or their mark names it, otherwise with the last run that lives.
    ///
    /// Setting it declares that nothing but this crate starts processes in this process, for it is a property of the whole
    /// process: what other code starts in a session of its own, and what that leaves behind, is ended like any stray.
    /// Children in this process's own session are left alone.
    ///
    /// Together with a keeper it also moves this process into a control group of its own, where it may make one: then what it
    /// has started is ended with it in any case. It goes back to where it was when its last `Processes` is gone.
    pub subreaper: bool,
    /// True if programs may get bounds of memory: where this process is in a control group of its own and the computer permits it, such a
    /// program gets a group within that, and else a bound of its address space.
    pub bounds_memory: bool,
    /// The value of [`MARK_VARIABLE`] in this process's own environment, where it has one.
    pub inherited_mark: Option<String>,
    /// The interval at which the keeper is asked for a sign of life. A keeper that has ended is replaced at once. A keeper that
    /// gives no sign within ten seconds, or within this time where it is shorter, is replaced. The keeper is asked in the tokio
    /// runtime in which the first program was started.
    pub keeper_heartbeat: Duration,
    /// Receives a [`Notice`] of each event that concerns no child alone.
    // No bound: a notice is rare, and worth more than the memory that it takes.
    pub notices: Option<mpsc::UnboundedSender<Notice>>,
    /// The time in which a killed process has to end before it is declared lost. It is when the kernel is stuck in a call for it,
    /// a dead network disk for instance, or when it is another user's.
    pub end_limit: Duration,
    /// The registrar that is told of each child, where this is a guest in the process of another program: in a plugin. Such a
    /// copy has neither a keeper nor orphans of its own.
    pub registrar: Option<Arc<dyn ProcessRegistrar>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keeper: None,
            keeper_heartbeat: Duration::from_secs(60),
            notices: None,
            subreaper: false,
            bounds_memory: false,
            inherited_mark: None,
            end_limit: Duration::from_secs(10),
            registrar: None,
        }
    }
}

/// Starts children and holds them. Cheap to clone. When the last clone and the last child are gone, so is the keeper.
#[derive(Clone, Debug)]
pub struct Processes(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: Options,
    /// True once the task that asks the keeper for signs of life has been started.
    keeper_is_asked: AtomicBool,
    token: String,
    /// The list of our children, where orphans come to us.
    children: Option<ChildList>,
    pub(crate) reaper: Reaper,
    /// A child has ended: what it had is free for a start that waits.
    ended: Notify,
    /// True if orphans come to the registrar, which is to say, to this process.
    registrar_adopts: bool,
    /// Before the state, whose keeper ends what is in it if we cannot.
    cgroup: Option<Arc<Cgroup>>,
    /// Shared rather than sent to a task of its own, because reaping one child, listing all and telling the keeper must
    /// not overlap, and each takes a few microseconds. Only replacing a dead keeper takes longer.
    state: Mutex<ProcessTable>,
}

#[derive(Debug, Default)]
struct ProcessTable {
    /// Leaders that have not been reaped, with their start times.
    live: HashMap<u32, u64>,
    /// Children that may exist already and are not yet among `live`.
    starting: usize,
    /// Children so far, for their marks.
    serial: u64,
    /// CPU time of orphans that were reaped while the leader of their session lived, in ticks, by that leader.
    reaped: HashMap<u32, u64>,
    /// Children that are no program of ours and were found to belong to no run. They are not looked at again. True for
    /// those which no other code will reap.
    strangers: HashMap<u32, bool>,
    /// Leaders that other code in this process has started, with their start times.
    guests: HashMap<u32, u64>,
    /// The strangers or orphans that the keeper is to end with the groups, with their start times.
    strays: HashMap<u32, u64>,
    keeper: Option<Link>,
}

/// Makes room for so many children at once, and answers for how many there is room under the limit of open files: each
/// takes a few descriptors, and so do the connections of agents that ask for something.
///
/// Where it takes more than the soft limit allows, that is raised to the hard limit, for the whole process. Children
/// get the old limit back, right after their start: some programs depend on it.
pub fn make_room(wanted: u32) -> u32 {
    let room = |open_files: OpenFiles| {
        let room = open_files.left().saturating_sub(SPARE_FILES) / FILES_PER_CHILD;
        u32::try_from(room).unwrap_or(u32::MAX).max(1)
    };
    let found = room(OpenFiles::now());
    if found >= wanted { found } else { room(OpenFiles::raise()) }
}

impl Processes {
    /// Returns the token that the marks of its children carry.
    #[cfg(test)]
    pub(crate) fn token(&self) -> &str {
        &self.0.token
    }

    /// Gets ready to hold children. Blocks for the few milliseconds that the keeper takes to start.
    pub fn start(options: Options) -> Result<Self, ProcessesError> {
        let system = |what| move |source| ProcessesError::System { what, source };
        if !sys::ignores_broken_pipes().map_err(system("signals cannot be read from /proc"))? {
            return Err(ProcessesError::BrokenPipe);
        }
        let token = new_token().map_err(system("no random numbers to be had"))?;
        let children = match options.subreaper {
            true => {
                let list = ChildList::open().map_err(system("the kernel lists no children"))?;
                sys::become_subreaper().map_err(system("orphans cannot be adopted"))?;
                Some(list)
            }
            false => None,
        };
        let keeper = options.keeper.as_ref();
        let cgroup = keeper
            .filter(|_| options.subreaper)
            .and_then(|_| Cgroup::of_this_process(options.bounds_memory));
        let link =
            keeper.map(|keeper| Link::start(keeper, &token, cgroup.as_deref(), [].into_iter()));
        let link = link.transpose()?;
        // Not before there is a keeper, and it is outside.
        cgroup.iter().for_each(|cgroup| cgroup.begin_to_enter());
        let registrar = options.registrar.as_ref();
        Ok(Self(Arc::new(Inner {
            keeper_is_asked: AtomicBool::new(false),
            token,
            children,
            reaper: Reaper::default(),
            ended: Notify::new(),
            registrar_adopts: registrar.is_some_and(|registrar| registrar.orphans().is_some()),
            cgroup,
            state: Mutex::new(ProcessTable { keeper: link, ..ProcessTable::default() }),
            options,
        })))
    }

    /// The children that have not been waited for to the end.
    pub fn live(&self) -> Vec<Identity> {
        let state = self.0.state.lock();
        state.live.iter().map(|(&pid, &start_time)| Identity { pid, start_time }).collect()
    }
}

impl Inner {
    /// True if orphans come to us.
    pub(crate) fn adopts(&self) -> bool {
        self.children.is_some() || self.registrar_adopts
    }

    /// The text before our own element in each mark.
    fn inherited_mark(&self) -> &str {
        self.options.inherited_mark.as_deref().unwrap_or_default()
    }

    /// Ends the account of a leader that has ended, unless there are orphans to be looked at first. The leader is
    /// reaped last: until then its number, which is its group's, belongs to no other process.
    pub(crate) fn settle(&self, leader: Identity) -> Option<Exit> {
        let mut state = self.state.lock();
        let nothing_else = self.list(&mut state).is_ok_and(|orphans| orphans.pids.is_empty());
        // Processes that belong to no run are ended with the last run.
        let leaves_strays = self.children.is_some()
            && state.is_last(leader)
            && state.strangers.values().any(|reap| *reap);
        (nothing_else && !leaves_strays).then(|| self.reap(&mut state, leader))
    }

    /// Ends the account of a leader that has ended.
    pub(crate) fn reap_leader(&self, leader: Identity) -> Exit {
        self.reap(&mut self.state.lock(), leader)
    }

    fn reap(&self, state: &mut ProcessTable, leader: Identity) -> Exit {
        // Other code has taken the status already.
        if state.live.get(&leader.pid) != Some(&leader.start_time) {
            return Exit::Lost;
        }
        // First the keeper forgets the number, then it may be used again. A keeper that does not hear is replaced at
        // the next start.
        if let Some(keeper) = &mut state.keeper {
            let _ = keeper.remove(leader);
        }
        if let Some(registrar) = &self.options.registrar {
            registrar.ended(leader);
        }
        state.live.remove(&leader.pid);
        state.reaped.remove(&leader.pid);
        let leader = ProcessId::new(leader.pid).expect("it has been signalled before");
        let exit = leader.reap().ok().flatten().unwrap_or(Exit::Lost);
        self.ended.notify_one();
        exit
    }

    /// True if the session is that of a program of ours that has not been reaped.
    pub(crate) fn leads(&self, session: u32) -> bool {
        self.state.lock().live.contains_key(&session)
    }

    /// True if a process carries a mark of ours, of whichever child.
    pub(crate) fn marks(&self, pid: u32) -> bool {
        sys::environment_has(pid, MARK_VARIABLE, &self.token) == Some(true)
    }

    /// True if a child lives whose end would free the resources that it holds.
    fn has_children(&self) -> bool {
        let state = self.state.lock();
        !state.live.is_empty() || !state.guests.is_empty()
    }

    /// From here on whatever is started is in the control group, where there is one.
    fn enter_cgroup(&self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.enter();
        }
    }

    /// Puts a program that has just been started, and what it has started since, into a group in which it may have so many bytes. None
    /// where there is no bound, or where groups bound none.
    fn bounded_group(&self, process: ProcessId, bytes: u64) -> Option<BoundedGroup> {
        let group = self.cgroup.as_ref().filter(|_| bytes > 0)?.bounded(bytes)?;
        let is_in = group.take(process.get());
        for pid in sys::below(process.get()) {
            // One that is gone need not be in it.
            let _ = group.take(pid);
        }
        is_in.then_some(group)
    }
}

impl ProcessTable {
    /// True if no program lives and none is being started.
    fn is_idle(&self) -> bool {
        self.live.is_empty() && self.guests.is_empty() && self.starting == 0
    }

    /// True if no program lives but the one with this leader, and none is being started.
    fn is_last(&self, leader: Identity) -> bool {
        self.live.len() == 1
            && self.live.contains_key(&leader.pid)
            && self.guests.is_empty()
            && self.starting == 0
    }
}

/// Ends what came from the programs of guests. It is still there, because nothing else waits for it.
impl Drop for Inner {
    fn drop(&mut self) {
        remains::end_strays(self);
    }
}

/// 16 random bytes in hexadecimal.
fn new_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES / 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
