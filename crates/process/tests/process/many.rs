//! Many at once.

use offshoot_process::{Exit, Keep, NeverStop};
use offshoot_test_support::Watched;
use tokio::task::JoinSet;

use super::{agent, processes, text, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_at_once() {
    let processes = processes();
    let mut children = JoinSet::new();
    let mut leaders = Vec::new();
    for number in 0..200u32 {
        let word = number.to_string();
        let mut program = agent(&["print", &word, "flood-stderr", "100000", "exit", "7"]);
        program.stderr = Keep::Last(100).into();
        let child = processes.spawn(program).expect("the program cannot be started");
        leaders.push(Watched::new(child.identity().pid));
        children.spawn(async move { (number, within(child.wait(NeverStop)).await) });
    }
    while let Some(finished) = children.join_next().await {
        let (number, finished) = finished.expect("no wait panics");
        assert_eq!(finished.exit, Exit::Code(7));
        assert_eq!(text(&finished.stdout), format!("{number}\n"));
        assert_eq!(finished.stderr.total, 100_000);
    }
    assert!(leaders.iter().all(Watched::is_gone));
    assert!(processes.live().is_empty());
}

#[tokio::test]
async fn two_hundred_dropped_at_once() {
    let processes = processes();
    let children: Vec<_> = (0..200)
        .map(|_| processes.spawn(agent(&["hang"])).expect("the program cannot be started"))
        .collect();
    let leaders: Vec<_> = children.iter().map(|child| Watched::new(child.identity().pid)).collect();
    drop(children);
    assert!(leaders.iter().all(|leader| leader.is_gone_within(super::FAR)));
}
