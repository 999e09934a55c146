//! Children of this process that are no program of ours: what a run has left behind.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use super::{Inner, Notice, ProcessTable};
use crate::keeper::Link;
use crate::sys::{self, ProcessId, own_session, stat};
use crate::{Adopted, Identity, ProcessRegistrar};

impl Inner {
    /// Reaps one orphan. Children may not be listed meanwhile: the kernel's list can leave a child out when it becomes
    /// shorter while it is read.
    pub(crate) fn reap_orphan(&self, orphan: ProcessId) -> bool {
        let mut state = self.state.lock();
        !state.live.contains_key(&orphan.get()) && reap_stray(&mut state, orphan)
    }

    /// The CPU time, in ticks, of orphans of this leader's session that were reaped while it lived.
    pub(crate) fn reaped_ticks(&self, leader: u32) -> u64 {
        self.state.lock().reaped.get(&leader).copied().unwrap_or(0)
    }

    /// A process that came to us, carries no mark and stands in no session of ours. It is ended with the last run; and by
    /// the keeper, if we are killed before.
    pub(crate) fn remember_stray(&self, stray: Identity) {
        let mut state = self.state.lock();
        if state.strays.insert(stray.pid, stray.start_time).is_some() {
            return;
        }
        if let Some(keeper) = &mut state.keeper {
            // A keeper that does not hear is replaced at the next start.
            let _ = keeper.add(stray);
        }
        drop(state);
        self.notice(Notice::Stray(stray));
    }

    /// Processes that came to us from runs that are over: each is a child of this process, stands in another session than this
    /// process and is no program of ours. None while a program of ours lives or is being started, because they may be that
    /// program's.
    ///
    /// Each is held by a descriptor that was opened while nothing could be reaped: so none can be another process.
    pub(crate) fn strays(&self) -> Vec<HeldStray> {
        let mut state = self.state.lock();
        let Some(children) = self.children.as_ref().filter(|_| state.is_idle()) else {
            return Vec::new();
        };
        let keeper = state.keeper.as_ref().map(Link::pid);
        let mut pids = Vec::new();
        let listed = children.for_each(|pid| {
            let elsewhere = state.strangers.get(&pid) == Some(&false);
            pids.extend(ProcessId::new(pid).filter(|_| keeper != Some(pid) && !elsewhere));
        });
        let own_session = own_session();
        let mut strays = Vec::new();
        for process in pids {
            let Ok(found) = stat(process.get()) else { continue };
            if listed.is_err() || found.session == own_session {
                continue;
            }
            if found.zombie {
                reap_stray(&mut state, process);
            } else if let Ok(descriptor) = process.open() {
                let name = sys::name(process.get()).unwrap_or_default();
                strays.push(HeldStray { process, descriptor, name });
            }
        }
        strays
    }

    /// Lists the children that are no programs of ours, except known strangers.
    pub(crate) fn orphans(&self) -> io::Result<Adopted> {
        self.list(&mut self.state.lock())
    }

    /// Notes that a child is a stranger: it is no program of ours and belongs to no run.
    pub(crate) fn leave(&self, stranger: ProcessId, reap: bool) {
        self.state.lock().strangers.insert(stranger.get(), reap);
    }

    pub(super) fn list(&self, state: &mut ProcessTable) -> io::Result<Adopted> {
        if let Some(registrar) = self.options.registrar.as_ref().filter(|_| self.registrar_adopts) {
            return Ok(Self::list_of(&**registrar, state));
        }
        let (mut pids, mut present, quiet) = (Vec::new(), 0, state.starting == 0);
        let Some(children) = &self.children else { return Ok(Adopted { pids, quiet }) };
        let ProcessTable { live, strangers, keeper, .. } = state;
        let keeper = keeper.as_ref().map(Link::pid);
        children.for_each(|pid| match strangers.contains_key(&pid) {
            true => present += 1,
            false if live.contains_key(&pid) || keeper == Some(pid) => {}
            false => pids.push(pid),
        })?;
        // The number of a stranger that is gone may be given to another process.
        if present < strangers.len() {
            let mut children_now = HashSet::new();
            children.for_each(|pid| {
                children_now.insert(pid);
            })?;
            strangers.retain(|pid, _| children_now.contains(pid));
        }
        let over = strangers.iter().filter(|(pid, reap)| **reap && !live.contains_key(pid));
        for pid in over.map(|(pid, _)| *pid).collect::<Vec<_>>() {
            if ProcessId::new(pid).is_some_and(|process| reap_stray(state, process)) {
                state.strangers.remove(&pid);
            }
        }
        Ok(Adopted { pids, quiet })
    }

    /// Does as [`Self::list`] with a registrar, which knows to which program each child belongs. It reaps those of no program.
    fn list_of(registrar: &dyn ProcessRegistrar, state: &mut ProcessTable) -> Adopted {
        let Some(Adopted { mut pids, quiet }) = registrar.orphans() else {
            return Adopted { pids: Vec::new(), quiet: true };
        };
        state.strangers.retain(|pid, _| pids.contains(pid));
        pids.retain(|pid| !state.strangers.contains_key(pid) && !state.live.contains_key(pid));
        Adopted { pids, quiet }
    }
}

/// A stray that cannot become another process.
#[derive(Debug)]
pub(crate) struct HeldStray {
    pub(crate) process: ProcessId,
    pub(crate) descriptor: OwnedFd,
    pub(crate) name: String,
}

/// Reaps a child that is no program of ours, if it has ended, and forgets it.
fn reap_stray(state: &mut ProcessTable, stray: ProcessId) -> bool {
    if !stray.can_be_reaped() {
        return false;
    }
    if let Some(start_time) = state.strays.get(&stray.get()).copied()
        && let Some(keeper) = &mut state.keeper
    {
        // Before its number is free, as with leaders.
        let _ = keeper.remove(Identity { pid: stray.get(), start_time });
    }
    // A zombie still says what it has used; nothing does afterwards.
    let used = stat(stray.get()).ok().filter(|used| state.live.contains_key(&used.session));
    let reaped = matches!(stray.reap(), Ok(Some(_)));
    if let Some(used) = used.filter(|_| reaped) {
        *state.reaped.entry(used.session).or_default() += used.ticks;
    }
    if reaped {
        state.strays.remove(&stray.get());
    }
    reaped
}
