//! The processes that hold a socket, by the number that the kernel gives it.

use std::collections::HashSet;
use std::fs;

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
    let link = link(inode);
    let mut seen = HashSet::from([leader.pid]);
    let mut left = vec![leader.pid];
    while let Some(pid) = left.pop() {
        if has_link(pid, &link) {
            return true;
        }
        left.extend(sys::child_numbers(pid).into_iter().filter(|child| seen.insert(*child)));
    }
    let Ok(all) = sys::all_processes() else { return false };
    let of_session = |pid: &u32| sys::stat(*pid).is_ok_and(|stat| stat.session == leader.pid);
    let mut others =
        all.map(sys::ProcessId::get).filter(|pid| !seen.contains(pid)).filter(of_session);
    others.any(|pid| has_link(pid, &link))
}

/// True if this process holds the socket of this number.
pub fn this_process_holds_socket(inode: u64) -> bool {
    has_link(std::process::id(), &link(inode))
}

/// The text that stands for a socket in a list of open files.
fn link(inode: u64) -> String {
    format!("socket:[{inode}]")
}

fn has_link(pid: u32, link: &str) -> bool {
    // One that has ended, or belongs to another user, has nothing to show.
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files
        .filter_map(Result::ok)
        .any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::*;

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
