//! A process and its parents.

use offshoot_model::ProcessIdentity;
use offshoot_process::Stat;

use crate::Tickets;
use crate::caller::{PeerFacts, Supervised};

/// A process and its parents, up to the first that cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// The process itself, its parent, the parent of that …
    chain: Vec<ProcessIdentity>,
    /// The process that leads the session of the first. None where that has ended.
    leader: Option<ProcessIdentity>,
}

/// No chain of parents is longer. One that is, is still being built while it is read, and says nothing.
const LONGEST: usize = 4096;

/// The number of times that a step is repeated because a process ended meanwhile. Each time it has another parent, so a process
/// that were faster than this would need as many parents.
const LOOKS: usize = 16;

impl Lineage {
    /// Follows the parents of a process. A step counts only when, after the parent was read, the child still has it: its
    /// number cannot have been used again then. None where the process is gone, or does not keep still.
    pub(crate) fn walk(pid: u32, mut stat: impl FnMut(u32) -> Option<Stat>) -> Option<Self> {
        let mut child = (pid, stat(pid)?);
        let first = child;
        let mut chain = vec![identity(child)];
        let mut looks = 0;
        while child.1.parent != 0 {
            let parent = stat(child.1.parent).map(|found| (child.1.parent, found));
            let again = stat(child.0)?;
            if again.start_time != child.1.start_time {
                return None;
            }
            if again.parent != child.1.parent {
                looks += 1;
                if looks == LOOKS {
                    return None;
                }
                child.1 = again;
                continue;
            }
            // A parent that cannot be seen belongs to another user, so nothing above it is ours.
            let Some(parent) = parent else { break };
            chain.push(identity(parent));
            if chain.len() == LONGEST {
                return None;
            }
            child = parent;
        }
        // While it is in the session, the number of the session is given to no other process.
        let leader = stat(first.1.session).map(|found| identity((first.1.session, found)));
        let again = stat(pid).filter(|again| again.start_time == first.1.start_time)?;
        let leader = leader.filter(|_| again.session == first.1.session);
        Some(Self { chain, leader })
    }

    /// The process itself.
    pub(crate) fn process(&self) -> ProcessIdentity {
        self.chain[0]
    }

    /// Returns the parents, the nearest first.
    pub(crate) fn parents(&self) -> &[ProcessIdentity] {
        &self.chain[1..]
    }

    /// True if it is one of these processes, or was started by one of them as far as its parents and its session tell.
    pub(crate) fn comes_from(&self, processes: &[ProcessIdentity]) -> bool {
        let is_it = |process: &ProcessIdentity| {
            self.chain.contains(process) || self.leader == Some(*process)
        };
        processes.iter().any(is_it)
    }

    /// Returns the position of the process as this supervisor sees it. `above` are the parents of the supervisor itself, which
    /// are not supervised elsewhere.
    pub(crate) fn place(
        &self,
        same_user: bool,
        tickets: &Tickets,
        own: &Lineage,
        others: &[ProcessIdentity],
    ) -> PeerFacts {
        let elsewhere =
            |process: &ProcessIdentity| others.contains(process) && !own.chain.contains(process);
        let supervised = if self.parents().contains(&own.process()) {
            Supervised::Here
        } else if self.parents().iter().any(elsewhere) {
            Supervised::Elsewhere
        } else {
            Supervised::No
        };
        PeerFacts {
            same_user,
            known: true,
            descends_from: self.chain.iter().find_map(|process| tickets.of_process(*process)),
            in_session_of: self.leader.and_then(|leader| tickets.of_process(leader)),
            supervised,
            of_operator: self
                .below_command(tickets, own)
                .is_some_and(|mut below| !below.any(elsewhere)),
        }
    }

    /// Returns the processes from this one up to the command that this supervisor runs for the operator; none where it is not below
    /// such a command. Its session does not tell: what has left the command is not followed.
    fn below_command<'a>(
        &'a self,
        tickets: &Tickets,
        own: &Self,
    ) -> Option<impl Iterator<Item = &'a ProcessIdentity> + use<'a>> {
        let at = self.chain.iter().position(|process| tickets.is_command(*process))?;
        (self.chain.get(at + 1) == Some(&own.process())).then(|| self.chain[..=at].iter())
    }

    /// True if this process is one of those from the first of the line up to the supervisor.
    pub(crate) fn is_below(&self, process: ProcessIdentity, own: &Self) -> bool {
        self.chain.iter().take_while(|it| **it != own.process()).any(|it| *it == process)
    }
}

