//! Children never outlive their supervisor, not even when it is killed.

use std::fs;
use std::path::{Path, PathBuf};

use offshoot_process::{
    KeeperCommand, KeeperError, KeeperState, NeverStop, Options, Processes, ProcessesError,
    keeper_of,
};
use offshoot_test_support::{Watched, fake_agent};
use rustix::process::{Pid, Signal, kill_process};

use super::leftovers::Supervisor;
use super::{FAR, LIST_DESCRIPTORS, inherited, shell, text, within};

pub(super) fn signal(pid: u32, signal: Signal) {
    let raw = i32::try_from(pid).ok().filter(|pid| *pid > 1);
    let pid = Pid::from_raw(raw.expect("a number of a process"));
    kill_process(pid.expect("it is not 0"), signal).expect("the process cannot be signalled");
}

fn kept() -> Options {
    let keeper =
        KeeperCommand { program: fake_agent().into(), args: vec!["keeper".into()], log: None };
    Options { keeper: Some(keeper), ..Options::default() }
}

#[test]
fn children_do_not_outlive_a_killed_supervisor() {
    for (flags, actions) in [
        (&["--keeper"][..], &["fork-grandchild", "hang"][..]),
        (&["--keeper"], &["ignore-term", "fork-grandchild", "--setsid", "hang"]),
        (&["--keeper", "--subreaper"], &["fork-grandchild", "--setsid", "--hold-stdout", "hang"]),
        (&["--keeper"], &["fork-grandchild", "--no-env", "hang"]),
        // Only its parent tells.
        (&["--keeper"], &["fork-grandchild", "--setsid", "--no-env", "hang"]),
        (&["--keeper", "--subreaper"], &["fork-grandchild", "--setsid", "--other-env", "hang"]),
    ] {
        let mut supervisor = Supervisor::start(&[flags, actions].concat());
        let keeper = Watched::new(supervisor.number("keeper "));
        let child = Watched::new(supervisor.number("child "));
        let grandchild = Watched::new(supervisor.number(""));
        assert!(!child.is_gone() && !grandchild.is_gone());
        supervisor.process.kill().expect("the process cannot be killed");
        supervisor.process.wait().expect("the child cannot be waited for");
        assert!(child.is_gone_within(FAR), "{actions:?}");
        assert!(grandchild.is_gone_within(FAR), "{actions:?}");
        assert!(keeper.is_gone_within(FAR), "{actions:?}");
    }
}

#[test]
fn a_supervisor_inside_goes_with_the_one_outside() {
    let actions = ["--keeper", "supervise", "--keeper", "fork-grandchild", "--setsid", "hang"];
    let mut supervisor = Supervisor::start(&actions);
    let processes = ["keeper ", "child ", "keeper ", "child ", ""]
        .map(|word| Watched::new(supervisor.number(word)));
    supervisor.process.kill().expect("the process cannot be killed");
    supervisor.process.wait().expect("the child cannot be waited for");
    assert!(processes.iter().all(|process| process.is_gone_within(FAR)));
}

#[test]
fn the_keeper_holds_nothing_and_no_run_reaches_it() {
    let mut supervisor = Supervisor::start(&["--keeper", "pid", "hang"]);
    let keeper = supervisor.number("keeper ");
    let child = Watched::new(supervisor.number("child "));
    supervisor.line();
    let folder = PathBuf::from(format!("/proc/{keeper}"));
    let stat = fs::read_to_string(folder.join("stat")).expect("the file cannot be read");
    let fields: Vec<&str> =
        stat.rsplit_once(") ").expect("a line of its form").1.split(' ').collect();
    // Group and session are its own.
    assert_eq!(fields[2..4], [keeper.to_string(), keeper.to_string()]);
    assert_eq!(fs::read(folder.join("environ")).expect("the file cannot be read"), b"");
    assert_eq!(
        fs::read_link(folder.join("cwd")).expect("the link cannot be read"),
        PathBuf::from("/")
    );
    let mut open: Vec<(String, PathBuf)> = fs::read_dir(folder.join("fd"))
        .expect("the folder cannot be read")
        .map(|entry| entry.expect("it can be listed"))
        .map(|entry| (entry.file_name().into_string().expect("a number"), entry.path()))
        .map(|(number, path)| (number, fs::read_link(path).expect("the link cannot be read")))
        .collect();
    open.sort();
    let open: Vec<(&str, String)> =
        open.iter().map(|(number, path)| (&**number, path.display().to_string())).collect();
    let [("0", ledger), ("1", line), ("2", nowhere)] = &open[..] else { panic!("{open:?}") };
    assert!(ledger.starts_with("/memfd:keeper") && line.starts_with("socket:"), "{open:?}");
    assert_eq!(nowhere, "/dev/null");
    supervisor.process.kill().expect("the process cannot be killed");
    supervisor.process.wait().expect("the child cannot be waited for");
    assert!(child.is_gone_within(FAR));
}

