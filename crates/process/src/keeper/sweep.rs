//! What the keeper does at the end: kill the groups that were left, then whoever carries the token.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::sys::{self, ProcessId, Stat, all_processes, environment_has, stat};
use crate::{Identity, MARK_VARIABLE};

/// How often it looks for carriers of the token. What forks faster than it is found would be found again for ever.
const ROUNDS: u32 = 100;

/// How long it waits for what it has killed before it looks again.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How often somebody without any environment is looked at again: a program that is just being executed has none for a
/// moment. The pipe closes at the beginning of that moment, so it is met.
const SECOND_LOOKS: u32 = 10;

/// The moment in question: loading a program, with room for a busy machine.
const MOMENT: Duration = Duration::from_millis(10);

/// Kills each group whose number has not come to mean something else, and its leader even where it leads none: a stray may
/// be in another group than its own.
pub(super) fn groups(groups: &[Identity]) {
    for group in groups {
        let Some(leader) = ProcessId::new(group.pid) else { continue };
        let descriptor = leader.open();
        match stat(group.pid) {
            Ok(found) if found.start_time == group.start_time => {
                leader.kill_group();
                // Opened before it was looked at, so that it is the one that was looked at.
                descriptor.iter().for_each(sys::kill);
            }
            Ok(_) => {}
            // The leader is gone. While the group has members its number is not given away; without, none is hit.
            Err(_) => leader.kill_group(),
        }
    }
}

/// Kills whoever carries the token, until a look finds nobody.
pub(super) fn carriers(token: &str) -> io::Result<()> {
    // What was started before us is none of theirs.
    let since = stat(std::process::id())?.start_time;
    let mut second_looks = SECOND_LOOKS;
    for _ in 0..ROUNDS {
        let Found { killed, unclear } = kill_carriers(token, since)?;
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

struct Found {
    killed: Vec<OwnedFd>,
    /// One that has no environment, or not yet.
    unclear: Option<OwnedFd>,
}

fn kill_carriers(token: &str, since: u64) -> io::Result<Found> {
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
    Ok(Found { killed, unclear })
}
