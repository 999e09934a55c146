//! The processes that hold a socket, by the number that the kernel gives it.

use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::{Identity, sys};

/// True if a program's leader, a process below it, or one of its session holds the socket of this number.
///
/// Those below it are looked at first, which takes some microseconds for each; only where none of them has it are all processes of the
/// machine asked for their session.
pub fn holds_socket(leader: Identity, inode: u64) -> bool {
    // A number that another process has by now says nothing of this one.
    if !sys::stat(leader.pid).is_ok_and(|stat| stat.start_time == leader.start_time) {
        return false;
    }
    let holds = |pid| sockets_of(pid).any(|held| held == inode);
    let mut seen = HashSet::from([leader.pid]);
    let mut left = vec![leader.pid];
    while let Some(pid) = left.pop() {
        if holds(pid) {
            return true;
        }
        left.extend(sys::child_numbers(pid).into_iter().filter(|child| seen.insert(*child)));
    }
    let Ok(all) = sys::all_processes() else { return false };
    let of_session = |pid: &u32| sys::stat(*pid).is_ok_and(|stat| stat.session == leader.pid);
    let mut others =
        all.map(sys::ProcessId::get).filter(|pid| !seen.contains(pid)).filter(of_session);
    others.any(holds)
}

/// True if this process holds the socket of this number. Waits while other threads look for theirs.
pub fn this_process_holds_socket(inode: u64) -> bool {
    static LOOKS: Looks = Looks::new();
    let number = LOOKS.ask();
    LOOKS.holds(number, inode, || sockets_of(std::process::id()).collect())
}

/// Looks at all sockets of a process. Each answers all questions that were asked before it began: a process in which many agents work has
/// many sockets, and its agents open connections in the same moment.
struct Looks {
    /// The number of questions so far.
    asked: AtomicU64,
    last: Mutex<Look>,
}

/// One look.
struct Look {
    /// The number of questions that had been asked when it began.
    answers: u64,
    found: Vec<u64>,
}

impl Looks {
    const fn new() -> Self {
        Self { asked: AtomicU64::new(0), last: Mutex::new(Look { answers: 0, found: Vec::new() }) }
    }

    /// Returns the number of a new question.
    fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::SeqCst)
    }

    /// Answers the question of this number: true if the socket was found. Looks for it where no look has begun since the question.
    fn holds(&self, number: u64, inode: u64, look: impl FnOnce() -> Vec<u64>) -> bool {
        let mut last = self.last.lock();
        if last.answers <= number {
            let answers = self.asked.load(Ordering::SeqCst);
            *last = Look { answers, found: look() };
        }
        last.found.contains(&inode)
    }
}

/// Returns the numbers of the sockets that a process holds.
fn sockets_of(pid: u32) -> impl Iterator<Item = u64> {
    // One that has ended, or belongs to another user, has nothing to show.
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    files.filter_map(|file| {
        let link = fs::read_link(file.ok()?.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_look_answers_what_was_asked_before_it_began_and_nothing_asked_later() {
        let looks = Looks::new();
        let none = || unreachable!("it was looked since it was asked");
        let [first, second] = [looks.ask(), looks.ask()];
        assert!(looks.holds(second, 7, || {
            // Asked while it is looked: too late for this look.
            assert_eq!(looks.ask(), 2);
            vec![7]
        }));
        assert!(looks.holds(first, 7, none));
        assert!(!looks.holds(first, 8, none));
        assert!(!looks.holds(2, 7, Vec::new));
        assert!(looks.holds(looks.ask(), 9, || vec![9]));
    }

    #[test]
    fn a_socket_is_found_at_its_holder() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = rustix::fs::fstat(socket.as_fd()).unwrap().st_ino;
        let stat = sys::stat(std::process::id()).unwrap();
        let own = Identity { pid: std::process::id(), start_time: stat.start_time };
        assert!(this_process_holds_socket(inode));
        assert!(holds_socket(own, inode));
        assert!(!holds_socket(Identity { start_time: own.start_time + 1, ..own }, inode));
        #[expect(clippy::disallowed_methods, reason = "a child of a test, which ends with it")]
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let stat = sys::stat(child.id()).unwrap();
        let other = Identity { pid: child.id(), start_time: stat.start_time };
        // It has nothing of ours, although it is one of our session: only sessions of leaders count.
        assert!(!holds_socket(other, inode));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(socket);
        assert!(!this_process_holds_socket(inode));
    }
}
