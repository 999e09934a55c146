//! Stop, grace, kill.

use std::time::Duration;

use offshoot_process::{Exit, Program, Rung, Stop, StopHandle};
use offshoot_test_support::Watched;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{FAR, agent, announced, processes, shell, text, within};

const LONG: Duration = Duration::from_secs(600);

/// Starts a program, makes the requests once it has printed its first line, and answers how it ended.
async fn stopped(program: Program, requests: &[Stop]) -> offshoot_process::Finished {
    let (program, mut lines) = announced(program);
    let child = processes().spawn(program).expect("the program cannot be started");
    let leader = Watched::new(child.identity().pid);
    let (handle, stop) = StopHandle::new();
    let ask = async {
        lines.recv().await.expect("it prints a line when it is ready");
        for request in requests {
            handle.stop(*request);
            // The waiting side hears each, rather than the last alone.
            tokio::task::yield_now().await;
        }
    };
    let (finished, ()) = within(async { tokio::join!(child.wait(stop), ask) }).await;
    assert!(leader.is_gone());
    finished
}

#[tokio::test]
async fn who_hangs_is_asked_and_goes() {
    let finished = stopped(agent(&["pid", "hang"]), &[Stop::Soft { grace: LONG }]).await;
    assert_eq!((finished.exit, finished.stop), (Exit::Signal(15), Some(Rung::Asked)));
}

/// The system knows of an end before the thread does that waits for it, which may have been stopped meanwhile.
#[tokio::test]
async fn an_end_that_was_not_seen_yet_comes_before_a_request() {
    for request in [Stop::Firm, Stop::Soft { grace: LONG }] {
        let child = processes().spawn(shell("exit 0")).expect("the program cannot be started");
        let pid = i32::try_from(child.identity().pid).ok().and_then(Pid::from_raw).expect("a pid");
        // The thread of this runtime waits here, and hears of nothing.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).expect("it is a child");
        let (handle, stop) = StopHandle::new();
        handle.stop(request);
        let finished = within(child.wait(stop)).await;
        assert_eq!((finished.exit, finished.stop), (Exit::Code(0), None));
    }
}

#[tokio::test]
async fn who_is_asked_may_finish_its_work() {
    let script = "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 600 & wait; done";
    let finished = stopped(shell(script), &[Stop::Soft { grace: LONG }]).await;
    assert_eq!((finished.exit, finished.stop), (Exit::Code(3), Some(Rung::Asked)));
    assert_eq!(text(&finished.stdout), "ready\nsaved\n");
}

#[tokio::test]
async fn who_is_stopped_still_hears() {
    let script =
        "trap 'exit 4' TERM; echo ready; kill -STOP $$; while :; do sleep 600 & wait; done";
    let finished = stopped(shell(script), &[Stop::Soft { grace: LONG }]).await;
    assert_eq!((finished.exit, finished.stop), (Exit::Code(4), Some(Rung::Asked)));
}

#[tokio::test]
async fn soft_then_firm() {
    let deaf = || agent(&["ignore-term", "pid", "hang"]);
    for requests in [
        &[Stop::Soft { grace: Duration::from_millis(50) }][..],
        &[Stop::Soft { grace: Duration::ZERO }],
        &[Stop::Soft { grace: LONG }, Stop::Firm],
        &[Stop::Soft { grace: LONG }, Stop::Soft { grace: Duration::from_millis(50) }],
        &[Stop::Firm],
        &[Stop::Firm, Stop::Soft { grace: LONG }],
    ] {
        let finished = stopped(deaf(), requests).await;
        assert_eq!(finished.exit, Exit::Signal(9), "{requests:?}");
        assert_eq!(finished.stop, Some(Rung::Killed), "{requests:?}");
    }
}

#[tokio::test]
async fn the_group_goes_with_its_leader() {
    let (program, mut lines) = announced(agent(&["ignore-term", "fork-grandchild", "hang"]));
    let child = processes().spawn(program).expect("the program cannot be started");
    let (handle, stop) = StopHandle::new();
    let ask = async {
        let pid = lines.recv().await.expect("the program printed nothing");
        let grandchild = Watched::new(pid.parse().expect("a number"));
        handle.stop(Stop::Soft { grace: Duration::from_millis(20) });
        grandchild
    };
    let (finished, grandchild) = within(async { tokio::join!(child.wait(stop), ask) }).await;
    assert_eq!(finished.exit, Exit::Signal(9));
    assert!(grandchild.is_gone());
}

#[tokio::test]
async fn a_request_made_before_the_wait_is_heard() {
    let child = processes().spawn(agent(&["hang"])).expect("the program cannot be started");
    let (handle, stop) = StopHandle::new();
    handle.stop(Stop::Firm);
    assert_eq!(within(child.wait(stop)).await.exit, Exit::Signal(9));
}

#[tokio::test]
async fn a_stop_raced_with_the_end_is_one_or_the_other() {
    let processes = processes();
    for round in 0..50 {
        let (program, mut lines) = announced(agent(&["pid", "exit", "5"]));
        let child = processes.spawn(program).expect("the program cannot be started");
        let leader = Watched::new(child.identity().pid);
        let (handle, stop) = StopHandle::new();
        let ask = async {
            lines.recv().await;
            // A later moment each time: the first requests come before the end, the last ones after it.
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            handle.stop(Stop::Soft { grace: LONG });
        };
        let (finished, ()) = within(async { tokio::join!(child.wait(stop), ask) }).await;
        match (finished.exit, finished.stop) {
            (Exit::Code(5), _) | (Exit::Signal(15), Some(Rung::Asked)) => {}
            other => panic!("{other:?}"),
        }
        assert!(leader.is_gone());
    }
    assert!(processes.live().is_empty());
}

#[tokio::test]
async fn a_dropped_wait_kills() {
    let (program, mut lines) = announced(agent(&["ignore-term", "fork-grandchild", "hang"]));
    let processes = processes();
    let child = processes.spawn(program).expect("the program cannot be started");
    let leader = Watched::new(child.identity().pid);
    let grandchild = tokio::select! {
        _ = child.wait(offshoot_process::NeverStop) => panic!("it hangs"),
        pid = lines.recv() => pid.expect("the program printed no number"),
    };
    let grandchild = Watched::new(grandchild.parse().expect("a number"));
    assert!(leader.is_gone_within(FAR) && grandchild.is_gone_within(FAR));
}

#[test]
fn a_child_outlives_no_runtime() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let child = runtime.block_on(async { processes().spawn(agent(&["hang"])) });
    let child = child.expect("the program cannot be started");
    let leader = Watched::new(child.identity().pid);
    drop(runtime);
    drop(child);
    assert!(leader.is_gone_within(FAR));
}
