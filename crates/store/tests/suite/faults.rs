//! Disks that are full, folders that cannot be written, records that are not ours.

use std::error::Error;
use std::path::Path;

use offshoot_model::{EventKind, ValueKind};
use offshoot_store::{DataFolder, NewValue, SqliteStore, Store, StoreError};

use crate::sample::{OnDisk, Script};
use offshoot_test_support::Disk;

fn put(store: &dyn Store, value: NewValue) -> Result<offshoot_model::VariableRef, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.put(value))
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[test]
fn a_full_disk_loses_no_order_and_is_used_again_when_it_has_space() {
    let Some(disk) = Disk::of(4 << 20) else { return };
    let folder = DataFolder::open(disk.path().join("data")).unwrap();
    let store = SqliteStore::open(&folder).unwrap();
    let (mut one, mut other) = (Script::new(), Script::new());
    store.append(&one.many(1)).wait().unwrap();

    let ballast = disk.fill();
    // More than the last pages of the log can take.
    let lost = one.many(2000);
    let error = store.append(&lost).wait().unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert!(error.hint().unwrap().contains("free space"), "{error:?}");
    assert!(error.source().is_some());
    // What was queued behind it is answered as well, and is not recorded in its place.
    let later = one.many(1);
    assert!(matches!(store.append(&later).wait(), Err(StoreError::Broken { last: 1, .. })));
    // Readers are not disturbed.
    assert_eq!(store.events(one.root, 0).count(), 1);

    std::fs::remove_file(ballast).unwrap();
    store.append(&other.many(3)).wait().unwrap();
    assert!(matches!(store.append(&later).wait(), Err(StoreError::Broken { last: 1, .. })));
    store.append(&lost).wait().unwrap();
    store.append(&later).wait().unwrap();
    assert_eq!(store.verify_record(one.root).unwrap(), 2002);
    assert_eq!(store.verify_record(other.root).unwrap(), 3);
}

#[test]
fn a_value_that_does_not_fit_leaves_nothing_behind() {
    let Some(disk) = Disk::of(2 << 20) else { return };
    let folder = DataFolder::open(disk.path().join("data")).unwrap();
    let store = SqliteStore::open(&folder).unwrap();
    let home = tempfile::tempdir().unwrap();
    let large = home.path().join("large");
    std::fs::write(&large, vec![7; 4 << 20]).unwrap();
    for value in [
        NewValue::file(ValueKind::Bytes, &large),
        NewValue::bytes(ValueKind::Bytes, vec![7; 4 << 20]),
        NewValue::adopt(ValueKind::Bytes, &large),
    ] {
        let error = put(&store, value).unwrap_err();
        assert!(error.is_full(), "{error:?}");
        assert!(error.hint().is_some());
        assert!(large.exists());
        assert_eq!(files_below(&folder.path().join("blobs")), 0);
    }
    let small = put(&store, NewValue::bytes(ValueKind::Bytes, *b"this fits")).unwrap();
    store.verify(&small).unwrap();
    // From another file system, so it is copied and then removed.
    std::fs::write(&large, "smaller now").unwrap();
    let moved = put(&store, NewValue::adopt(ValueKind::Text, &large)).unwrap();
    assert_eq!(store.read(&moved).unwrap(), b"smaller now");
    assert!(!large.exists());
}

#[test]
fn a_folder_that_cannot_be_written_says_so() {
    let Some(disk) = Disk::of(4 << 20) else { return };
    let folder = DataFolder::open(disk.path().join("data")).unwrap();
    let store = SqliteStore::open(&folder).unwrap();
    let mut script = Script::new();
    store.append(&script.many(1)).wait().unwrap();
    drop(store);
    disk.make_read_only();

    let error = DataFolder::open(disk.path().join("new")).unwrap_err();
    assert!(error.is_read_only() && error.hint().is_some(), "{error:?}");
    assert!(error.to_string().contains("new"), "{error}");
    // The folder itself is there; whatever needs to write into it says the same.
    let folder = DataFolder::open(disk.path().join("data")).unwrap();
    let error = SqliteStore::open(&folder).unwrap_err();
    assert!(error.is_read_only() && error.hint().is_some(), "{error:?}");
    let error = folder.hold(script.root).unwrap_err();
    assert!(error.is_read_only(), "{error:?}");
    let error = folder.spool_file().unwrap_err();
    assert!(error.is_read_only(), "{error:?}");
}

/// The files of a folder on a read-only disk, beside the database itself.
#[derive(Clone, Copy, Debug)]
enum Beside {
    /// Nothing: the process that had it open has closed it.
    Nothing,
    /// A log, as in a copy of the folder.
    Log,
    /// A log and its index, as after a crash.
    LogAndIndex,
}

