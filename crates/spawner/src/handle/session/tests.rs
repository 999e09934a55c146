//! A tree whose record ends in the same moment in which something else happens to it.

use std::collections::VecDeque;
use std::time::Duration;

use offshoot_config::Loader;
use offshoot_model::Reason;
use offshoot_runtime::{Finished, FnRuntime};

use super::*;
use crate::spawner::{RootSpec, Spawner};

/// Asks for pieces, ends the record and asks for more, all before the supervisor takes any of it.
async fn check(max_concurrent: &str, before: usize, after: usize) {
    let runtime = FnRuntime::new("hangs", |_launch, _cx| async {
        std::future::pending::<()>().await;
        Finished::text("")
    });
    let key = "agents.defaults.subagents.maxConcurrent";
    let config = Loader::new()
        .flag(key, max_concurrent, "test")
        .load()
        .expect("the configuration was refused");
    let builder = Spawner::builder().config(config).runtime(runtime);
    let session = builder.build().expect("a spawner").open(RootSpec::new("all")).await;
    let mut session = session.expect("a root");
    let mut spawns = Vec::new();
    for _ in 0..before + after {
        let request = SpawnRequest { task: "hang".into(), ..SpawnRequest::default() };
        let tree = &session.link.tree;
        let run_spec = Arc::clone(&tree.run_spec);
        let asked = Unresolved::of_root(&tree.agent, Origin::Piece, request, run_spec);
        let ask = Box::new(asked.resolve(tree).await.expect("a request"));
        let (reply, _answer) = oneshot::channel();
        spawns.push(Message::Spawn { ask, reply });
    }
    let late = spawns.split_off(before);
    let error = StoreError::NotAFolder { path: "/the/record".into() };
    for message in spawns.into_iter().chain([Message::Halt { error }]).chain(late) {
        session.link.sender.send(message).expect("the tree is over");
    }
    let error = session.ended().await.expect_err("its record is broken");
    assert!(matches!(error, SpawnerError::Record(_)), "{error}");
    let over = tokio::time::timeout(Duration::from_secs(3600), session.link.sender.closed()).await;
    assert!(over.is_ok(), "{max_concurrent}, {before}, {after}: its supervisor never ends");
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_whose_record_ends_together_with_spawns_ends_too() {
    for max_concurrent in ["1", "8"] {
        for (before, after) in [(0, 0), (1, 0), (0, 1), (2, 1), (3, 0)] {
            check(max_concurrent, before, after).await;
        }
    }
}

/// Messages that are sent at the very moment at which a supervisor ends are answered, or their senders are told that there is
/// no answer. Nothing is left in the channel, whose senders may live on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_while_a_supervisor_ends_is_answered() {
    /// More than one thread has under way at once.
    const LAST: usize = 64;
    let runtime = FnRuntime::new("quick", |_launch, _cx| async { Finished::text("") });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    for tree in 0..300 {
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let senders = [(); 3].map(|()| {
            let sender = session.link.sender.clone();
            std::thread::spawn(move || {
                let mut last = VecDeque::with_capacity(LAST);
                loop {
                    let (reply, answer) = oneshot::channel();
                    if sender.send(Message::Count { reply }).is_err() {
                        return (sender, last);
                    }
                    last.truncate(LAST - 1);
                    last.push_front(answer);
                }
            })
        });
        session
            .close(Ending::of(Reason::Completed { exit_code: None }))
            .await
            .expect("a whole record");
        for thread in senders {
            let (_sender, last) = thread.join().expect("sending does not panic");
            for answer in last {
                let told = tokio::time::timeout(Duration::from_secs(10), answer).await;
                assert!(told.is_ok(), "tree {tree}: a question is left without an answer");
            }
        }
    }
}
