//! A keeper whose supervisor goes without a word.

use offshoot_test_support::{Watched, fake_agent};

use super::*;
use crate::{Child, Identity, Options, Processes, Program};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const FAR: std::time::Duration = std::time::Duration::from_secs(60);

fn hanging(processes: &Processes) -> Child {
    let program = Program { args: vec!["hang".into()], ..Program::new(fake_agent(), "/") };
    processes.spawn(program).expect("the program cannot be started")
}

#[tokio::test]
async fn only_what_is_recorded_is_killed() {
    let processes = Processes::start(Options::default()).expect("processes cannot be held");
    let command =
        KeeperCommand { program: fake_agent().into(), args: vec!["keeper".into()], log: None };
    let children: Vec<Child> = (0..5).map(|_| hanging(&processes)).collect();
    let [known, told, removed, reused, unknown] =
        [0, 1, 2, 3, 4].map(|index: usize| children[index].identity());
    // Started a moment later under the same number: another process.
    let reused = Identity { start_time: reused.start_time + 1, ..reused };

    let mut link =
        Link::start(&command, TOKEN, None, [known].into_iter()).expect("a keeper comes up");
    link.add(told).expect("the keeper is gone");
    link.add(removed).expect("the keeper is gone");
    link.add(reused).expect("the keeper is gone");
    link.remove(removed).expect("the keeper is gone");
    let watch = |identity: Identity| Watched::new(identity.pid);
    let [known, told, removed, reused, unknown] =
        [known, told, removed, reused, unknown].map(watch);
    link.break_off();

    assert!(known.is_gone_within(FAR) && told.is_gone_within(FAR));
    assert!(!removed.is_gone() && !reused.is_gone() && !unknown.is_gone());
}

#[tokio::test]
async fn a_keeper_is_not_woken_by_what_starts_and_ends() {
    let command =
        KeeperCommand { program: fake_agent().into(), args: vec!["keeper".into()], log: None };
    let mut link = Link::start(&command, TOKEN, None, [].into_iter()).expect("a keeper comes up");
    let before = times_it_slept(link.pid());
    // No process has such a number: it is over what the kernel gives.
    let absent = Identity { pid: (1 << 22) + 1, start_time: 1 };
    for _ in 0..1000 {
        link.add(absent).expect("the keeper lives");
        link.remove(absent).expect("the keeper lives");
    }
    // Once it may have gone to sleep meanwhile.
    let slept = times_it_slept(link.pid()) - before;
    assert!(slept <= 1, "it slept {slept} times");
}

fn times_it_slept(pid: u32) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the file cannot be read");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.expect("the kernel counts").trim().parse().expect("a number")
}

#[tokio::test]
async fn a_process_that_carries_the_token_is_killed() {
    let processes = Processes::start(Options::default()).expect("processes cannot be held");
    let (carrier, other) = (hanging(&processes), hanging(&processes));
    let [carrier, other] = [carrier.identity(), other.identity()].map(|child| child.pid);
    let token = processes.token();
    // Both carry the token of `processes`: a keeper of another one kills neither.
    let [carrier, other] = [carrier, other].map(Watched::new);
    let command =
        KeeperCommand { program: fake_agent().into(), args: vec!["keeper".into()], log: None };
    Link::start(&command, TOKEN, None, [].into_iter()).expect("a keeper comes up").break_off();
    assert!(!carrier.is_gone() && !other.is_gone());
    Link::start(&command, token, None, [].into_iter()).expect("a keeper comes up").break_off();
    assert!(carrier.is_gone_within(FAR) && other.is_gone_within(FAR));
}

#[tokio::test]
async fn a_keeper_that_is_stopped_can_be_told() {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    let command =
        KeeperCommand { program: fake_agent().into(), args: vec!["keeper".into()], log: None };
    let link = Link::start(&command, TOKEN, None, [].into_iter()).expect("a keeper comes up");
    let pid = link.pid();
    assert_eq!(state::state_of(pid), KeeperState::Holds { pid });
    let raw = i32::try_from(pid).ok().filter(|raw| *raw > 1).and_then(Pid::from_raw);
    let process = raw.expect("a number of a process");
    let signal = |signal, until| {
        kill_process(process, signal).expect("the process cannot be signalled");
        waitid(WaitId::Pid(process), until | WaitIdOptions::NOWAIT)
            .expect("the child cannot be waited for");
    };
    signal(Signal::STOP, WaitIdOptions::STOPPED);
    assert!(link.is_stopped() && !link.has_ended());
    assert_eq!(state::state_of(pid), KeeperState::Stopped { pid });
    signal(Signal::CONT, WaitIdOptions::CONTINUED);
    assert_eq!(state::state_of(pid), KeeperState::Holds { pid });
    assert_eq!(state::state_of(std::process::id()), KeeperState::Missing);
}