#[test]
fn what_the_supervisor_inherited_stays_with_it() {
    // A shell hands descriptor 9 to whatever it starts, as a script under `flock` does.
    let script =
        format!("exec 9>/dev/null; exec {} supervise --keeper pid hang", fake_agent().display());
    let mut supervisor = Supervisor::by(Path::new("/bin/sh"), &["-c", &script]);
    let keeper = supervisor.number("keeper ");
    let child = Watched::new(supervisor.number("child "));
    supervisor.line();
    assert!(!PathBuf::from(format!("/proc/{keeper}/fd/9")).exists());
    assert!(PathBuf::from(format!("/proc/{}/fd/9", supervisor.process.id())).exists());
    supervisor.process.kill().expect("the process cannot be killed");
    supervisor.process.wait().expect("the child cannot be waited for");
    assert!(child.is_gone_within(FAR));
}

#[test]
fn a_keeper_goes_with_its_supervisor() {
    let mut supervisor = Supervisor::start(&["--keeper", "exit", "7"]);
    let keeper = supervisor.number("keeper ");
    let child = Watched::new(supervisor.number("child "));
    assert_eq!(supervisor.line(), "finished Code(7) stop=None stragglers=0 lost=0 held=false");
    supervisor.end();
    assert!(child.is_gone());
    // Reaped by the supervisor, so that not even its number is left.
    assert!(!PathBuf::from(format!("/proc/{keeper}")).exists());
}

#[test]
fn a_dead_keeper_is_replaced_at_the_next_start() {
    // In a process of its own, so that its only keeper is known.
    let mut supervisor = Supervisor::start(&["--keeper", "--again", "fork-grandchild", "hang"]);
    let first = supervisor.number("keeper ");
    let older = Watched::new(supervisor.number("child "));
    let oldest = Watched::new(supervisor.number(""));
    // It has killed its keeper and started a second child.
    let newer = Watched::new(supervisor.number("child "));
    let second = supervisor.number("keeper ");
    assert_ne!(first, second);
    let newest = Watched::new(supervisor.number(""));
    supervisor.process.kill().expect("the process cannot be killed");
    supervisor.process.wait().expect("the child cannot be waited for");
    // The new one was told of the older child too.
    for process in [older, oldest, newer, newest] {
        assert!(process.is_gone_within(FAR));
    }
}

#[test]
fn a_keeper_that_is_none_is_an_error() {
    let start = |program: &str| {
        let keeper = KeeperCommand { program: program.into(), args: vec![], log: None };
        Processes::start(Options { keeper: Some(keeper), ..Options::default() })
    };
    let error = start("/bin/true").expect_err("it says nothing");
    assert_eq!(error.to_string(), "keeper /bin/true does not answer");
    let error = start("/no/such/program").expect_err("it is not there");
    assert!(matches!(error, ProcessesError::Keeper(KeeperError::Start { .. })), "{error}");
}

#[tokio::test]
async fn children_of_a_kept_supervisor_see_no_pipe_of_it() {
    let processes = Processes::start(kept()).expect("a keeper comes up");
    let child = processes.spawn(shell(LIST_DESCRIPTORS)).expect("the program cannot be started");
    assert_eq!(text(&within(child.wait(NeverStop)).await.stdout), inherited());
}

#[test]
fn a_keeper_that_does_not_hold_is_replaced() {
    // One that ends is replaced at once, and one that is stopped when it has not answered.
    for (sent, found, heartbeat) in
        [(Signal::STOP, "Stopped", "100"), (Signal::KILL, "Ended", "1000000")]
    {
        let flags = ["--keeper", "--subreaper", "--heartbeat", heartbeat];
        let actions = ["fork-grandchild", "hang"];
        let mut supervisor = Supervisor::start(&[&flags[..], &actions].concat());
        let failed = supervisor.number("keeper ");
        let child = Watched::new(supervisor.number("child "));
        let grandchild = Watched::new(supervisor.number(""));
        let first = Watched::new(failed);
        let own = supervisor.process.id();
        assert_eq!(keeper_of(own), KeeperState::Holds { pid: failed });
        signal(failed, sent);
        // The first line since then: while it answered, nothing was noticed.
        assert_eq!(supervisor.line(), format!("replaced {failed} {found}"));
        assert!(first.is_gone_within(FAR), "it must not wake up again");
        assert_eq!(keeper_of(failed), KeeperState::Missing, "{found}");
        let KeeperState::Holds { pid } = keeper_of(own) else { panic!("{:?}", keeper_of(own)) };
        assert_ne!(pid, failed);
        assert!(!child.is_gone() && !grandchild.is_gone());
        supervisor.process.kill().expect("the process cannot be killed");
        supervisor.process.wait().expect("the child cannot be waited for");
        assert!(child.is_gone_within(FAR) && grandchild.is_gone_within(FAR));
    }
}
