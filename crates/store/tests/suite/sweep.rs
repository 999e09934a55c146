//! Old trees are removed, and with them the values that no tree names; nothing else is.

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
    disk.store.append(&events).wait().unwrap();
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
fn a_tree_that_a_supervisor_runs_is_not_removed() {
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
    let unnamed = put(&disk.store, "[\"unnamed\"]");
    drop(disk.folder.spool_file().unwrap());
    disk.store.remove_tree(gone.root).unwrap();
    disk.store.remove_tree(other.root).unwrap();

    let expected = disk.store.sweep(&[], LATER, true).unwrap();
    // Two values, the wrapped form of one of them, two folders, one spool file.
    assert_eq!((expected.values, expected.folders, expected.files), (3, 2, 1), "{expected:?}");
    assert!(expected.bytes >= unnamed.size + own.size);
    assert!(disk.store.read(&unnamed).is_ok() && context(&disk, &gone).exists(), "only counted");

    assert_eq!(disk.store.sweep(&[], LATER, false).unwrap(), expected);
    for value in [own, unnamed] {
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

    assert_eq!(disk.store.sweep(&[], LATER, false).unwrap().values, 1);
}

#[test]
fn what_trees_leave_goes_beside_those_that_run() {
    let disk = OnDisk::new();
    let (gone, runs) = (tree(&disk, put(&disk.store, "[1]")), tree(&disk, put(&disk.store, "[2]")));
    disk.store.remove_tree(gone.root).unwrap();
    let held = disk.folder.hold(runs.root).unwrap();
    let spool = disk.folder.spool_folder();
    let output = |script: &Script| spool.join(format!("output-{}-2", script.root.run()));
    for script in [&gone, &runs] {
        std::fs::write(output(script), "printed").unwrap();
    }
    let (_open, path) = disk.folder.spool_file().unwrap();
    drop(disk.folder.spool_file().unwrap());
    let tasks = disk.folder.path().join("runs/tasks");
    std::fs::create_dir(&tasks).unwrap();
    std::fs::write(tasks.join("0123"), "a task").unwrap();

    let expected = disk.store.sweep(&[], LATER, true).unwrap();
    let swept = disk.store.sweep(&[], LATER, false).unwrap();
    assert_eq!(swept, expected);
    // A value and its wrapped form, a folder, what one run has printed, and a file that no process has open.
    let counts = (swept.busy, swept.values, swept.folders, swept.files);
    assert_eq!(counts, (true, 2, 1, 2), "{swept:?}");
    assert!(context(&disk, &runs).join("data.json").exists() && !context(&disk, &gone).exists());
    assert!(output(&runs).exists() && !output(&gone).exists());
    assert!(path.exists() && tasks.join("0123").exists());
    drop(held);
    assert_eq!(disk.store.sweep(&[], LATER, false).unwrap().files, 2);
}

#[test]
fn a_value_that_is_stored_again_while_it_is_swept_is_there() {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    let disk = OnDisk::new();
    let old = UNIX_EPOCH + Duration::from_secs(1);
    #[expect(
        clippy::disallowed_methods,
        reason = "files are as old as the clock of the system says"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let now = Timestamp::from_micros(now);
    let done = std::sync::atomic::AtomicBool::new(false);
    let sweep = || disk.store.sweep(&[], now, false).unwrap().values;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                sweep();
            }
        });
        for number in 0..100 {
            let value = put(&disk.store, &format!("[{}]", number % 7));
            let script = tree_of(&disk, value);
            assert!(disk.store.read(&value).is_ok(), "value of tree {number}");
            disk.store.remove_tree(script.root).unwrap();
            // Nothing names it now, and nothing has for long.
            let file = std::fs::File::open(disk.store.path(&value).unwrap());
            let _ = file.and_then(|file| file.set_modified(old));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    sweep();
    assert_eq!(sweep(), 0, "all of them went in the end");
    assert_eq!(disk.store.roots().unwrap(), []);
}

/// A tree whose result is this value.
fn tree_of(disk: &OnDisk, value: VariableRef) -> Script {
    let mut script = Script::new();
    let end = EventKind::Ended(Box::new(Ending::completed(Payload::Stored(value))));
    disk.store.append(&[script.next(end)]).wait().unwrap();
    script
}

#[test]
fn a_tree_that_cannot_be_removed_is_still_known_as_one_that_was_held() {
    let disk = OnDisk::new();
    let script = tree(&disk, put(&disk.store, "[1]"));
    let mark = disk.folder.path().join("locks").join(script.root.to_string());
    // What a supervisor leaves that was killed.
    std::fs::write(&mark, "1\n").unwrap();
    disk.database().execute_batch("ALTER TABLE roots RENAME TO elsewhere").unwrap();
    disk.store.remove_tree(script.root).unwrap_err();
    assert!(mark.exists());
    disk.database().execute_batch("ALTER TABLE elsewhere RENAME TO roots").unwrap();
    assert_eq!(disk.store.remove_tree(script.root).unwrap(), 2);
    assert!(!mark.exists());
}

#[test]
fn what_was_begun_and_never_finished_goes_without_a_look_at_the_record() {
    let disk = OnDisk::new();
    let unnamed = put(&disk.store, "[1]");
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
    assert!(disk.store.read(&unnamed).is_ok() && tasks.join("0123").exists());
    assert!(path.exists(), "a process has it open");
}
