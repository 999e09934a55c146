//! The control group of this process and of all that it starts: a group that a process inherits and cannot forget, whatever it does
//! to its session, its environment and its parents.
//!
//! ```text
//!   home                           the group in which this process was started; the keeper stays here
//!    └─ offshoot-NS-PID-START      this process enters it before its first program: each program is born in it
//! ```
//!
//! This process enters the group itself, because a program that were put there after its start could have forked before.
//! Its number in the group's file would come too late then, and the C library's `posix_spawn` knows no group. So nothing is
//! done for each start, and there is no moment in which a program is outside. The price is that the group cannot be killed as
//! long as this process is in it: it leaves before it kills the rest, and where it is killed itself the keeper, which is
//! outside, kills the group.
//!
//! Where control groups of version 2 are not there, or this process may make none, there is no group.
//!
//! Where the memory of programs is to be bounded, and home gives the groups below it the controller for that, this process enters a
//! group within the group, and each program with a bound gets one beside it:
//!
//! ```text
//!   home ── offshoot-NS-PID-START ─┬─ self      this process, and programs without a bound
//!                                  └─ run-N     one program and what it starts: memory.max, and memory.events tells of kills
//! ```
//!
//! Home does so where it is the first group of the computer: no other group that has processes may give controllers to those below.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::sys::{self, ControlGroups, ProcessId};

/// The time that killed processes may take to end before the group is left where it is.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The longest path of a group that the keeper's ledger takes.
pub(crate) const LONGEST_PATH: usize = 480;

/// A control group that this process has made and entered. When it is dropped this process has left it, whatever else was in it
/// is gone, and so is the group.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// The group that this process was in before.
    home: PathBuf,
    pub(crate) path: PathBuf,
    /// The controller by which programs are bounded in groups of their own; none where they are not.
    controller: Option<Controller>,
    /// True if this process is in the group. Empty until it has tried to enter.
    entered: Arc<OnceLock<bool>>,
}

/// A controller of groups, and the files by which it is used.
#[derive(Clone, Copy, Debug)]
struct Controller {
    name: &'static str,
    limit: &'static str,
    events: &'static str,
}

const MEMORY: Controller =
    Controller { name: "memory", limit: "memory.max", events: "memory.events" };

/// The group of one program with a bound. Dropped, what is left in it is killed, and it is removed.
#[derive(Debug)]
pub(crate) struct BoundedGroup {
    path: PathBuf,
    controller: Controller,
}

/// Returns the controller by which memory is bounded, where that is wanted and home gives it to the groups below: `subtree_control` is
/// the content of the file that says so.
fn controller(wanted: bool, subtree_control: Option<&str>) -> Option<Controller> {
    let given = subtree_control?.split_ascii_whitespace().any(|name| name == MEMORY.name);
    (wanted && given).then_some(MEMORY)
}

/// The one of this process: each of its `Processes` has the same.
static OF_THIS_PROCESS: Mutex<Weak<Cgroup>> = Mutex::new(Weak::new());

impl Cgroup {
    /// The group of this process, which is made where there is none. None where it cannot be made.
    ///
    /// With `bounds_memory` programs can be put into groups of their own in it, where the computer permits that.
    pub(crate) fn of_this_process(bounds_memory: bool) -> Option<Arc<Self>> {
        let mut of_this_process = OF_THIS_PROCESS.lock();
        if let Some(cgroup) = of_this_process.upgrade() {
            return Some(cgroup);
        }
        let home = ControlGroups::read().ok()?.home()?;
        remove_dead(&home);
        let control = fs::read_to_string(home.join(CONTROL)).ok();
        let bounded = controller(bounds_memory, control.as_deref())
            .and_then(|controller| Self::make(home.clone(), Some(controller)).ok());
        let cgroup = Arc::new(bounded.or_else(|| Self::make(home, None).ok())?);
        *of_this_process = Arc::downgrade(&cgroup);
        Some(cgroup)
    }

    fn make(home: PathBuf, controller: Option<Controller>) -> io::Result<Self> {
        let path = home.join(Name::of_this_process()?.to_string());
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        fs::create_dir(&path)?;
        // Removed again where the kernel cannot kill it, or where there is no way back from it.
        let cgroup = Self { home, path, controller, entered: Arc::default() };
        for needed in [cgroup.path.join(KILL), cgroup.path.join(MEMBERS), cgroup.home.join(MEMBERS)]
        {
            fs::OpenOptions::new().write(true).open(needed)?;
        }
        if let Some(controller) = controller {
            // As long as no process is in it.
            fs::write(cgroup.path.join(CONTROL), format!("+{}", controller.name))?;
            fs::create_dir(cgroup.own())?;
        }
        Ok(cgroup)
    }

    /// The group that this process enters.
    fn own(&self) -> PathBuf {
        match self.controller {
            Some(_) => self.path.join(SELF),
            None => self.path.clone(),
        }
    }

