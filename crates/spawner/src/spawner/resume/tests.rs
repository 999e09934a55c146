//! Trees that are taken over while less of what came of their pieces is held than there is.

use std::path::Path;

use offshoot_config::Loader;
use offshoot_merge::{OnFailure, Strategy};
use offshoot_model::Reason;
use offshoot_runtime::{Finished, FnRuntime, Launch};
use offshoot_store::{DataFolder, SqliteStore};
use tokio::sync::mpsc;

use super::*;
use crate::handle::FanOut;

const PIECES: u32 = 9;

/// Answers its task; piece 4 fails. The last one hangs where it is asked to, and tells that it has begun.
fn spawner(home: &Path, hangs: Option<mpsc::UnboundedSender<()>>) -> Spawner {
    let last = format!("piece {}", PIECES - 1);
    let runtime = FnRuntime::new("worker", move |launch: Launch, _cx| {
        let (hangs, last) = (hangs.clone(), last.clone());
        async move {
            if let Some(told) = hangs.filter(|_| *launch.task == *last) {
                let _ = told.send(());
                std::future::pending::<()>().await;
            }
            match &*launch.task {
                "piece 4" => Finished::of(Reason::ExitCode { code: 7 }),
                task => Finished::text(task),
            }
        }
    });
    let key = "agents.defaults.subagents.maxConcurrent";
    let config =
        Loader::new().flag(key, "1", "test").load().expect("the configuration was refused");
    let folder = Arc::new(DataFolder::open(home).expect("a data folder"));
    let store = Arc::new(SqliteStore::open(&folder).expect("a record"));
    let builder = Spawner::builder().config(config).store(store).folder(folder).runtime(runtime);
    builder.build().expect("a spawner")
}

fn order(strategy: Strategy, on_failure: OnFailure) -> FanOut {
    let pieces = (0..PIECES).map(|number| Piece::task(format!("piece {number}")));
    FanOut::new(pieces).merge(strategy).on_failure(on_failure)
}

/// The pieces of a tree that is taken over twice, each time with room for so many bytes.
fn check(room: u64, strategy: Strategy, on_failure: OnFailure) -> String {
    let home = tempfile::tempdir().expect("a folder for the test");
    let world = || tokio::runtime::Runtime::new().expect("a runtime");
    let first = world();
    let (root, held) = first.block_on(async {
        let (told, mut hanging) = mpsc::unbounded_channel();
        let session =
            spawner(home.path(), Some(told)).open(RootSpec::new("all")).await.expect("a root");
        let fan = session.fan_out(order(strategy, on_failure)).await.expect("pieces");
        hanging.recv().await.expect("the others are over");
        (session.root(), (session, fan))
    });
    // With the runtime goes the supervisor, as if it were killed; with the handles the last write of the store.
    drop(first);
    drop(held);
    world().block_on(async {
        let spawner = spawner(home.path(), None);
        let tree = spawner.read_back(root, room).await.expect("it is missing");
        let refused = spawner.read_back(root, room).await.expect_err("one at a time");
        assert!(matches!(refused, SpawnerError::Store(StoreError::Held { .. })), "{refused}");
        // Nothing was written: it can be read back again.
        let events = || around_events(&spawner, root);
        let before = events();
        drop(tree);
        let tree = spawner.read_back(root, room).await.expect("it is missing");
        assert_eq!(events(), before);
        let session = tree.resume(RootSpec::new("all")).await.expect("it goes on");
        let fan = session.fan_out(order(strategy, on_failure)).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        assert_eq!((answer.completed, answer.missing()), (PIECES - 1, 1), "{room}");
        let [(key, envelope)] = &answer.failures[..] else { panic!("{:?}", answer.failures) };
        assert_eq!((&**key, &*envelope.error.as_ref().expect("why").code), ("5", "exit_code"));
        let (mut out, values) = (Vec::new(), session.values());
        answer.answer.write_to(&mut out, &values).expect("an answer");
        session.conclude(&answer).await.expect("a whole record");
        String::from_utf8(out).expect("text")
    })
}

fn around_events(spawner: &Spawner, root: RootId) -> usize {
    spawner.surroundings.store.events(root, 0).count()
}

#[test]
fn what_is_not_held_of_pieces_that_are_over_is_read_when_it_is_asked_for() {
    for on_failure in [OnFailure::Skip, OnFailure::Include] {
        let whole = check(u64::MAX, Strategy::Concatenate, on_failure);
        let results: Vec<&str> = whole.split("\n---\n").collect();
        let many = if on_failure == OnFailure::Skip { 8 } else { 9 };
        assert_eq!((results.len(), results[0], results[3]), (many, "piece 0", "piece 3"));
        assert_eq!(results.last(), Some(&"piece 8"));
        // The envelope of a failure names its run, which is another one each time.
        for room in [0, 8, 30] {
            let some = check(room, Strategy::Concatenate, on_failure);
            let again: Vec<&str> = some.split("\n---\n").collect();
            let plain = |results: &[&str]| -> Vec<String> {
                let texts = results.iter().filter(|text| text.starts_with("piece"));
                texts.map(|text| (*text).to_owned()).collect()
            };
            assert_eq!((again.len(), plain(&again)), (many, plain(&results)), "{room}");
        }
    }
}
