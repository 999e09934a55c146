//! The state of another process's keeper, for people to read.

use crate::sys::{child_numbers, has_open, stat};

use super::LEDGER;

/// The state of the keeper, which holds what a supervisor would leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperState {
    /// A keeper is there, and nothing has stopped it.
    Holds {
        /// The process id.
        pid: u32,
    },
    /// A keeper is there, and it was stopped, by a signal or a debugger.
    Stopped {
        /// The process id.
        pid: u32,
    },
    /// No keeper is there, or this process may not see it.
    Missing,
}

/// The keeper of a process that holds children. One that lives and gets no time to run looks like one that holds.
pub fn keeper_of(supervisor: u32) -> KeeperState {
    let states: Vec<KeeperState> = child_numbers(supervisor).into_iter().map(state_of).collect();
    // One that was replaced may still be there.
    let find = |wanted: fn(&&KeeperState) -> bool| states.iter().find(wanted).copied();
    find(|state| matches!(state, KeeperState::Holds { .. }))
        .or(find(|state| matches!(state, KeeperState::Stopped { .. })))
        .unwrap_or(KeeperState::Missing)
}

/// Returns the state of one process. A keeper is known by the ledger that it holds: its name depends on the program.
pub(super) fn state_of(pid: u32) -> KeeperState {
    match stat(pid) {
        Ok(found) if found.zombie || !has_open(pid, 0, LEDGER) => KeeperState::Missing,
        Ok(found) if found.stopped => KeeperState::Stopped { pid },
        Ok(_) => KeeperState::Holds { pid },
        Err(_) => KeeperState::Missing,
    }
}