    /// Makes a group for one program that may have so many bytes. None where it cannot be made.
    pub(crate) fn bounded(&self, bytes: u64) -> Option<BoundedGroup> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let controller = self.controller?;
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.path.join(format!("run-{number}"));
        fs::create_dir(&path).ok()?;
        let group = BoundedGroup { path, controller };
        fs::write(group.path.join(controller.limit), bytes.to_string()).ok()?;
        // Not there where the computer has no room to move memory out to. All of a program goes, or the rest of it would wait for what
        // was killed.
        let _ = fs::write(group.path.join("memory.swap.max"), "0");
        let _ = fs::write(group.path.join("memory.oom.group"), "1");
        Some(group)
    }

    /// Begins to enter the group. The kernel takes some milliseconds to move a process, which are spent elsewhere.
    pub(crate) fn begin_to_enter(&self) {
        let (entered, path) = (Arc::clone(&self.entered), self.own());
        // Where there is no thread to be had it is entered with the first program.
        let _ = std::thread::Builder::new()
            .name("offshoot-cgroup".to_owned())
            .spawn(move || *entered.get_or_init(|| move_into(&path, OURSELVES).is_ok()));
    }

    /// Waits until this process is in the group, or cannot enter it.
    pub(crate) fn enter(&self) {
        self.entered.get_or_init(|| move_into(&self.own(), OURSELVES).is_ok());
    }

    /// Moves a keeper out that was started while this process was in the group.
    pub(crate) fn put_out(&self, keeper: ProcessId) -> io::Result<()> {
        match self.entered.get() {
            Some(true) => move_into(&self.home, &keeper.get().to_string()),
            _ => Ok(()),
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Where the thread has not begun yet, it finds that it is over.
        let is_in = *self.entered.get_or_init(|| false);
        if !is_in || move_into(&self.home, OURSELVES).is_ok() {
            end(&self.path);
        }
    }
}

impl BoundedGroup {
    /// Takes a process in. False where that cannot be done.
    pub(crate) fn take(&self, pid: u32) -> bool {
        move_into(&self.path, &pid.to_string()).is_ok()
    }

    /// True if the kernel has killed some process of the group because its bound was reached.
    pub(crate) fn has_killed(&self) -> bool {
        let events = fs::read_to_string(self.path.join(self.controller.events));
        let killed = |text: &str| {
            let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
            count.and_then(|count| count.trim().parse::<u64>().ok()).is_some_and(|count| count > 0)
        };
        events.is_ok_and(|text| killed(&text))
    }
}

impl Drop for BoundedGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join(KILL), "1");
        // Where something of it has not ended yet, the group goes with that of this process.
        remove(&self.path);
    }
}

/// The file that says which controllers the groups below one have.
const CONTROL: &str = "cgroup.subtree_control";

/// The name of the group of this process, where programs have groups of their own beside it.
const SELF: &str = "self";

/// The file by which the kernel kills all members of a group and of those below it, also such as are just being forked.
const KILL: &str = "cgroup.kill";

/// The file of the members of a group, which moves a process whose number is written into it.
const MEMBERS: &str = "cgroup.procs";

/// The number by which a process names itself there.
const OURSELVES: &str = "0";

fn move_into(group: &Path, process: &str) -> io::Result<()> {
    fs::write(group.join(MEMBERS), process)
}

/// Kills whatever is in a group, waits for its end and removes the group. This process must not be in it.
pub(crate) fn end(group: &Path) {
    if fs::write(group.join(KILL), "1").is_ok() {
        // A process that does not end keeps the group from being removed.
        let _ = sys::wait_until_empty(group, END_LIMIT);
    }
    remove(group);
}

/// Removes a group and those below it, which some member may have made. The system refuses where a process is in one.
fn remove(group: &Path) {
    let mut found = vec![group.to_owned()];
    let mut next = 0;
    while let Some(folder) = found.get(next) {
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        found.extend(below);
        next += 1;
    }
    for folder in found.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// Removes empty groups that processes have left which were killed together with their keepers.
fn remove_dead(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(Name::parse).is_some_and(|name| name.is_dead()) {
            remove(&entry.path());
        }
    }
}

/// The groups of processes that have ended in which a process still is.
pub(crate) fn dead_groups(pid: u32) -> Vec<String> {
    let path = sys::control_group(pid).unwrap_or_default();
    let names = path.split('/').filter(|part| Name::parse(part).is_some_and(|name| name.is_dead()));
    names.map(str::to_owned).collect()
}

/// True if a process has a control group of its own for what it starts, and is in it.
pub fn has_control_group(pid: u32) -> bool {
    let path = sys::control_group(pid).unwrap_or_default();
    path.split('/').filter_map(Name::parse).any(|name| name.pid == pid)
}

/// True if this process can bound the memory of programs by control groups, where it may make any.
pub fn groups_bound_memory() -> bool {
    let home = ControlGroups::read().ok().and_then(|groups| groups.home());
    let control = home.and_then(|home| fs::read_to_string(home.join(CONTROL)).ok());
    controller(true, control.as_deref()).is_some()
}

