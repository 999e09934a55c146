//! The processes of a supervisor that was killed together with its keeper: found by a later one.
//!
//! ```text
//!  record ── leaders (number and start), values of a variable ──▶ leftovers ──▶ Leftover ──▶ end
//!                                                                   │
//!                             and each process that carries the mark of one of them, or is in its control group
//! ```
//!
//! A number alone names no process: a leader counts only where it was started when the record says, and every other process
//! only by its own environment. This process and those above it are never among them.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::cgroup;
use crate::sys::{
    self, ProcessId, all_processes, environment_has, environment_value, own_group, stat,
};
use crate::{Identity, MARK_VARIABLE};

/// The number of searches. What forks faster than it is found would be found again for ever.
const ROUNDS: u32 = 20;

/// By what they are known.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Leaders of groups, as they were recorded.
    pub leaders: Vec<Identity>,
    /// A variable of the environment.
    pub variable: &'static str,
    /// The values of the mark.
    pub values: HashSet<String>,
}

/// A process that was left. It is held by a descriptor, so that it cannot become another meanwhile.
#[derive(Debug)]
pub struct Leftover {
    /// The process id.
    pub pid: u32,
    /// The value of the variable, where it has one of those.
    pub value: Option<String>,
    process: ProcessId,
    start_time: u64,
    /// True if it leads its group.
    leads: bool,
    descriptor: OwnedFd,
}

/// All processes that are wanted and live. Nothing is done to them.
///
/// # Errors
///
/// Fails if `/proc` cannot be read.
pub fn leftovers(wanted: &Wanted) -> io::Result<Vec<Leftover>> {
    let spared = spared();
    let candidates: Vec<ProcessId> =
        all_processes()?.filter(|process| !spared.contains(&process.get())).collect();
    let mut found: Vec<Leftover> =
        candidates.iter().filter_map(|process| wanted.look(*process)).collect();
    // A process that carries the supervisor's mark stood below it, also without the variable.
    let tokens: HashSet<String> = found.iter().filter_map(|left| token(left.process)).collect();
    // And whatever is in the control group that a supervisor has left.
    let groups: HashSet<String> =
        found.iter().flat_map(|left| cgroup::dead_groups(left.pid)).collect();
    let known: HashSet<u32> = found.iter().map(|left| left.pid).collect();
    for process in candidates.into_iter().filter(|process| !known.contains(&process.get())) {
        let carries =
            |token: &String| environment_has(process.get(), MARK_VARIABLE, token) == Some(true);
        let is_one = || tokens.iter().any(carries) || cgroup::is_in_any(process.get(), &groups);
        if is_one() {
            found.extend(Leftover::open(process, |_| is_one(), None));
        }
    }
    Ok(found)
}

/// Kills all of these and whatever more is wanted, until a search finds none. Returns how many were killed and how many
/// did not end in this time.
///
/// # Errors
///
/// Fails if `/proc` cannot be read.
pub fn end_leftovers(
    mut found: Vec<Leftover>,
    wanted: &Wanted,
    patience: Duration,
) -> io::Result<(u32, u32)> {
    let (mut ended, mut lost) = (0, 0);
    for _ in 0..ROUNDS {
        if found.is_empty() || lost > 0 {
            break;
        }
        found.iter().for_each(Leftover::kill);
        for left in &found {
            match sys::wait_readable(&left.descriptor, patience) {
                true => ended += 1,
                false => lost += 1,
            }
        }
        found = leftovers(wanted)?;
    }
    Ok((ended, lost))
}

impl Wanted {
    fn look(&self, process: ProcessId) -> Option<Leftover> {
        let value = || {
            let value = environment_value(process.get(), self.variable)?;
            self.values.contains(&value).then_some(value)
        };
        let leads =
            |start_time: u64| self.leaders.contains(&Identity { pid: process.get(), start_time });
        let start_time = stat(process.get()).ok()?.start_time;
        let known = value();
        if known.is_none() && !leads(start_time) {
            return None;
        }
        Leftover::open(process, |start| leads(start) || value().is_some(), known)
    }
}

impl Leftover {
    /// Takes hold of a process, and looks once more, now that it cannot change.
    fn open(
        process: ProcessId,
        is_wanted: impl FnOnce(u64) -> bool,
        value: Option<String>,
    ) -> Option<Self> {
        let descriptor = process.open().ok()?;
        let found = stat(process.get()).ok().filter(|found| !found.zombie)?;
        let leads = found.group == process.get() && found.group != own_group();
        let start_time = found.start_time;
        is_wanted(start_time).then(|| Self {
            pid: process.get(),
            value,
            process,
            start_time,
            leads,
            descriptor,
        })
    }

    /// Kills it, and its group where it leads one of its own: as long as it is held, the number is not another's.
    fn kill(&self) {
        let is_same =
            || stat(self.pid).is_ok_and(|now| now.start_time == self.start_time && !now.zombie);
        if self.leads && self.pid > 1 && is_same() {
            self.process.kill_group();
        }
        sys::kill(&self.descriptor);
    }
}

/// Returns the first part of the last element of a process's mark: the token of the supervisor right above it.
fn token(process: ProcessId) -> Option<String> {
    let mark = environment_value(process.get(), MARK_VARIABLE)?;
    let last = mark.trim_end_matches(';').rsplit(';').next()?;
    let (token, _) = last.split_once('.')?;
    (token.len() >= SHORTEST).then(|| format!("{token}."))
}

/// A token is random and longer; a shorter word in its place would be part of too much.
const SHORTEST: usize = 8;

/// Returns this process and all above it.
fn spared() -> HashSet<u32> {
    let above = |pid: &u32| stat(*pid).ok().map(|found| found.parent).filter(|parent| *parent > 0);
    std::iter::successors(Some(std::process::id()), above).collect()
}
