//! Groups that other code in this process starts: a plugin has a copy of this crate of its own.
//!
//! What it starts are children of this process all the same. Here they are told to the keeper, and known as no
//! orphans, so that their starter alone signals and reaps them. What they leave behind is the starter's business too.

use super::start::enter;
use super::{ProcessTable, Processes};
use crate::sys::{OpenFiles, ProcessId};
use crate::{Adopted, Identity, KeeperError};

impl Processes {
    /// A guest is about to start a process. [`guest_started`](Self::guest_started) or
    /// [`guest_not_started`](Self::guest_not_started) follows. Answers the value of [`MARK_VARIABLE`](crate::MARK_VARIABLE) for
    /// it, by which the keeper finds it wherever it goes.
    pub fn guest_starting(&self) -> String {
        self.0.enter_cgroup();
        let mut state = self.0.state.lock();
        state.starting += 1;
        state.serial += 1;
        format!("{}{}.{};", self.0.inherited_mark(), self.0.token, state.serial)
    }

    /// The process was not started.
    pub fn guest_not_started(&self) {
        no_longer_starting(&mut self.0.state.lock());
    }

    /// The process was started, and leads a group of its own. When this answers, the keeper knows the group.
    pub fn guest_started(&self, leader: Identity) -> Result<(), KeeperError> {
        let mut state = self.0.state.lock();
        no_longer_starting(&mut state);
        if let (Some(limit), Some(process)) = (OpenFiles::before(), ProcessId::new(leader.pid)) {
            process.limit_open_files(limit);
        }
        state.guests.insert(leader.pid, leader.start_time);
        state.strangers.insert(leader.pid, false);
        enter(&self.0, &mut state, leader)
    }

    /// The group is gone, and its leader is about to be reaped by the guest that started it.
    pub fn guest_ended(&self, leader: Identity) {
        let mut state = self.0.state.lock();
        if state.guests.get(&leader.pid) != Some(&leader.start_time) {
            return;
        }
        state.guests.remove(&leader.pid);
        // The child stays a stranger until it is reaped. A keeper that does not answer is replaced at the next start.
        if let Some(keeper) = &mut state.keeper {
            let _ = keeper.remove(leader);
        }
        self.0.ended.notify_one();
    }

    /// Returns the children of this process that belong to no program of the host, where orphans come to it: those of a guest's
    /// programs too, which knows them by its marks.
    pub fn guest_orphans(&self) -> Option<Adopted> {
        self.0.children.as_ref().and(self.0.orphans().ok())
    }
}

fn no_longer_starting(state: &mut ProcessTable) {
    // A guest that says it twice must not make another start look over.
    state.starting = state.starting.saturating_sub(1);
}
