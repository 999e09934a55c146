//! The facts of `/proc`: parent, group, start time and environment of a process.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use memchr::memmem;
use rustix::fs::{Dir, Mode, OFlags, open, openat};

use super::ProcessId;

/// The facts about a process in `/proc/{pid}/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// True if it has ended and is not yet reaped.
    pub zombie: bool,
    /// True if a signal or a debugger has stopped it.
    pub stopped: bool,
    /// The parent.
    pub parent: u32,
    /// The group. One that was made outside of our world of processes is 0, as with the session.
    pub group: u32,
    /// The session. It is inherited, and left only into a new one: no process can enter another's.
    pub session: u32,
    /// CPU time in clock ticks: its own, and that of its children that have ended and were waited for.
    pub ticks: u64,
    /// Clock ticks since boot. With the number it names a process for good.
    pub start_time: u64,
    /// The pages that it has in memory, also those that it shares with others.
    pub resident_pages: u64,
}

/// Reads the facts about a process.
pub fn stat(pid: u32) -> io::Result<Stat> {
    read_stat(File::open(format!("/proc/{pid}/stat"))?)
}

fn read_stat(mut file: File) -> io::Result<Stat> {
    // The name in it is at most 64 bytes and the 50 numbers at most 20 digits each.
    let mut line = [0; 1536];
    let length = file.read(&mut line)?;
    parse_stat(&line[..length])
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a `stat` has another form"))
}

/// A process by its folder in `/proc`. It stays with the process: where that is gone, nothing can be read, even when its
/// number is used again.
#[derive(Debug)]
pub(crate) struct ProcessFolder(OwnedFd);

impl ProcessFolder {
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(open(format!("/proc/{pid}"), flags, Mode::empty())?))
    }

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        read_stat(self.file("stat")?)
    }

    /// Returns the children. One that begins or ends meanwhile may be left out.
    pub(crate) fn children(&self) -> io::Result<Vec<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let threads = Dir::new(openat(&self.0, "task", flags, Mode::empty())?)?;
        let mut children = Vec::new();
        for thread in threads {
            let thread = thread?;
            let Ok(name) = thread.file_name().to_str() else { continue };
            // A thread that has ended has no children.
            let Ok(list) = self.file(&format!("task/{name}/children")) else { continue };
            // One that ends while it is read has handed them to another.
            let _ = ChildList(list).for_each(|child| children.push(child));
        }
        Ok(children)
    }

    fn file(&self, path: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.0, path, flags, Mode::empty())?))
    }
}

/// Returns the processes below one. Such as begin or end meanwhile may be left out.
pub(crate) fn below(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(child_numbers(pid));
        next += 1;
    }
    found.split_off(1)
}

/// The number by which the kernel names the time since it was started: with it a process's number and start time name that
/// process for good, also on disk. None where the system does not tell.
pub fn boot_id() -> Option<u128> {
    static ID: OnceLock<Option<u128>> = OnceLock::new();
    *ID.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
    })
}

/// The name of a process, which it can change.
pub(crate) fn name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// The name may hold anything, also blanks and parentheses: the numbers begin after the last one.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let after_name = &line[memchr::memrchr(b')', line)? + 1..];
    let mut fields = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // `utime`, `stime`, `cutime` and `cstime` are fields 14 to 17 of the line; the next is field 7.
    let mut ticks = 0u64;
    for place in [14 - 7, 0, 0, 0] {
        ticks = ticks.saturating_add(fields.nth(place)?.parse().ok()?);
    }
    // `starttime` is field 22.
    let start_time = fields.nth(22 - 18)?.parse().ok()?;
    // `rss` is field 24, and below 0 for a moment where threads have not told yet.
    let resident_pages = fields.nth(24 - 23)?.parse::<i64>().ok()?.try_into().unwrap_or(0);
    let (zombie, stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
    Some(Stat { zombie, stopped, parent, group, session, ticks, start_time, resident_pages })
}