/// Returns the groups of other processes in which a process is: it was started below those, whatever its parents say.
pub fn groups_of_others(pid: u32) -> Vec<String> {
    let path = sys::control_group(pid).unwrap_or_default();
    let is_of_another = |part: &&str| Name::parse(part).is_some_and(|name| name.pid != pid);
    path.split('/').filter(is_of_another).map(str::to_owned).collect()
}

/// True if a process is in one of these groups, or below it.
pub(crate) fn is_in_any(pid: u32, groups: &HashSet<String>) -> bool {
    !groups.is_empty()
        && sys::control_group(pid)
            .is_some_and(|path| path.split('/').any(|part| groups.contains(part)))
}

/// The name of a group: whose it is. A number means a process only in one world of processes, so that stands there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
#[display("offshoot-{world}-{pid}-{start_time}")]
struct Name {
    world: u64,
    pid: u32,
    start_time: u64,
}

impl Name {
    fn of_this_process() -> io::Result<Self> {
        let pid = std::process::id();
        Ok(Self { world: sys::process_namespace()?, pid, start_time: sys::stat(pid)?.start_time })
    }

    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("offshoot-")?.splitn(3, '-');
        let world = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        Some(Self { world, pid, start_time: parts.next()?.parse().ok()? })
    }

    /// True if the process that made the group has ended. False for one of another process namespace, of which we cannot tell.
    fn is_dead(self) -> bool {
        sys::process_namespace().is_ok_and(|world| world == self.world)
            && !sys::stat(self.pid)
                .is_ok_and(|found| found.start_time == self.start_time && !found.zombie)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn memory_is_bounded_by_groups_where_home_gives_the_controller() {
        let check = |wanted, subtree_control: Option<&str>, expected: bool| {
            let found = controller(wanted, subtree_control).is_some();
            assert_eq!(found, expected, "{wanted} {subtree_control:?}");
        };
        check(true, Some("cpuset cpu io memory pids\n"), true);
        check(true, Some("memory"), true);
        check(false, Some("memory"), false);
        check(true, Some("cpu memory_x\n"), false);
        check(true, Some("\n"), false);
        check(true, None, false);
    }

    /// Another controller stands for that of memory, which this machine may have in groups of the first version.
    const ANY: Controller =
        Controller { name: "hugetlb", limit: "hugetlb.2MB.max", events: "hugetlb.2MB.events" };

    #[test]
    fn a_program_with_a_bound_has_a_group_of_its_own_that_is_gone_with_it() {
        let test = "a_program_with_a_bound_has_a_group_of_its_own_that_is_gone_with_it";
        let none = || offshoot_test_support::lacking(test, "no controller can be given to groups");
        let Some(home) = offshoot_test_support::control_group() else { return none() };
        let control = home.join(CONTROL);
        if fs::write(&control, "+hugetlb").is_err() {
            return none();
        }
        let cgroup = Cgroup::make(home, Some(ANY)).expect("the group can be made");
        assert_eq!(cgroup.own(), cgroup.path.join(SELF));
        assert!(cgroup.own().join(MEMBERS).exists());
        let bounded = cgroup.bounded(2 << 20).expect("one below it can be made");
        let limit = fs::read_to_string(bounded.path.join(ANY.limit)).expect("it has a bound");
        assert_eq!(limit, "2097152\n");
        #[expect(clippy::disallowed_methods, reason = "a process to put into a group")]
        let mut program = Command::new("sleep").arg("60").spawn().expect("it can be started");
        assert!(bounded.take(program.id()));
        let group = sys::control_group(program.id()).expect("the kernel tells");
        let name = cgroup.path.file_name().expect("it has a name").to_str().expect("of letters");
        assert!(group.contains(&format!("/{name}/run-")), "{group}");
        // Whose it is can be told as before.
        assert_eq!(groups_of_others(program.id()), [name]);
        assert!(!bounded.has_killed());
        let path = bounded.path.clone();
        drop(bounded);
        let ended = program.wait().expect("it is a child");
        assert!(!ended.success(), "what is in the group goes with it");
        let whole = cgroup.path.clone();
        drop(cgroup);
        assert!(!path.exists() && !whole.exists());
        let _ = fs::write(control, "-hugetlb");
    }

    #[test]
    fn a_name_tells_whose_a_group_is() {
        let ours = Name::of_this_process().expect("the system tells");
        assert_eq!(Name::parse(&ours.to_string()), Some(ours));
        let check = |name: Name, dead: bool| assert_eq!(name.is_dead(), dead, "{name}");
        check(ours, false);
        check(Name { start_time: ours.start_time + 1, ..ours }, true);
        check(Name { pid: u32::MAX, ..ours }, true);
        // Whether a process of another namespace has ended cannot be known here.
        check(Name { world: ours.world + 1, pid: u32::MAX, ..ours }, false);
        for other in ["offshoot-1-2", "offshoot-1-2-3-4", "offshoot-a-2-3", "other-1-2-3", ""] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