#[test]
fn a_record_on_a_read_only_disk_can_be_read_with_all_that_was_committed() {
    for beside in [Beside::Nothing, Beside::Log, Beside::LogAndIndex] {
        let Some(disk) = Disk::of(4 << 20) else { return };
        let live = OnDisk::new();
        let mut script = Script::new();
        let value = put(&live.store, NewValue::bytes(ValueKind::Text, *b"a value")).unwrap();
        live.store.append(&script.many(20)).wait().unwrap();
        // A name with which an address must be careful.
        let path = disk.path().join("100% of it? #1");
        let folder = DataFolder::open(&path).unwrap();
        let names: &[&str] = match beside {
            Beside::Nothing => {
                live.database().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
                &["offshoot.db"]
            }
            Beside::Log => &["offshoot.db", "offshoot.db-wal"],
            Beside::LogAndIndex => &["offshoot.db", "offshoot.db-wal", "offshoot.db-shm"],
        };
        for name in names {
            std::fs::copy(live.folder.path().join(name), path.join(name)).unwrap();
        }
        disk.make_read_only();
        let store = SqliteStore::open_to_read(&folder).unwrap();
        assert_eq!(store.roots().unwrap().len(), 1, "{beside:?}");
        assert_eq!(store.verify_record(script.root).unwrap(), 20, "{beside:?}");
        assert_eq!(store.events(script.root, 0).count(), 20, "{beside:?}");
        assert!(!folder.is_held(script.root).unwrap());
        assert!(matches!(store.read(&value), Err(StoreError::Missing { .. })), "not copied");
        // Writing is refused as before, and says why.
        let error = store.append(&script.many(1)).wait().unwrap_err();
        assert!(error.is_read_only() && error.hint().is_some(), "{error:?}");
    }
}

#[test]
fn a_newer_record_is_refused() {
    let disk = OnDisk::new();
    disk.database().pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteStore::open(&disk.folder).unwrap_err();
    assert!(matches!(error, StoreError::NewerVersion { found: 99, .. }), "{error:?}");
    assert!(error.to_string().contains("has version 99"), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let disk = OnDisk::new();
    drop(disk.store);
    std::fs::write(disk.folder.path().join("offshoot.db"), "not a database at all".repeat(99))
        .unwrap();
    let error = SqliteStore::open(&disk.folder).unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error:?}");
}

#[test]
fn a_changed_record_does_not_verify() {
    let cases = [
        ("UPDATE events SET at = at + 1 WHERE seq = 3", 3),
        ("UPDATE events SET body = '\"waiting\"' WHERE seq = 3", 3),
        ("UPDATE events SET kind = 'waiting' WHERE seq = 3", 3),
        ("UPDATE events SET run = zeroblob(16) WHERE seq = 3", 3),
        ("DELETE FROM events WHERE seq = 3", 3),
        ("DELETE FROM events WHERE seq = 5", 5),
        ("UPDATE events SET chain = zeroblob(32) WHERE seq = 3", 3),
        ("UPDATE roots SET last_seq = 4", 6),
    ];
    for (change, first_wrong) in cases {
        let disk = OnDisk::new();
        let mut script = Script::new();
        disk.store.append(&script.many(5)).wait().unwrap();
        assert_eq!(disk.store.verify_record(script.root).unwrap(), 5);
        assert_eq!(disk.database().execute(change, ()).unwrap(), 1);
        match disk.store.verify_record(script.root) {
            Err(StoreError::Tampered { seq, .. }) => assert_eq!(seq, first_wrong, "{change}"),
            other => panic!("{change}: {other:?}"),
        }
    }
}

#[test]
fn an_event_that_cannot_be_read_is_an_error_in_its_place() {
    let disk = OnDisk::new();
    let mut script = Script::new();
    disk.store.append(&script.many(3)).wait().unwrap();
    disk.database()
        .execute("UPDATE events SET body = '\"from_the_future\"' WHERE seq = 2", ())
        .unwrap();
    let read: Vec<_> = disk.store.events(script.root, 0).collect();
    assert!(
        matches!(&read[..], [Ok(_), Err(StoreError::Unreadable { seq: 2, .. }), Ok(_)]),
        "{read:?}"
    );
}

#[test]
fn an_event_about_a_path_that_is_not_utf_8_is_recorded() {
    use std::os::unix::ffi::OsStrExt;
    let disk = OnDisk::new();
    let mut script = Script::new();
    let mut admission = crate::sample::admission("agent:main:main");
    admission.input = Some(offshoot_model::InputRange {
        path: std::sync::Arc::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff").into()),
        offset: 0,
        length: 1,
        header: 0,
        hash: None,
    });
    let event = script.next(EventKind::Admitted(Box::new(admission)));
    disk.store.append(std::slice::from_ref(&event)).wait().unwrap();
    let read: Vec<_> = disk.store.events(script.root, 0).collect::<Result<_, _>>().unwrap();
    assert_eq!(read, [event]);
}

#[test]
fn a_damaged_value_is_told_and_replaced() {
    let disk = OnDisk::new();
    let value = NewValue::bytes(ValueKind::Text, *b"the truth");
    let reference = put(&disk.store, value.clone()).unwrap();
    let path = disk.store.path(&reference).unwrap();
    for damage in ["the lie..", "longer than before"] {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, damage).unwrap();
        assert!(matches!(disk.store.read(&reference), Err(StoreError::Corrupt { .. })));
        assert!(matches!(disk.store.verify(&reference), Err(StoreError::Corrupt { .. })));
        put(&disk.store, value.clone()).unwrap();
        assert_eq!(disk.store.read(&reference).unwrap(), b"the truth");
    }
}

#[test]
fn errors_name_the_thing_and_end_without_a_stop() {
    let script = Script::new();
    let errors = [
        StoreError::Broken { root: script.root, last: 4, seq: 7 },
        StoreError::Held { root: script.root, pid: Some(41) },
        StoreError::Held { root: script.root, pid: None },
        StoreError::Overloaded { waiting: 9 },
        StoreError::Closed,
    ];
    let root = script.root;
    let expected = [
        format!("the record of tree {root} ends at event 4, and event 7 cannot follow it"),
        format!("tree {root} is held by process 41"),
        format!("tree {root} is held by another process"),
        "9 events wait to be written, and no more are taken".to_owned(),
        "the record is closed".to_owned(),
    ];
    assert_eq!(errors.map(|error| error.to_string()), expected);
}
