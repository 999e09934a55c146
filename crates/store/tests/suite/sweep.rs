//! Old trees go, and with them what nobody names; nothing else does.

use std::path::PathBuf;

use offshoot_model::{Ending, EventKind, Payload, Timestamp, ValueKind, VariableRef};
use offshoot_store::{NewValue, SqliteStore, Store, StoreError, Swept};

use crate::sample::{OnDisk, Script, admitted};

/// So late that every file is old.
const LATER: Timestamp = Timestamp::from_micros(1 << 60);

fn put(store: &SqliteStore, text: &str) -> VariableRef {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let value = NewValue::bytes(ValueKind::Json, text.as_bytes());
    runtime.block_on(store.put(value)).unwrap()
}

/// A tree whose result is this value, which its run also saw as a variable.
fn tree(disk: &OnDisk, value: VariableRef) -> Script {
    let mut script = Script::new();
    let result = Ending::completed(Payload::Stored(value));
    let events = vec![
        script.next(admitted("agent:main:main")),
        script.next(EventKind::Ended(Box::new(result))),
    ];
    disk.store.append(events).wait().unwrap();
    disk.folder.context_link(&disk.store, script.root.run(), "data", &value).unwrap();
    script
}

fn context(disk: &OnDisk, script: &Script) -> PathBuf {
    disk.folder.run_folder(script.root.run()).join("context")
}

#[test]
fn a_tree_is_removed_whole_and_alone() {
    let disk = OnDisk::new();
    let (one, other) = (tree(&disk, put(&disk.store, "[1]")), tree(&disk, put(&disk.store, "[2]")));
    assert_eq!(disk.store.remove_tree(one.root).unwrap(), 2);
    let roots = disk.store.roots().unwrap();
    assert_eq!((roots.len(), roots[0].root), (1, other.root));
    assert_eq!(disk.store.events(one.root, 0).count(), 0);
    assert!(disk.store.find(&one.root.to_string()).unwrap().is_empty());
    assert_eq!(disk.store.verify_record(other.root).unwrap(), 2);
    assert_eq!(disk.store.remove_tree(one.root).unwrap(), 0, "again is no error");
}

#[test]
fn a_tree_that_somebody_runs_is_not_removed() {
    let disk = OnDisk::new();
    let script = tree(&disk, put(&disk.store, "[1]"));
    let held = disk.folder.hold(script.root).unwrap();
    assert!(matches!(disk.store.remove_tree(script.root), Err(StoreError::Held { .. })));
    assert_eq!(disk.store.events(script.root, 0).count(), 2);
    drop(held);
    assert_eq!(disk.store.remove_tree(script.root).unwrap(), 2);
}

#[test]
fn what_no_record_names_goes_and_what_one_names_stays() {
    let disk = OnDisk::new();
    let (shared, own) = (put(&disk.store, "[\"shared\"]"), put(&disk.store, "[\"own\"]"));
    let (gone, other, stays) = (tree(&disk, shared), tree(&disk, own), tree(&disk, shared));
    let nobody = put(&disk.store, "[\"nobody's\"]");
    drop(disk.folder.spool_file().unwrap());
    disk.store.remove_tree(gone.root).unwrap();
    disk.store.remove_tree(other.root).unwrap();

    let expected = disk.store.sweep(&[], LATER, true).unwrap();
    // Two values, the wrapped form of one of them, two folders, one spool file.
    assert_eq!((expected.values, expected.folders, expected.files), (3, 2, 1), "{expected:?}");
    assert!(expected.bytes >= nobody.size + own.size);
    assert!(disk.store.read(&nobody).is_ok() && context(&disk, &gone).exists(), "only counted");

    assert_eq!(disk.store.sweep(&[], LATER, false).unwrap(), expected);
    for value in [own, nobody] {
        assert!(matches!(disk.store.read(&value), Err(StoreError::Missing { .. })));
    }
    assert_eq!(disk.store.read(&shared).unwrap(), b"[\"shared\"]");
    assert!(!context(&disk, &gone).exists() && context(&disk, &stays).exists());
    let seen = std::fs::read_to_string(context(&disk, &stays).join("data.json")).unwrap();
    assert!(seen.contains("shared"), "{seen}");
    assert_eq!(disk.store.sweep(&[], LATER, false).unwrap(), Swept::default());
}

