//! Control groups: what nothing else tells is found by them, and none of them is left.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use offshoot_process::{Identity, Wanted, end_leftovers, leftovers};
use offshoot_test_support::{Watched, control_group, fake_agent, lacking};
use rustix::process::Signal;

use super::FAR;
use super::keeper::signal;
use super::leftovers::Supervisor;

/// A daemon of which nothing tells whose it is: its session is its own, it has no environment, and its parent has ended.
const DAEMON: [&str; 4] = ["fork-grandchild", "--setsid", "--no-env", "--orphan"];

/// The folder of the group in which a process is.
fn group_of(home: &Path, pid: u32) -> PathBuf {
    let groups =
        fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("the file cannot be read");
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).expect("the kernel tells");
    let own = fs::read_to_string("/proc/self/cgroup").expect("the kernel tells");
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).expect("the kernel tells");
    let below = Path::new(group).strip_prefix(own).expect("it is below our own group");
    if below.as_os_str().is_empty() { home.to_owned() } else { home.join(below) }
}

/// The folder of our own group, where the machine permits groups below it.
fn home(test: &str) -> Option<PathBuf> {
    let home = control_group();
    if home.is_none() {
        lacking(test, "no control group of version 2 can be made here");
    }
    home
}

#[test]
fn a_daemon_that_nothing_names_goes_with_a_killed_supervisor() {
    let Some(home) = home("a_daemon_that_nothing_names_goes_with_a_killed_supervisor") else {
        return;
    };
    let check = |flags: &[&str], keepers: usize| {
        let mut supervisor = Supervisor::start(&[flags, &DAEMON, &["hang"]].concat());
        let (mut first, mut second) = (None, None);
        for number in 0..keepers {
            let keeper = supervisor.number("keeper ");
            assert_eq!(group_of(&home, keeper) == home, number == 0, "{flags:?}");
            first = first.or(Some(Watched::new(keeper)));
            second = Some(Watched::new(supervisor.number("child ")));
        }
        let (keeper, child) = (first.expect("one at least"), second.expect("one at least"));
        let daemon = supervisor.number("");
        let group = group_of(&home, supervisor.process.id());
        assert_eq!(group.parent(), Some(&*home), "{flags:?}");
        assert!(group_of(&home, daemon).starts_with(&group), "{flags:?}");
        // What some member has made below it goes too.
        fs::create_dir_all(group.join("below/it")).expect("groups can be made");
        let daemon = Watched::new(daemon);
        supervisor.process.kill().expect("the process cannot be killed");
        supervisor.process.wait().expect("the child cannot be waited for");
        assert!(daemon.is_gone_within(FAR), "{flags:?}");
        assert!(child.is_gone_within(FAR) && keeper.is_gone_within(FAR), "{flags:?}");
        assert!(!group.exists(), "{flags:?}");
    };
    check(&["--keeper", "--subreaper"], 1);
    // A supervisor inside has a group in the one of that outside.
    check(&["--keeper", "--subreaper", "supervise", "--keeper", "--subreaper"], 2);
}

#[test]
fn a_supervisor_leaves_its_group_when_it_ends() {
    let Some(home) = home("a_supervisor_leaves_its_group_when_it_ends") else { return };
    let args = ["--keeper", "--subreaper", "fork-grandchild", "--setsid", "--no-env", "exit", "7"];
    let mut supervisor = Supervisor::start(&args);
    supervisor.number("keeper ");
    supervisor.number("child ");
    let daemon = supervisor.number("");
    let group =
        fs::read_dir(&home).expect("the folder cannot be read").flatten().map(|entry| entry.path());
    let pid = format!("-{}-", supervisor.process.id());
    let is_its = |path: &PathBuf| path.to_string_lossy().contains(&pid);
    // It may have ended meanwhile: what was there then is not.
    let group: Vec<PathBuf> = group.filter(is_its).collect();
    let finished = "finished Code(7) stop=None stragglers=0 lost=0 held=false stray=fake-agent";
    assert_eq!(supervisor.line(), finished);
    supervisor.end();
    assert!(!Path::new(&format!("/proc/{daemon}")).exists());
    assert!(group.iter().all(|group| !group.exists()), "{group:?}");
}

