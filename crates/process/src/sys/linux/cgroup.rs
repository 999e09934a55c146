//! Control groups of version 2: where they are mounted, which one a process is in, and when one is empty.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

/// The system's words about control groups, as text.
#[derive(Debug)]
pub(crate) struct ControlGroups {
    /// The content of `/proc/self/mountinfo`.
    mounts: String,
    /// The group of this process, as a path from the group that it sees as the first.
    own: Option<String>,
}

impl ControlGroups {
    pub(crate) fn read() -> io::Result<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Self { mounts, own: control_group(std::process::id()) })
    }

    /// The folder of the group of this process. None where there are no groups, or where none is mounted in which it is.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let own = self.own.as_deref().filter(|own| !own.split('/').any(|part| part == ".."))?;
        self.mounts.lines().find_map(|mount| folder(mount, own))
    }
}

/// The folder of a group, if this line is that of a mount in which it is:
/// `41 31 0:38 /ROOT /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw`.
fn folder(mount: &str, group: &str) -> Option<PathBuf> {
    let (mounted, kind) = mount.split_once(" - ")?;
    let mut fields = mounted.split(' ').skip(3);
    let (root, place) = (fields.next()?, fields.next()?);
    // A blank in a path is written with a backslash. Control groups are not mounted in such a place.
    if kind.split(' ').next() != Some("cgroup2") || place.contains('\\') {
        return None;
    }
    let below = Path::new(group).strip_prefix(root).ok()?;
    Some(if below.as_os_str().is_empty() { place.into() } else { Path::new(place).join(below) })
}

/// The control group of a process. None where there is none of version 2, or no such process.
pub(crate) fn control_group(pid: u32) -> Option<String> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// The number of the world of processes in which this process is.
pub fn process_namespace() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/self/ns/pid")?.ino())
}

/// Waits until no process is in the group or below it. False when the time is over first.
pub(crate) fn wait_until_empty(group: &Path, limit: Duration) -> io::Result<bool> {
    let events = File::open(group.join("cgroup.events"))?;
    let mut text = [0; 256];
    #[expect(clippy::disallowed_methods, reason = "a limit of time over several waits")]
    let until = Instant::now() + limit;
    loop {
        let length = events.read_at(&mut text, 0)?;
        if text[..length].split(|byte| *byte == b'\n').any(|line| line == b"populated 0") {
            return Ok(true);
        }
        #[expect(clippy::disallowed_methods, reason = "what is left of it")]
        let left = until.saturating_duration_since(Instant::now());
        // The file says that it has changed since it was read.
        if left.is_zero() || !super::wait_for(&events, PollFlags::PRI, left) {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_our_group_is_found() {
        let check = |mount: &str, own: &str, expected: Option<&str>| {
            let mounts = format!("21 1 0:19 / /proc rw - proc proc rw\n{mount}\n");
            let groups = ControlGroups { mounts, own: Some(own.to_owned()) };
            assert_eq!(groups.home(), expected.map(PathBuf::from), "{mount}, {own}");
        };
        let whole = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw";
        check(whole, "/", Some("/sys/fs/cgroup"));
        check(whole, "/user.slice/a", Some("/sys/fs/cgroup/user.slice/a"));
        check(whole, "/../elsewhere", None);
        check(
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 none rw",
            "/a",
            Some("/sys/fs/cgroup/unified/a"),
        );
        // A part of the tree is mounted, as in a container.
        let part = "29 23 0:26 /docker/b /sys/fs/cgroup ro - cgroup2 cgroup rw";
        check(part, "/docker/b", Some("/sys/fs/cgroup"));
        check(part, "/docker/b/c", Some("/sys/fs/cgroup/c"));
        check(part, "/docker/bc", None);
        // Only those of version 1 are there.
        check("30 23 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids", "/", None);
        check("", "/", None);
        let none = ControlGroups { mounts: whole.to_owned(), own: None };
        assert_eq!(none.home(), None);
    }
}