#[test]
fn a_dry_run_counts_what_would_go_with_a_tree() {
    let disk = OnDisk::new();
    let script = tree(&disk, put(&disk.store, "[\"own\"]"));
    assert_eq!(disk.store.sweep(&[], LATER, true).unwrap(), Swept::default());
    let expected = disk.store.sweep(&[script.root], LATER, true).unwrap();
    assert_eq!((expected.values, expected.folders), (2, 1));
    disk.store.remove_tree(script.root).unwrap();
    assert_eq!(disk.store.sweep(&[], LATER, false).unwrap(), expected);
}

#[test]
fn what_is_fresh_and_what_may_be_in_use_is_left_alone() {
    let disk = OnDisk::new();
    let value = put(&disk.store, "[1]");
    // By a clock that was set back, the file is from the future.
    for now in [Timestamp::EPOCH, Timestamp::from_micros(1)] {
        assert_eq!(disk.store.sweep(&[], now, false).unwrap(), Swept::default());
    }
    // The hour begins anew when the value is stored again.
    let path = disk.store.path(&value).unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    std::fs::File::open(&path).unwrap().set_modified(old).unwrap();
    put(&disk.store, "[1]");
    assert!(std::fs::metadata(&path).unwrap().modified().unwrap() > old);

    let held = disk.folder.hold(Script::new().root).unwrap();
    let swept = disk.store.sweep(&[], LATER, false).unwrap();
    assert_eq!(swept, Swept { busy: true, ..Swept::default() });
    assert!(disk.store.read(&value).is_ok());
    drop(held);
    assert_eq!(disk.store.sweep(&[], LATER, false).unwrap().values, 1);
}

#[test]
fn who_opens_a_tree_while_it_is_swept_keeps_its_values() {
    let disk = OnDisk::new();
    std::thread::scope(|scope| {
        let sweeps = scope.spawn(|| {
            (0..200).map(|_| disk.store.sweep(&[], LATER, false).unwrap().values).sum::<u64>()
        });
        scope.spawn(|| {
            for number in 0..200 {
                // Whoever holds a tree first, as resuming does, may count on every value.
                let mut script = Script::new();
                let _held = disk.folder.hold(script.root).unwrap();
                let value = put(&disk.store, &format!("[{}]", number % 7));
                let result = Ending::completed(Payload::Stored(value));
                let end = EventKind::Ended(Box::new(result));
                disk.store.append(vec![script.next(end)]).wait().unwrap();
                assert!(disk.store.read(&value).is_ok(), "value of tree {number}");
            }
        });
        sweeps.join().unwrap();
    });
    for root in disk.store.roots().unwrap() {
        let ending = disk.store.ending(root.root, root.root.run()).unwrap().unwrap();
        let Some(Payload::Stored(value)) = ending.output else { panic!("{ending:?}") };
        disk.store.verify(&value).unwrap();
    }
}

#[test]
fn what_was_begun_and_never_finished_goes_without_a_look_at_the_record() {
    let disk = OnDisk::new();
    let nobody = put(&disk.store, "[1]");
    drop(disk.folder.spool_file().unwrap());
    std::fs::write(disk.folder.path().join("blobs/.new-half"), "half a val").unwrap();
    let tasks = disk.folder.path().join("runs/tasks");
    std::fs::create_dir(&tasks).unwrap();
    std::fs::write(tasks.join("0123.of-a-run"), "half a ta").unwrap();
    std::fs::write(tasks.join("0123"), "a whole task").unwrap();
    let (_open, path) = disk.folder.spool_file().unwrap();
    let held = disk.folder.hold(Script::new().root).unwrap();
    assert!(disk.folder.sweep_unfinished().unwrap().busy);
    drop(held);
    let swept = disk.folder.sweep_unfinished().unwrap();
    assert_eq!((swept.files, swept.values, swept.bytes), (3, 0, 19));
    assert!(disk.store.read(&nobody).is_ok() && tasks.join("0123").exists());
    assert!(path.exists(), "somebody has it open");
}