#[test]
fn a_keeper_that_takes_another_ones_place_is_outside_as_well() {
    let Some(home) = home("a_keeper_that_takes_another_ones_place_is_outside_as_well") else {
        return;
    };
    let args = ["--keeper", "--subreaper", "--heartbeat", "100"];
    let mut supervisor = Supervisor::start(&[&args[..], &DAEMON, &["hang"]].concat());
    let stopped = supervisor.number("keeper ");
    let child = supervisor.number("child ");
    let daemon = Watched::new(supervisor.number(""));
    let group = group_of(&home, supervisor.process.id());
    signal(stopped, Signal::STOP);
    assert_eq!(supervisor.line(), format!("replaced {stopped} Stopped"));
    // Some thread of it has started the other keeper.
    let threads = format!("/proc/{}/task", supervisor.process.id());
    let threads = fs::read_dir(threads).expect("the folder cannot be read").flatten();
    let children: String = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .collect();
    let keepers: Vec<u32> = children
        .split_whitespace()
        .map(|pid| pid.parse().expect("a number"))
        .filter(|pid| *pid != child && group_of(&home, *pid) == home)
        .collect();
    // The one that was killed may not have been reaped yet.
    assert!(keepers.iter().any(|keeper| *keeper != stopped), "{children}");
    supervisor.process.kill().expect("the process cannot be killed");
    supervisor.process.wait().expect("the child cannot be waited for");
    assert!(daemon.is_gone_within(FAR));
    let keepers = keepers.into_iter().map(Watched::new);
    assert!(keepers.into_iter().all(|keeper| keeper.is_gone_within(FAR)));
    assert!(!group.exists());
}

#[test]
fn what_a_supervisor_and_its_keeper_have_left_is_found_by_its_group() {
    let Some(home) = home("what_a_supervisor_and_its_keeper_have_left_is_found_by_its_group")
    else {
        return;
    };
    let args = [&["--keeper", "--subreaper"], &DAEMON[..], &["hang"]].concat();
    let mut supervisor = Supervisor::start(&args);
    let keeper = supervisor.number("keeper ");
    let child = supervisor.number("child ");
    let daemon = supervisor.number("");
    let group = group_of(&home, supervisor.process.id());
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).expect("the file cannot be read");
    let start_time = stat.rsplit_once(") ").expect("a line of its form").1.split(' ').nth(19);
    let start_time = start_time.expect("the kernel tells").parse().expect("a number");
    let wanted = Wanted {
        leaders: vec![Identity { pid: child, start_time }],
        variable: "OFFSHOOT_TEST_RUN",
        values: std::collections::HashSet::new(),
    };
    let found = || -> Vec<u32> {
        let mut found: Vec<u32> =
            leftovers(&wanted).expect("/proc can be read").iter().map(|left| left.pid).collect();
        found.sort_unstable();
        found
    };
    // As long as its supervisor lives a group says nothing.
    assert_eq!(found(), [child]);
    // So that it cannot replace the keeper.
    signal(supervisor.process.id(), Signal::STOP);
    signal(keeper, Signal::KILL);
    assert!(Watched::new(keeper).is_gone_within(FAR));
    supervisor.process.kill().expect("the process cannot be killed");
    supervisor.process.wait().expect("the child cannot be waited for");
    let mut left = [child, daemon];
    left.sort_unstable();
    assert_eq!(found(), left);
    let watched = [child, daemon].map(Watched::new);
    let found = leftovers(&wanted).expect("/proc can be read");
    assert_eq!(end_leftovers(found, &wanted, FAR).expect("/proc can be read"), (2, 0));
    assert!(watched.iter().all(|process| process.is_gone_within(FAR)));
    // The next supervisor removes the empty group.
    let mut next = Supervisor::start(&["--keeper", "--subreaper", "exit", "0"]);
    next.number("keeper ");
    next.number("child ");
    next.line();
    next.end();
    assert!(!group.exists());
}

#[test]
fn without_leave_to_make_groups_there_is_none() {
    let Some(home) = home("without_leave_to_make_groups_there_is_none") else { return };
    let mount = home.ancestors().find(|folder| {
        let device = |folder: &Path| fs::metadata(folder).map(|found| found.dev()).ok();
        folder.parent().is_some_and(|above| device(above) != device(folder))
    });
    let mount = mount.expect("it is mounted somewhere").display();
    let script = format!(
        "mount -o remount,bind,ro {mount} && exec {} supervise --keeper --subreaper hang",
        fake_agent().display()
    );
    let mut supervisor =
        Supervisor::by(Path::new("unshare"), &["--mount", "/bin/sh", "-c", &script]);
    let keeper = Watched::new(supervisor.number("keeper "));
    let child = supervisor.number("child ");
    assert_eq!(group_of(&home, child), home);
    let child = Watched::new(child);
    supervisor.process.kill().expect("the process cannot be killed");
    supervisor.process.wait().expect("the child cannot be waited for");
    assert!(child.is_gone_within(FAR) && keeper.is_gone_within(FAR));
}