/// True if one of the variables of a process is `name=` with `part` in its value. The environment is the one the program was
/// started with. None where there is none to be read: of a zombie, of a process that was started with none, and for a moment of
/// one that is just being executed.
pub(crate) fn environment_has(pid: u32, name: &str, part: &str) -> Option<bool> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let has = environment.split(|byte| *byte == 0).any(|variable| {
        variable
            .strip_prefix(name.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .is_some_and(|value| memmem::find(value, part.as_bytes()).is_some())
    });
    (!environment.is_empty()).then_some(has)
}

/// The value of a variable in a process's environment, as far as it is text. None where it has none, or we may not look.
pub(crate) fn environment_value(pid: u32, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok().map(str::to_owned)
    })
}

/// True if a program that closes a pipe leaves the writer alive: if `SIGPIPE` is ignored here.
pub(crate) fn ignores_broken_pipes() -> io::Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 13, the lowest bit being signal 1.
    Ok(ignored.unwrap_or(0) & (1 << 12) != 0)
}

/// Every process there is.
pub(crate) fn all_processes() -> io::Result<impl Iterator<Item = ProcessId>> {
    Ok(std::fs::read_dir("/proc")?.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        ProcessId::new(name.to_str()?.parse().ok()?)
    }))
}

/// The children of a process, of whatever thread of it. Empty where it cannot be seen.
pub(crate) fn child_numbers(pid: u32) -> Vec<u32> {
    ProcessFolder::open(pid).and_then(|process| process.children()).unwrap_or_default()
}

/// True if a process has the file in memory of this name open under a number.
pub(crate) fn has_open(pid: u32, descriptor: u32, name: &str) -> bool {
    std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}"))
        .is_ok_and(|link| link.to_str() == Some(&format!("/memfd:{name} (deleted)")))
}

/// Returns the number of threads of this process.
pub(crate) fn own_threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// The children of this process's first thread, to which the kernel gives every orphan below us. The file stays open,
/// because it is read at every end of a child.
#[derive(Debug)]
pub(crate) struct ChildList(File);

impl ChildList {
    /// Fails where the kernel has no such list (`CONFIG_PROC_CHILDREN`).
    pub(crate) fn open() -> io::Result<Self> {
        let pid = std::process::id();
        File::open(format!("/proc/{pid}/task/{pid}/children")).map(Self)
    }

    /// Calls for each child. The list is whole as long as no child is reaped meanwhile, which the caller prevents.
    pub(crate) fn for_each(&self, mut child: impl FnMut(u32)) -> io::Result<()> {
        let mut block = [0; 4096];
        let (mut offset, mut number) = (0, None);
        loop {
            let length = self.0.read_at(&mut block, offset)?;
            if length == 0 {
                // Every number is followed by a blank.
                return Ok(());
            }
            offset += length as u64;
            for byte in &block[..length] {
                match byte {
                    b'0'..=b'9' => {
                        number = Some(number.unwrap_or(0) * 10 + u32::from(byte - b'0'));
                    }
                    _ => number.take().into_iter().for_each(&mut child),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name_says() {
        let tail = "7 9 8 34816 5 4194560 6 7 8 9 10 11 12 13 20 0 1 0 987654 2646016 245";
        let check = |line: &str, expected: Option<(bool, u64)>| {
            let found = parse_stat(line.as_bytes()).map(|stat| {
                assert_eq!(stat.ticks, 10 + 11 + 12 + 13, "{line}");
                assert_eq!((stat.parent, stat.group, stat.session), (7, 9, 8), "{line}");
                (stat.zombie, stat.start_time)
            });
            assert_eq!(found, expected, "{line}");
        };
        check(&format!("42 (true) S {tail}"), Some((false, 987_654)));
        check(&format!("42 (true) Z {tail}"), Some((true, 987_654)));
        check(&format!("42 (a) S 9 (b) R {tail}"), Some((false, 987_654)));
        check(&format!("42 (\n) ) X {tail}"), Some((true, 987_654)));
        check("42 (true) S 7 8", None);
        check("", None);
    }

    #[test]
    fn this_process_reads_itself() {
        let own = stat(std::process::id()).expect("a process can read its own line");
        assert!(!own.zombie);
        assert_eq!(own.group, super::super::own_group());
        assert!(own_threads().expect("a process can list its own threads") >= 1);
    }
}
