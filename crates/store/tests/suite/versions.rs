//! A database of each earlier version is brought to this one, and one of a later version is left alone.

use std::path::Path;

use offshoot_model::{Event, EventClass};
use offshoot_store::{DataFolder, SqliteStore, Store, StoreError};
use offshoot_test_support::scenario;

use offshoot_test_support::Disk;

/// The scenario in which everything happens, written by each earlier version when that was the latest.
const EARLIER: &[(u32, &[u8])] = &[
    (1, include_bytes!("../versions/1.db")),
    (2, include_bytes!("../versions/2.db")),
    (3, include_bytes!("../versions/3.db")),
];

fn with(database: &[u8]) -> (tempfile::TempDir, DataFolder) {
    let home = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(home.path().join("data")).unwrap();
    std::fs::write(folder.path().join("offshoot.db"), database).unwrap();
    (home, folder)
}

fn version(folder: &Path) -> u32 {
    let database = rusqlite::Connection::open(folder.join("offshoot.db")).unwrap();
    database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn every_earlier_version_becomes_this_one() {
    let (_home, new) = with(&[]);
    drop(SqliteStore::open(&new).unwrap());
    let this = version(new.path());
    assert_eq!(EARLIER.len() as u32 + 1, this, "a version was released without its database here");
    for &(number, database) in EARLIER {
        let (_home, folder) = with(database);
        assert_eq!(version(folder.path()), number);
        let store = SqliteStore::open(&folder).unwrap();
        assert_eq!(version(folder.path()), this);
        let roots = store.roots().unwrap();
        assert!(roots.len() >= 2);
        for root in roots {
            assert_eq!(store.verify_record(root.root).unwrap(), root.last_seq);
            let last = store.events(root.root, root.last_seq - 1).next().unwrap().unwrap();
            assert_eq!(root.last_at, last.at, "what is new is filled in from what there was");
            // It goes on where it ended.
            let next = Event { seq: root.last_seq + 1, ..last };
            store.append(&[next]).wait().unwrap();
            assert_eq!(store.verify_record(root.root).unwrap(), root.last_seq + 1);
        }
        let expected = scenario::everything();
        let kept = |event: &&Event| event.kind.class() == EventClass::Kept;
        let first = expected.iter().find(kept).unwrap();
        assert_eq!(store.all_events().next().unwrap().unwrap().run, first.run);
    }
}

#[test]
fn an_earlier_version_on_a_read_only_disk_is_read_and_left_as_it_is() {
    for &(_, database) in EARLIER {
        let Some(disk) = Disk::of(4 << 20) else { return };
        let folder = DataFolder::open(disk.path().join("data")).unwrap();
        let path = folder.path().join("offshoot.db");
        std::fs::write(&path, database).unwrap();
        disk.make_read_only();
        let store = SqliteStore::open_to_read(&folder).unwrap();
        for root in store.roots().unwrap() {
            assert_eq!(store.verify_record(root.root).unwrap(), root.last_seq);
            assert!(root.last_at > root.opened_at, "what is new is filled in");
        }
        assert_eq!(std::fs::read(&path).unwrap(), database);
    }
}

#[test]
fn many_who_meet_an_earlier_version_bring_it_here_once() {
    for _ in 0..5 {
        let (_home, folder) = with(EARLIER[0].1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert_eq!(SqliteStore::open(&folder).unwrap().roots().unwrap().len(), 2)
                });
            }
        });
    }
}

#[test]
fn a_later_version_is_left_as_it_is() {
    let (_home, folder) = with(EARLIER[0].1);
    let path = folder.path().join("offshoot.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(SqliteStore::open(&folder), Err(StoreError::NewerVersion { found: 99, .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let (_home, folder) = with(EARLIER[0].1);
    let path = folder.path().join("offshoot.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    // What the step adds is there already, so the step cannot be done.
    database.execute_batch("ALTER TABLE roots ADD COLUMN last_at INTEGER").unwrap();
    drop(database);
    assert!(matches!(SqliteStore::open(&folder), Err(StoreError::Database { .. })));
    assert_eq!(version(folder.path()), 1);
}
