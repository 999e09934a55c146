//! What the kernel tells about the process at the other end of a connection.

use std::fs::File;
use std::io::{self, Read};

use offshoot_model::ProcessIdentity;
use tokio::net::UnixStream;

use crate::lineage::{Lineage, Stat};

/// The process that opened a connection, by the kernel's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its number; none where it lives in a world of processes that is not seen from here. It may have ended, or given
    /// the connection to others: what was descended from a run stays that run's.
    pub pid: Option<u32>,
}

impl Peer {
    /// Asks the kernel (`SO_PEERCRED`).
    pub(crate) fn of(stream: &UnixStream) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Ok(Self { uid: credentials.uid(), pid })
    }
}

/// A process and its parents, from `/proc`.
pub(crate) fn lineage(pid: u32) -> Option<Lineage> {
    Lineage::walk(pid, stat)
}

/// This process and its parents.
pub(crate) fn own_lineage() -> Option<Lineage> {
    lineage(std::process::id())
}

/// Names a process for good; none where it is gone.
///
/// ```
/// let here = offshoot_door::process_identity(std::process::id()).expect("it lives");
/// assert_eq!(here.pid, std::process::id());
/// ```
pub fn process_identity(pid: u32) -> Option<ProcessIdentity> {
    stat(pid).map(|stat| ProcessIdentity { pid, start_time: stat.start_time })
}

fn stat(pid: u32) -> Option<Stat> {
    // The name in it is at most 64 bytes and the 50 numbers at most 20 digits each.
    let mut line = [0; 1536];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse_stat(&line[..length])
}

/// The name may hold anything, also blanks and parentheses: the numbers begin after the last one.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let after_name = &line[memchr::memrchr(b')', line)? + 1..];
    let mut fields = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // The start is field 22 of the line, and the next one is field 6.
    let start_time = fields.nth(22 - 6)?.parse().ok()?;
    Some(Stat { parent, group, start_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name_says() {
        let tail = "3 34816 5 4194560 6 7 8 9 10 11 12 13 20 0 1 0 987654 2646016 245";
        let check = |line: &str, expected: Option<(u32, u32, u64)>| {
            let found = parse_stat(line.as_bytes());
            assert_eq!(found.map(|stat| (stat.parent, stat.group, stat.start_time)), expected);
        };
        check(&format!("42 (true) S 7 8 {tail}"), Some((7, 8, 987_654)));
        check(&format!("42 (a) R 1 (b) S 7 8 {tail}"), Some((7, 8, 987_654)));
        check(&format!("42 (\n) ) X 7 8 {tail}"), Some((7, 8, 987_654)));
        check("42 (true) S 7 8", None);
        check("", None);
    }

    #[test]
    fn this_process_knows_its_parents() {
        let own = own_lineage().expect("it lives");
        assert_eq!(own.process(), process_identity(std::process::id()).unwrap());
        assert_eq!(own.parents()[0].pid, std::os::unix::process::parent_id());
        assert_eq!(process_identity(0), None);
    }
}
