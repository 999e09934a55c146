//! The durability of a record, and what other processes see of it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use offshoot_model::{RootId, RunId};
use offshoot_store::{DataFolder, SqliteStore, Store, Urgency};

use crate::sample::{OnDisk, Script, ended};

/// Tells the test below to be the writer, and where.
const WRITE_INTO: &str = "OFFSHOOT_TEST_WRITE_INTO";
const ROOT: RunId = RunId::from_bytes(*b"the root's bytes");

/// Not a test of its own: the process that [`recorded_before_told`] kills. Without the variable it has nothing to do.
#[test]
fn writer_process() {
    #[expect(clippy::disallowed_methods, reason = "the parent says so in no other way")]
    let Ok(path) = std::env::var(WRITE_INTO) else { return };
    let folder = DataFolder::open(path).unwrap();
    let store = SqliteStore::open(&folder).unwrap();
    let _held = folder.hold(RootId::new(ROOT)).unwrap();
    let mut script = Script::after(RootId::new(ROOT), 0);
    loop {
        // Some of each are in flight when the kill comes.
        let commits: Vec<_> = (0..10).map(|_| store.append(&script.many(3))).collect();
        commits.into_iter().for_each(|commit| commit.wait().unwrap());
        println!("\ntold {}", script.last());
    }
}

