//! What is recorded while faults happen, and what must hold afterwards.

use std::collections::HashMap;

use offshoot_model::{Event, EventClass, RootId};
use offshoot_store::{SqliteStore, Store, StoreError};
use offshoot_test_support::scenario;

/// The last event of each tree that was reported as durable.
pub type Acknowledged = HashMap<RootId, u64>;

/// The scenario in which everything happens, in the portions in which a supervisor would record it.
pub fn deeds() -> Vec<Vec<Event>> {
    let kept = |event: &Event| event.kind.class() == EventClass::Kept;
    let mut deeds: Vec<Vec<Event>> = Vec::new();
    for event in scenario::everything().into_iter().filter(kept) {
        match deeds.last_mut() {
            // Two or three at a time, of one tree.
            Some(last) if last.len() < 3 && last[0].root == event.root && event.seq % 3 != 1 => {
                last.push(event);
            }
            _ => deeds.push(vec![event]),
        }
    }
    deeds
}

/// Records all of it, waiting for each answer before the next, and goes on after what fails. What was answered with yes,
/// and the first error.
pub fn append_all(store: &SqliteStore) -> (Acknowledged, Option<StoreError>) {
    let (mut told, mut first) = (Acknowledged::new(), None);
    for deed in deeds() {
        let last = deed.last().expect("a deed has events").clone();
        match store.append(&deed).wait() {
            Ok(()) => {
                told.insert(last.root, last.seq);
            }
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    (told, first)
}

/// What must hold of a record, whatever has happened to it: every chain holds, nothing that was told is lost, what is
/// there is the beginning of what was to be recorded, and it can be completed.
///
/// # Panics
///
/// Where it does not.
pub fn check_record(store: &SqliteStore, told: &Acknowledged) {
    let everything: Vec<Event> = deeds().into_iter().flatten().collect();
    let mut roots: Vec<RootId> = everything.iter().map(|event| event.root).collect();
    roots.dedup();
    for root in roots {
        let expected: Vec<&Event> = everything.iter().filter(|event| event.root == root).collect();
        let read = || -> Vec<Event> {
            store
                .events(root, 0)
                .map(|event| event.expect("what is recorded can be read"))
                .collect()
        };
        let found = read();
        let proven = store.verify_record(root).expect("the chain holds");
        assert_eq!(proven, found.len() as u64);
        assert!(found.iter().eq(expected[..found.len()].iter().copied()), "the beginning of it");
        let last = told.get(&root).copied().unwrap_or(0);
        assert!(proven >= last, "event {last} was told, and the record ends at {proven}");
        // What was not recorded can be appended as if nothing had happened.
        let rest: Vec<Event> = expected[found.len()..].iter().map(|&event| event.clone()).collect();
        if !rest.is_empty() {
            store.append(&rest).wait().expect("there is nothing in the way any more");
        }
        assert_eq!(store.verify_record(root).expect("the chain holds"), expected.len() as u64);
    }
}
