//! The work of the keeper at the end: kill the groups that were left, then the processes that carry the token.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::sys::{self, ProcessId, Stat, all_processes, environment_has, stat};
use crate::{Identity, MARK_VARIABLE};

/// The number of searches for carriers of the token. What forks faster than it is found would be found again for ever.
const ROUNDS: u32 = 100;

/// The time for which it waits for killed processes before it looks again.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The number of times that a process without any environment is looked at again: a program that is just being executed has none
/// for a moment. The pipe closes at the beginning of that moment, so it is met.
const SECOND_LOOKS: u32 = 10;

/// The moment in question: loading a program, with room for a busy machine.
const MOMENT: Duration = Duration::from_millis(10);

/// Kills each group whose number has not come to mean something else, its leader even where it leads none (a stray may be
/// in another group than its own), and whatever is descended from it, in whatever session and with whatever environment.
pub(super) fn groups(groups: &[Identity]) {
    let below = below(groups);
    for group in groups {
        let Some(leader) = ProcessId::new(group.pid) else { continue };
        match stat(group.pid) {
            Ok(found) if found.start_time != group.start_time => {}
            // Where the leader is gone: while the group has members its number is not given away; without, none is hit.
            Ok(_) | Err(_) => leader.kill_group(),
        }
    }
    below.iter().for_each(sys::kill);
}

/// The leaders that live, and all that is descended from them. Parents tell as long as nothing has been killed.
fn below(leaders: &[Identity]) -> Vec<OwnedFd> {
    let Ok(processes) = all_processes() else { return Vec::new() };
    // Each is opened before it is looked at, so that the descriptor is of what was seen.
    let mut found: HashMap<u32, Vec<(u32, OwnedFd)>> = HashMap::new();
    let mut held = Vec::new();
    let mut next = Vec::new();
    for process in processes {
        let Ok(descriptor) = process.open() else { continue };
        let Ok(Stat { parent, start_time, .. }) = stat(process.get()) else { continue };
        if leaders.contains(&Identity { pid: process.get(), start_time }) {
            next.push(process.get());
            held.push(descriptor);
        } else {
            found.entry(parent).or_default().push((process.get(), descriptor));
        }
    }
    while let Some(parent) = next.pop() {
        for (pid, descriptor) in found.remove(&parent).unwrap_or_default() {
            next.push(pid);
            held.push(descriptor);
        }
    }
    held
}

/// Kills the processes that carry the token, until a search finds none.
pub(super) fn carriers(token: &str) -> io::Result<()> {
    // A process that was started before the supervisor belongs to none of its runs.
    let since = stat(std::process::id())?.start_time;
    let mut second_looks = SECOND_LOOKS;
    for _ in 0..ROUNDS {
        let (killed, unclear) = kill_carriers(token, since)?;
        match unclear {
            Some(process) if killed.is_empty() && second_looks > 0 => {
                second_looks -= 1;
                sys::wait_readable(process, MOMENT);
            }
            _ if killed.is_empty() => break,
            _ => {}
        }
        for process in killed {
            sys::wait_readable(&process, END_LIMIT);
        }
    }
    Ok(())
}

/// Kills the processes that carry the token. Returns them, and one that has no environment, or not yet.
fn kill_carriers(token: &str, since: u64) -> io::Result<(Vec<OwnedFd>, Option<OwnedFd>)> {
    let own = std::process::id();
    let (mut killed, mut unclear) = (Vec::new(), None);
    for process in all_processes()?.filter(|process| process.get() != own) {
        match environment_has(process.get(), MARK_VARIABLE, token) {
            Some(false) => {}
            None => {
                let young = |found: Stat| !found.zombie && found.start_time >= since;
                if stat(process.get()).is_ok_and(young) {
                    unclear = process.open().ok();
                }
            }
            // The descriptor may already be of another process: look again, now that it cannot change.
            Some(true) => {
                if let Ok(descriptor) = process.open()
                    && environment_has(process.get(), MARK_VARIABLE, token) == Some(true)
                {
                    sys::kill(&descriptor);
                    killed.push(descriptor);
                }
            }
        }
    }
    Ok((killed, unclear))
}
