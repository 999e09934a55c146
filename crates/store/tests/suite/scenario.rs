//! The scenario in which everything happens, through both kinds of store: what comes back is what went in, and draws the
//! same tree.

use std::sync::Arc;

use offshoot_model::{Event, EventClass, EventKind, Tree};
use offshoot_store::{DataFolder, MemoryStore, SqliteStore, Store};
use offshoot_test_support::scenario;

fn kept(events: &[Event]) -> Vec<&Event> {
    events.iter().filter(|event| event.kind.class() == EventClass::Kept).collect()
}

/// True if no later event of its kind is about the same run.
fn is_last(event: &Event, events: &[Event]) -> bool {
    let later = events.iter().filter(|it| it.root == event.root && it.seq > event.seq);
    later.filter(|it| it.run == event.run).all(|it| it.kind.name() != event.kind.name())
}

async fn check(store: Arc<dyn Store>, events: &[Event]) {
    // Tree by tree and one event at a time, as a supervisor does at its slowest.
    for event in events {
        store
            .append(std::slice::from_ref(event))
            .await
            .expect("the scenario follows the rules of a record");
    }
    let read: Vec<Event> =
        store.all_events().map(|event| event.expect("what was written can be read")).collect();
    assert_eq!(read.len(), kept(events).len(), "what happened is kept, how it went is not");
    for event in kept(events) {
        let found = store.events(event.root, event.seq - 1).next();
        assert_eq!(&found.expect("it was kept").expect("it cannot be read"), event);
        match &event.kind {
            EventKind::Admitted(about) => {
                assert_eq!(
                    store.admitted(event.root, event.run).expect("a record").as_ref(),
                    Some(&**about)
                );
            }
            // The end of a root that was reopened later is not its last one.
            EventKind::Ended(ending) if is_last(event, events) => {
                assert_eq!(
                    store.ending(event.root, event.run).expect("a record").as_ref(),
                    Some(&**ending)
                );
            }
            _ => {}
        }
    }
    let statuses = |tree: Tree| {
        let mut runs: Vec<_> = tree.nodes().map(|node| (node.run, node.status)).collect();
        runs.sort_unstable();
        runs
    };
    assert_eq!(statuses(Tree::of(&read)), statuses(Tree::of(events)));
}

#[tokio::test]
async fn everything_comes_back_as_it_went_in() {
    let events = scenario::everything();
    check(Arc::new(MemoryStore::new()), &events).await;
    let somewhere = tempfile::tempdir().expect("a folder for the test");
    let folder = DataFolder::open(somewhere.path().join("data")).expect("a data folder");
    check(Arc::new(SqliteStore::open(&folder).expect("a store")), &events).await;
    let again = SqliteStore::open(&folder).expect("the same record, opened again");
    assert_eq!(again.all_events().count(), kept(&events).len());
}