fn identity((pid, stat): (u32, Stat)) -> ProcessIdentity {
    ProcessIdentity::new(pid, stat.start_time)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use offshoot_model::RunId;
    use uuid::Uuid;

    use super::*;
    use crate::Ticket;

    /// Processes as `(pid, parent, session)`; each starts at its number times ten.
    fn table(rows: &[(u32, u32, u32)]) -> HashMap<u32, Stat> {
        let row = |&(pid, parent, session): &(u32, u32, u32)| {
            let start_time = u64::from(pid) * 10;
            (pid, Stat { parent, session, start_time, ..Stat::default() })
        };
        rows.iter().map(row).collect()
    }

    fn process(pid: u32) -> ProcessIdentity {
        ProcessIdentity::new(pid, u64::from(pid) * 10)
    }

    fn pids(lineage: &Lineage) -> Vec<u32> {
        lineage.chain.iter().map(|process| process.pid).collect()
    }

    #[test]
    fn parents_are_followed_to_the_first() {
        let table = table(&[(1, 0, 1), (20, 1, 20), (30, 20, 20), (40, 39, 40)]);
        let walk = |pid| Lineage::walk(pid, |pid| table.get(&pid).copied());
        assert_eq!(pids(&walk(30).unwrap()), [30, 20, 1]);
        assert_eq!(walk(30).unwrap().leader, Some(process(20)));
        assert_eq!(pids(&walk(1).unwrap()), [1]);
        assert_eq!(pids(&walk(40).unwrap()), [40], "its parent cannot be seen");
        assert_eq!(walk(40).unwrap().leader, Some(process(40)));
        assert_eq!(walk(50), None);
    }

    #[test]
    fn a_number_that_is_used_again_is_not_followed() {
        // 30 has the parent 20 when it is first read. Then 20 ends, its number goes to a stranger, and 30 to 5.
        let before = table(&[(1, 0, 1), (5, 1, 5), (20, 5, 5), (30, 20, 5)]);
        let mut after = table(&[(1, 0, 1), (5, 1, 5), (30, 5, 5)]);
        let of_stranger = Stat { start_time: 9999, ..Stat::default() };
        after.insert(20, Stat { parent: 1, session: 20, ..of_stranger });
        let mut reads = 0;
        let lineage = Lineage::walk(30, |pid| {
            reads += 1;
            if reads == 1 { &before } else { &after }.get(&pid).copied()
        });
        assert_eq!(pids(&lineage.unwrap()), [30, 5, 1]);

        // The process itself is replaced by a stranger.
        let mut reads = 0;
        let mut stranger = before.clone();
        stranger.insert(30, Stat { parent: 20, session: 5, ..of_stranger });
        let lineage = Lineage::walk(30, |pid| {
            reads += 1;
            if reads == 1 { &before } else { &stranger }.get(&pid).copied()
        });
        assert_eq!(lineage, None);
    }

    #[test]
    fn a_process_that_never_keeps_still_has_no_lineage() {
        let mut parent = 100;
        let lineage = Lineage::walk(30, |pid| {
            parent += u32::from(pid == 30);
            Some(Stat { parent, session: 1, start_time: u64::from(pid), ..Stat::default() })
        });
        assert_eq!(lineage, None);
        let endless = Lineage::walk(2, |pid| {
            let start_time = u64::from(pid);
            Some(Stat { parent: 5 - pid, session: 1, start_time, ..Stat::default() })
        });
        assert_eq!(endless, None, "two that are each other's parent");
    }

    #[test]
    fn a_place_is_the_nearest_run_and_the_supervisor_above() {
        // 10 is the supervisor, started by 5; 20 and 30 are runs of it, 50 is a stranger's supervisor below 1 and 60
        // its child; 12 was left by a run.
        let rows = [
            (1, 0, 1),
            (5, 1, 5),
            (10, 5, 5),
            (12, 10, 12),
            (13, 10, 20),
            (20, 10, 20),
            (21, 20, 20),
            (22, 21, 22),
            (30, 10, 30),
            (31, 30, 30),
            (50, 1, 50),
            (60, 50, 60),
            (70, 1, 70),
            (80, 5, 80),
        ];
        let table = table(&rows);
        let walk = |pid| Lineage::walk(pid, |pid| table.get(&pid).copied()).unwrap();
        let [a, b] = [1, 2].map(|number| RunId::from_uuid(Uuid::from_u128(number)));
        let mut tickets = Tickets::default();
        for (run, pid) in [(a, 20), (b, 30)] {
            tickets.admit(run, Ticket::mint().unwrap());
            tickets.started(run, Some(process(pid)));
        }
        let others = [process(50), process(5), ProcessIdentity::new(1, 7)];
        let check = |pid, descends_from, in_session_of, supervised| {
            let expected = PeerFacts {
                same_user: true,
                known: true,
                descends_from,
                in_session_of,
                supervised,
                of_operator: false,
            };
            let found = walk(pid).place(true, &tickets, &walk(10), &others);
            assert_eq!(found, expected, "{pid}");
        };
        use Supervised::{Elsewhere, Here, No};
        check(20, Some(a), Some(a), Here);
        check(21, Some(a), Some(a), Here);
        check(22, Some(a), None, Here); // its own session
        check(31, Some(b), Some(b), Here);
        check(12, None, None, Here); // forked away twice, and left its session
        check(13, None, Some(a), Here); // forked away twice
        check(10, None, None, No); // the supervisor itself
        check(5, None, None, No); // the parent of the supervisor, although that is a supervisor too
        check(80, None, None, No); // a sibling of the supervisor, below the same outer one
        check(60, None, None, Elsewhere);
        check(50, None, None, No); // another supervisor itself
        check(70, None, None, No);

        // 10 runs the command 30 for the operator; what it starts is none of a run.
        let shared = crate::SharedTickets::new();
        let mut command = shared.operator_command();
        command.started(process(30));
        let of_operator = |pid, others: &[ProcessIdentity]| {
            let tickets = shared.watch();
            walk(pid).place(true, &tickets.borrow(), &walk(10), others).of_operator
        };
        assert!(of_operator(30, &others) && of_operator(31, &others));
        assert!(!of_operator(31, &[process(30)]), "the command opened a tree");
        assert!(
            !of_operator(12, &others) && !of_operator(21, &others) && !of_operator(10, &others)
        );
        command.started(process(21));
        assert!(!of_operator(22, &others), "it is the child of another process");
    }
}