#[test]
fn recorded_before_told() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data");
    let folder = DataFolder::open(&path).unwrap();
    let store = SqliteStore::open(&folder).unwrap();
    let root = RootId::new(ROOT);
    #[expect(clippy::disallowed_methods, reason = "only another process can be killed")]
    let mut writer = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::writer_process", "--nocapture", "--test-threads=1"])
        .env(WRITE_INTO, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(writer.stdout.take().unwrap())
        .lines()
        .filter_map(|line| line.unwrap().strip_prefix("told ").map(|n| n.parse::<u64>().unwrap()));
    for _ in 0..20 {
        // A second process reads while the first writes, and sees whole calls.
        let last = told.next().expect("it writes until it is killed");
        let seen = store.events(root, 0).map(|event| event.unwrap().seq).last().unwrap();
        assert!(seen >= last && seen.is_multiple_of(3), "told {last}, seen {seen}");
    }
    match folder.hold(root) {
        Err(offshoot_store::StoreError::Held { pid, .. }) => assert_eq!(pid, Some(writer.id())),
        other => panic!("{other:?}"),
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    // What was still in the pipe was told, too.
    let last = told.last().unwrap_or(0);

    // The kernel has let go of the tree, and the record goes on.
    let _held = folder.hold(root).unwrap();
    let recorded = store.verify_record(root).unwrap();
    assert!(
        recorded >= last && recorded >= 600 && recorded.is_multiple_of(3),
        "{recorded}, told {last}"
    );
    let mut script = Script::after(root, recorded);
    store.append(&script.many(1)).wait().unwrap();
    assert_eq!(store.verify_record(root).unwrap(), recorded + 1);
}

#[test]
fn a_record_outlives_its_store() {
    let disk = OnDisk::new();
    let mut script = Script::new();
    // No caller waits: closing does.
    drop(disk.store.append(&script.many(1000)));
    drop(disk.store);
    let store = SqliteStore::open(&disk.folder).unwrap();
    assert_eq!(store.verify_record(script.root).unwrap(), 1000);
}

#[test]
fn what_waits_together_is_committed_together() {
    let disk = OnDisk::new();
    // While another process writes, ours gather.
    let other = disk.database();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut scripts: Vec<_> = (0..50).map(|_| Script::new()).collect();
    let commits: Vec<_> = (0..20)
        .flat_map(|_| {
            scripts.iter_mut().map(|script| disk.store.append(&script.many(1))).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(disk.store.commits(), 0);
    other.execute_batch("ROLLBACK").unwrap();
    commits.into_iter().for_each(|commit| commit.wait().unwrap());
    // The first transaction had begun with what there was, the second takes the rest.
    assert!(disk.store.commits() <= 2, "{} transactions", disk.store.commits());
    assert_eq!(disk.store.roots().unwrap().len(), 50);
}

#[test]
fn an_event_for_which_no_caller_waits_is_written_with_others() {
    let disk = OnDisk::new();
    let mut script = Script::new();
    disk.store.append(&script.many(1)).wait().unwrap();
    let soon = |script: &mut Script| {
        disk.store.record(&[Arc::new(script.many(1).remove(0))], Urgency::Soon)
    };
    #[expect(clippy::disallowed_methods, reason = "the thread that writes waits for real time")]
    let now = Instant::now;
    let start = now();
    // No other request comes, and it is written all the same.
    soon(&mut script).wait().unwrap();
    assert!(now() - start >= Duration::from_millis(4), "it did not wait");
    let gathered: Vec<_> = (0..20).map(|_| soon(&mut script)).collect();
    disk.store.append(&script.many(1)).wait().unwrap();
    for commit in gathered {
        assert!(matches!(commit.now_or_never(), Some(Ok(()))), "haste takes along what was before");
    }
    assert_eq!(disk.store.verify_record(script.root).unwrap(), 23);
}

#[test]
fn two_stores_in_one_folder_take_turns() {
    let disk = OnDisk::new();
    let other = SqliteStore::open(&disk.folder).unwrap();
    let roots = std::thread::scope(|scope| {
        let write = |store: &SqliteStore| {
            let mut script = Script::new();
            (0..100).for_each(|_| store.append(&script.many(1)).wait().unwrap());
            script.root
        };
        let threads = [&disk.store, &other].map(|store| scope.spawn(move || write(store)));
        threads.map(|thread| thread.join().unwrap())
    });
    for (root, store) in roots.into_iter().zip([&other, &disk.store]) {
        assert_eq!(store.verify_record(root).unwrap(), 100);
    }
    // Both about the same tree: the later one is refused, and the record stays whole.
    let mut script = Script::after(roots[0], 100);
    let event = script.many(1);
    disk.store.append(&event).wait().unwrap();
    assert!(other.append(&event).wait().is_err());
    assert_eq!(other.verify_record(roots[0]).unwrap(), 101);
}

#[test]
fn many_first_users_make_one_database() {
    for _ in 0..5 {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("data");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let folder = DataFolder::open(&path).unwrap();
                    let store = SqliteStore::open(&folder).unwrap();
                    store.append(&Script::new().many(1)).wait().unwrap();
                });
            }
        });
        let store = SqliteStore::open(&DataFolder::open(&path).unwrap()).unwrap();
        assert_eq!(store.roots().unwrap().len(), 4);
    }
}

#[test]
fn a_writer_is_not_held_up_by_a_slow_reader() {
    let disk = OnDisk::new();
    let mut script = Script::new();
    disk.store.append(&script.many(5000)).wait().unwrap();
    let mut slow = disk.store.events(script.root, 0);
    assert_eq!(slow.next().unwrap().unwrap().seq, 1);
    disk.store.append(&script.many(5000)).wait().unwrap();
    // Between pages a reader holds nothing: the log can be carried over whole.
    let busy: i64 =
        disk.database().query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    assert_eq!(slow.count(), 9999);
}

#[test]
fn a_log_that_a_reader_held_up_becomes_small_again() {
    let disk = OnDisk::new();
    let log = disk.folder.path().join("offshoot.db-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let mut script = Script::new();
    disk.store.append(&script.many(1)).wait().unwrap();
    let reader = disk.database();
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    const LARGE: u64 = 24 << 20;
    let answer = "x".repeat(1 << 20);
    while length() < LARGE {
        disk.store.append(&[script.next(ended(&answer))]).wait().unwrap();
    }
    drop(reader);
    for _ in 0..3 {
        disk.store.append(&script.many(1)).wait().unwrap();
    }
    assert!(length() <= 16 << 20, "{}", length());
}
