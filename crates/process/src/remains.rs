//! The processes that a leader leaves behind: members of its group, and processes that left the group. They are killed and, where
//! they have become our children, reaped. All of this blocks, and happens only where something was left.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::group::KnownGroup;
use crate::processes::{HeldStray, Inner};
use crate::sys::{self, ProcessId, Stat, all_processes, environment_has, own_session, stat};
use crate::{Exit, Identity, MARK_VARIABLE, Stray};

/// The number of searches. What forks faster than it is found would be found again for ever.
const ROUNDS: u32 = 100;

/// The number of times that a process without any environment is looked at again. A program that is just being executed has none
/// for a moment; most that have none never had one.
const SECOND_LOOKS: u32 = 3;

/// The moment in question: loading a program, with room for a busy machine.
const MOMENT: Duration = Duration::from_millis(5);

/// The end of a group.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) stragglers: u32,
    pub(crate) strays: Vec<Stray>,
    pub(crate) lost: u32,
}

impl Ended {
    /// The leader left nothing.
    pub(crate) fn alone(exit: Exit) -> Self {
        Self { exit, stragglers: 0, strays: Vec::new(), lost: 0 }
    }
}

/// Clears what is left of a group whose leader has ended, and reaps the leader unless that has been done.
pub(crate) fn clear(group: &KnownGroup, settled: Option<Exit>) -> Ended {
    let mut ended = Ended::alone(Exit::Lost);
    if group.inner.adopts() {
        clear_orphans(group, &mut ended);
    }
    ended.exit = settled.unwrap_or_else(|| group.inner.reap_leader(group.identity));
    if group.inner.adopts() {
        let (strays, lost) = end_strays(&group.inner);
        ended.strays = strays;
        ended.lost += lost;
    } else {
        clear_members(group, &mut ended);
    }
    ended
}

/// Ends what came to us from runs that are over and cannot be told whose it was, once no program of ours lives. Answers
/// what was ended, and how many processes did not end.
pub(crate) fn end_strays(inner: &Inner) -> (Vec<Stray>, u32) {
    let (mut ended, mut lost) = (Vec::new(), 0);
    // The children of an ended one become ours in turn.
    for _ in 0..ROUNDS {
        let strays = inner.strays();
        if strays.is_empty() {
            break;
        }
        strays.iter().for_each(|stray| sys::kill(&stray.descriptor));
        for HeldStray { process, descriptor, name } in strays {
            if sys::wait_readable(&descriptor, inner.options.end_limit) {
                inner.reap_orphan(process);
                ended.push(Stray { pid: process.get(), name });
            } else {
                inner.leave(process, false);
                lost += 1;
            }
        }
    }
    (ended, lost)
}

/// Orphans are our children: those of this group are found among these, killed and reaped. Each may leave more.
fn clear_orphans(group: &KnownGroup, ended: &mut Ended) {
    let mut second_looks = SECOND_LOOKS;
    for _ in 0..ROUNDS {
        group.process.kill_group();
        let Ok(orphans) = group.inner.orphans() else { return };
        let (mut killed, mut unclear) = (Vec::new(), Vec::new());
        for orphan in orphans.pids.into_iter().filter_map(ProcessId::new) {
            let Ok(found) = stat(orphan.get()) else { continue };
            match judge(group, orphan, found) {
                ChildKind::Reap if orphans.quiet || found.group != orphan.get() => {
                    let reaped = group.inner.reap_orphan(orphan);
                    ended.stragglers += u32::from(reaped && found.group == group.identity.pid);
                }
                // It may be a program that has just been started: the code that starts it will reap it.
                ChildKind::Reap | ChildKind::Another => {}
                ChildKind::Stray => {
                    let (pid, start_time) = (orphan.get(), found.start_time);
                    group.inner.remember_stray(Identity { pid, start_time });
                }
                ChildKind::Kill => killed.extend(kill(orphan, found)),
                ChildKind::Unclear => unclear.push((orphan, found.start_time)),
                ChildKind::Elsewhere => group.inner.leave(orphan, false),
            }
        }
        if !killed.is_empty() {
            if !wait_for_all(group, killed, ended) {
                return;
            }
        } else if let Some((first, _)) = unclear.first() {
            if second_looks == 0 {
                // Unless it may be a program of ours that is just being started.
                if orphans.quiet {
                    for (orphan, start_time) in unclear {
                        group.inner.remember_stray(Identity { pid: orphan.get(), start_time });
                        group.inner.leave(orphan, true);
                    }
                }
                return;
            }
            second_looks -= 1;
            if let Ok(descriptor) = first.open() {
                sys::wait_readable(descriptor, MOMENT);
            }
        } else {
            return;
        }
    }
}

/// The kind of a child that is no program of ours.
enum ChildKind {
    /// The child has ended, and no other code will take its status.
    Reap,
    /// The child belongs to the group that ends.
    Kill,
    /// The child belongs to another run.
    Another,
    /// Nothing tells to which run it belongs.
    Stray,
    /// The child has no environment, or not yet.
    Unclear,
    /// Other code of this process has started it and will reap it.
    Elsewhere,
}

fn judge(group: &KnownGroup, orphan: ProcessId, found: Stat) -> ChildKind {
    if found.parent != std::process::id() {
        // The number belongs to another process by now.
        ChildKind::Another
    } else if found.session == own_session() {
        // No program of ours shares our session, and nothing can enter a session from outside.
        ChildKind::Elsewhere
    } else if found.zombie {
        ChildKind::Reap
    } else if found.group == group.identity.pid || found.session == group.identity.pid {
        ChildKind::Kill
    } else if group.inner.leads(found.session) {
        ChildKind::Another
    } else {
        match environment_has(orphan.get(), MARK_VARIABLE, &group.mark) {
            Some(true) => ChildKind::Kill,
            Some(false) if group.inner.marks(orphan.get()) => ChildKind::Another,
            Some(false) => ChildKind::Stray,
            None => ChildKind::Unclear,
        }
    }
}

/// Kills a process, if it still is the one that was looked at.
fn kill(process: ProcessId, found: Stat) -> Option<(ProcessId, OwnedFd)> {
    let descriptor = process.open().ok()?;
    let same = stat(process.get()).is_ok_and(|now| now.start_time == found.start_time);
    same.then(|| {
        sys::kill(&descriptor);
        (process, descriptor)
    })
}

fn wait_for_all(group: &KnownGroup, killed: Vec<(ProcessId, OwnedFd)>, ended: &mut Ended) -> bool {
    let mut all = true;
    for (process, descriptor) in killed {
        if sys::wait_readable(&descriptor, group.inner.options.end_limit) {
            group.inner.reap_orphan(process);
            ended.stragglers += 1;
        } else {
            ended.lost += 1;
            all = false;
        }
    }
    all
}

/// Orphans are children of other processes: members of the group have been killed, and are waited for without being reaped.
fn clear_members(group: &KnownGroup, ended: &mut Ended) {
    for _ in 0..ROUNDS {
        if !group.process.group_exists() {
            return;
        }
        let Ok(processes) = all_processes() else { return };
        let members: Vec<OwnedFd> = processes
            .filter(|process| {
                stat(process.get())
                    .is_ok_and(|found| found.group == group.identity.pid && !found.zombie)
            })
            .filter_map(|process| process.open().ok())
            .collect();
        if members.is_empty() {
            return;
        }
        for member in members {
            if sys::wait_readable(&member, group.inner.options.end_limit) {
                ended.stragglers += 1;
            } else {
                ended.lost += 1;
                return;
            }
        }
    }
}
