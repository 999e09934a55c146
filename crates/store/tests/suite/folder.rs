//! The data folder: what is in it, who holds what, and what a run sees.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

use offshoot_model::{ContextEntry, RootId, ValueKind, VariableRef};
use offshoot_store::{DataFolder, MemoryStore, NewValue, SharedContexts, Store, StoreError};

use offshoot_test_support::named_pipe;
use rustix::fs::{FlockOperation, flock};

use crate::sample::{OnDisk, new_run};

fn put(store: &dyn Store, value: NewValue) -> VariableRef {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.put(value)).unwrap()
}

fn entry(name: &str, value: VariableRef) -> ContextEntry {
    ContextEntry { name: name.into(), value }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn it_is_made_on_first_use_for_its_owner_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("deep/down/.offshoot");
    assert!(DataFolder::existing(&path).unwrap().is_none());
    let folder = DataFolder::open(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
    let ignored = std::fs::read_to_string(path.join(".gitignore")).unwrap();
    assert_eq!(ignored, "*\n!config.toml\n!config.json5\n!agents/\n!agents/**\n");
    // It has no record yet, so there is nothing to look at.
    assert!(DataFolder::existing(&path).unwrap().is_none());
    drop(offshoot_store::SqliteStore::open(&folder).unwrap());
    assert!(DataFolder::existing(&path).unwrap().is_some());
    assert!(DataFolder::open(&path).is_ok());
}

#[test]
fn what_others_could_read_is_closed_to_them() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".offshoot");
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // As version control or an earlier offshoot made it.
    let folder = DataFolder::open(&path).unwrap();
    drop(offshoot_store::SqliteStore::open(&folder).unwrap());
    chmod(&path.join("offshoot.db"), 0o644);
    for part in ["blobs", "runs", "spool", "locks", "."] {
        chmod(&path.join(part), 0o755);
    }
    // The data of a user who keeps it elsewhere stands in a folder of theirs.
    chmod(home.path(), 0o755);
    for path in [path.as_path(), home.path()] {
        for _ in 0..2 {
            let folder = DataFolder::open(path).unwrap();
            let store = offshoot_store::SqliteStore::open(&folder).unwrap();
            put(&store, NewValue::bytes(ValueKind::Text, *b"a value"));
            for file in ["offshoot.db", "offshoot.db-wal", "offshoot.id"] {
                if path.join(file).exists() {
                    assert_eq!(mode(&path.join(file)), 0o600, "{file}");
                }
            }
            for part in ["blobs", "runs", "spool", "locks"] {
                assert_eq!(mode(&path.join(part)), 0o700, "{part}");
            }
            assert!(!folder.is_exposed());
        }
    }
    assert_eq!((mode(&path), mode(home.path())), (0o700, 0o755));
}

/// Replaces a part of the data folder by a link to a folder outside, as an agent may do.
fn swap(disk: &OnDisk, part: &str) -> tempfile::TempDir {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("kept"), "kept").unwrap();
    let part = disk.folder.path().join(part);
    let _ = std::fs::remove_dir_all(&part);
    std::fs::create_dir_all(part.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(outside.path(), part).unwrap();
    outside
}

#[test]
fn no_link_in_the_folder_leads_out_of_it() {
    let run = new_run();
    let root = RootId::new(run);
    let text = NewValue::bytes(ValueKind::Text, *b"a value");
    let json = NewValue::bytes(ValueKind::Json, *b"[1]");
    type Act<'a> = &'a dyn Fn(&OnDisk, [VariableRef; 2]) -> bool;
    let link: Act<'_> =
        &|disk, [value, _]| disk.folder.context_link(&disk.store, run, "x", &value).is_ok();
    let wrap: Act<'_> =
        &|disk, [_, value]| disk.folder.context_link(&disk.store, run, "x", &value).is_ok();
    let share: Act<'_> = &|disk, [value, other]| {
        let contexts = SharedContexts::new(&disk.folder, root);
        contexts.of(&disk.store, &[entry("x", value), entry("y", other)]).is_ok()
    };
    let hold: Act<'_> = &|disk, _| disk.folder.hold(root).is_ok();
    let spool: Act<'_> = &|disk, _| disk.folder.spool_file().is_ok();
    let read: Act<'_> = &|disk, [value, _]| disk.store.read(&value).is_ok();
    let part: Act<'_> = &|disk, [value, _]| disk.store.open(&value).is_ok();
    let again: Act<'_> = &|disk, _| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let value = NewValue::bytes(ValueKind::Text, *b"a value");
        runtime.block_on(disk.store.put(value)).is_ok()
    };
    let adopt: Act<'_> = &|disk, _| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let path = disk.folder.spool_folder().join("kept");
        runtime.block_on(disk.store.put(NewValue::adopt(ValueKind::Text, path))).is_ok()
    };
    let shelf = {
        let hash = offshoot_model::ContentHash::of(b"a value").to_string();
        format!("blobs/{}", &hash[..2])
    };
    let context = format!("runs/{run}/context");
    let own = format!("runs/{run}");
    let of_tree = format!("contexts/{root}");
    for (part_of_it, act) in [
        (context.as_str(), link),
        (&context, wrap),
        (&own, link),
        (&of_tree, share),
        ("contexts", share),
        ("spool", share),
        ("locks", hold),
        ("spool", spool),
        ("spool", wrap),
        ("spool", adopt),
        (&shelf, read),
        (&shelf, part),
        (&shelf, again),
        ("blobs", read),
        ("blobs", link),
    ] {
        let disk = OnDisk::new();
        let values = [put(&disk.store, text.clone()), put(&disk.store, json.clone())];
        // What stands in the spool folder stands there for a moment: whatever it becomes would be there already.
        assert!(part_of_it == "spool" || act(&disk, values), "{part_of_it}: undisturbed");
        let outside = swap(&disk, part_of_it);
        assert!(!act(&disk, values), "{part_of_it} was followed");
        let there = std::fs::read_dir(outside.path()).unwrap().count();
        assert_eq!(there, 1, "{part_of_it}: written outside");
    }
    // What is removed is the link.
    for part in [own.as_str(), "runs"] {
        let disk = OnDisk::new();
        let outside = swap(&disk, part);
        std::fs::create_dir(outside.path().join(run.to_string())).unwrap();
        let _ = disk.folder.remove_run_folder(run);
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 2, "{part}");
    }
}

#[test]
fn a_value_that_became_a_link_or_a_pipe_is_not_read() {
    let disk = OnDisk::new();
    let value = put(&disk.store, NewValue::bytes(ValueKind::Text, *b"a value"));
    let path = disk.store.path(&value).unwrap();
    let outside = disk._home.path().join("outside");
    std::fs::write(&outside, "a value").unwrap();
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&outside, &path).unwrap();
    assert!(disk.store.open(&value).is_err() && disk.store.read(&value).is_err());
    std::fs::remove_file(&path).unwrap();
    named_pipe(&path);
    assert!(disk.store.read(&value).is_err(), "and nothing waits for its writer");
    // Stored again, it is a file again.
    std::fs::remove_file(&path).unwrap();
    put(&disk.store, NewValue::bytes(ValueKind::Text, *b"a value"));
    assert_eq!(disk.store.read(&value).unwrap(), b"a value");
}

#[test]
fn a_part_of_a_value_that_was_changed_is_not_handed_out() {
    use std::io::{Read, Seek, SeekFrom};
    let disk = OnDisk::new();
    for size in [100_u64, 3 << 20] {
        let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
        let value = put(&disk.store, NewValue::bytes(ValueKind::Bytes, bytes.clone()));
        let path = disk.store.path(&value).unwrap();
        let part = |store: &offshoot_store::SqliteStore, from: u64| {
            let mut part = [0; 10];
            let mut reader = store.open(&value).unwrap();
            reader.seek(SeekFrom::Start(from))?;
            reader.read_exact(&mut part).map(|()| part)
        };
        assert_eq!(part(&disk.store, 40).unwrap(), bytes[40..50]);
        let mut changed = bytes.clone();
        changed[45] ^= 1;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &changed).unwrap();
        // By the process that knows the value, and by one that has never read it.
        let other = offshoot_store::SqliteStore::open(&disk.folder).unwrap();
        for store in [&disk.store, &other] {
            let error = part(store, 40).unwrap_err();
            assert!(error.to_string().contains("has been changed"), "{error}");
        }
    }
}

#[test]
fn a_process_that_holds_a_lock_and_stands_still_is_named_and_not_waited_for() {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    let told: Arc<Mutex<Vec<Option<u32>>>> = Arc::default();
    let OnDisk { folder, _home, store } = OnDisk::new();
    drop(store);
    let (tells, short) = (Arc::clone(&told), Duration::from_millis(30));
    let folder = folder.with_patience(short, short);
    let folder = folder.on_stall(move |stalled| tells.lock().unwrap().push(stalled.pid));
    let store = offshoot_store::SqliteStore::open(&folder).unwrap();
    let mut script = crate::sample::Script::new();
    let event = script.many(1);
    let own = Some(std::process::id());
    for name in ["writing", "values"] {
        let lock = folder.path().join("locks").join(name);
        let held = File::options().create(true).append(true).open(lock).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let error = match name {
            "writing" => store.append(&event).wait().unwrap_err(),
            _ => folder.hold(RootId::new(new_run())).unwrap_err(),
        };
        assert!(matches!(error, StoreError::Stalled { pid, .. } if pid == own), "{error:?}");
        assert!(error.hint().unwrap().contains("kill -CONT"));
        assert_eq!(std::mem::take(&mut *told.lock().unwrap()), [own]);
        flock(&held, FlockOperation::Unlock).unwrap();
    }
    // As if nothing had happened.
    store.append(&event).wait().unwrap();
    folder.hold(RootId::new(new_run())).unwrap();
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn a_folder_with_something_in_it_is_not_hidden_from_version_control() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("main.rs"), "fn main() {}").unwrap();
    DataFolder::open(home.path()).unwrap();
    assert!(!home.path().join(".gitignore").exists());
}

#[test]
fn a_file_is_no_folder() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    std::fs::write(&path, "").unwrap();
    for error in [DataFolder::open(&path).unwrap_err(), DataFolder::existing(&path).unwrap_err()] {
        assert!(matches!(error, StoreError::NotAFolder { .. }), "{error:?}");
        assert!(error.hint().is_some());
    }
    assert!(DataFolder::open(path.join("below")).is_err());
}

/// A process that has the lock of a tree as its standard input, for so many seconds.
fn child_with_the_lock(path: &Path, seconds: &str) -> Child {
    let file = File::options().write(true).open(path).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a stranger that has inherited a lock")]
    let mut sleep = Command::new("sleep");
    sleep.arg(seconds).stdin(file).spawn().unwrap()
}

#[test]
fn a_lock_outlives_its_holder_by_a_child_on_its_way_and_no_longer() {
    let disk = OnDisk::new();
    let root = RootId::new(new_run());
    let path = disk.folder.path().join("locks").join(root.to_string());
    drop(disk.folder.hold(root).unwrap());
    let mut gone = child_with_the_lock(Path::new("/dev/null"), "0");
    gone.wait().unwrap();
    std::fs::write(&path, format!("{}\n", gone.id())).unwrap();
    // Long enough that a request at once is too early.
    let mut child = child_with_the_lock(&path, "0.3");
    assert!(!disk.folder.is_held(root).unwrap(), "a look waits for the child too");
    child.wait().unwrap();
    let mut child = child_with_the_lock(&path, "0.3");
    let held = disk.folder.hold(root).expect("it waits for the child");
    assert!(matches!(disk.folder.hold(root), Err(StoreError::Held { .. })), "and has it then");
    child.wait().unwrap();
    drop(held);
    // No child on its way lasts that long.
    std::fs::write(&path, format!("{}\n", gone.id())).unwrap();
    let mut child = child_with_the_lock(&path, "1000");
    assert!(disk.folder.is_held(root).unwrap());
    match disk.folder.hold(root) {
        Err(StoreError::Held { pid, .. }) => assert_eq!(pid, Some(gone.id())),
        other => panic!("{other:?}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Nor is it waited for where a process lives that may have it.
    std::fs::write(&path, format!("{}\n", std::process::id())).unwrap();
    let mut child = child_with_the_lock(&path, "0.3");
    assert!(matches!(disk.folder.hold(root), Err(StoreError::Held { .. })));
    child.wait().unwrap();
}

#[test]
fn a_tree_is_held_once_and_two_trees_at_once() {
    let disk = OnDisk::new();
    let (one, other) = (RootId::new(new_run()), RootId::new(new_run()));
    let held = disk.folder.hold(one).unwrap();
    let _beside = disk.folder.hold(other).unwrap();
    match disk.folder.hold(one) {
        Err(StoreError::Held { root, pid }) => {
            assert_eq!((root, pid), (one, Some(std::process::id())));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(held.root(), one);
    assert!(disk.folder.is_held(one).unwrap());
    drop(held);
    assert!(!disk.folder.is_held(one).unwrap());
    let again = disk.folder.hold(one).unwrap();
    drop(again);
    // Nothing is left of a tree that no process holds.
    let locks = disk.folder.path().join("locks");
    assert!(!locks.join(one.to_string()).exists());
    assert!(locks.join(other.to_string()).exists());
}

#[test]
fn many_who_want_the_same_tree_hold_it_one_at_a_time() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let disk = OnDisk::new();
    let root = RootId::new(new_run());
    let (holders, held) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let Ok(_lock) = disk.folder.hold(root) else { continue };
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                    held.fetch_add(1, Ordering::SeqCst);
                    holders.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert!(held.into_inner() > 0);
}

#[test]
fn a_new_tree_is_held_although_others_look_for_abandoned_ones() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let disk = OnDisk::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    drop(disk.folder.abandoned().expect("the folder can be read"));
                }
            });
        }
        let held: Vec<_> =
            (0..3_000).map(|_| disk.folder.hold_new(RootId::new(new_run())).map(drop)).collect();
        done.store(true, Ordering::SeqCst);
        assert_eq!(held.into_iter().filter_map(Result::err).map(|it| it.to_string()).next(), None);
    });
}

#[test]
fn a_reader_takes_no_tree_from_its_supervisor() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let disk = OnDisk::new();
    let root = RootId::new(new_run());
    // What a holder that was killed leaves.
    let file = disk.folder.path().join("locks").join(root.to_string());
    std::fs::write(file, "1\n").unwrap();
    let done = AtomicBool::new(false);
    let look = || {
        while !done.load(Ordering::SeqCst) {
            disk.folder.is_held(root).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(look);
        scope.spawn(look);
        let held = (0..500).filter(|_| disk.folder.hold(root).is_ok()).count();
        done.store(true, Ordering::SeqCst);
        assert_eq!(held, 500);
    });
}

#[test]
fn a_raw_variable_is_the_value_itself() {
    let disk = OnDisk::new();
    let value = put(&disk.store, NewValue::bytes(ValueKind::Text, *b"line\n"));
    let run = new_run();
    let path = disk.folder.context_link(&disk.store, run, "my log.txt", &value).unwrap();
    assert!(path.is_absolute());
    assert_eq!(path, disk.folder.run_folder(run).join("context/my%20log.txt"));
    assert_eq!(std::fs::read(&path).unwrap(), b"line\n");
    assert_eq!(mode(&path), 0o444);
    // Again is no error: a run that is tried again sees the same.
    disk.folder.context_link(&disk.store, run, "my log.txt", &value).unwrap();
    // No name leaves the folder.
    let outside = disk.folder.context_link(&disk.store, run, "../../../x", &value).unwrap();
    assert_eq!(outside.parent(), path.parent());
    assert!(matches!(
        disk.folder.context_link(&disk.store, run, &"x".repeat(201), &value),
        Err(StoreError::NameTooLong { length: 201 })
    ));
}

#[test]
fn a_json_variable_is_wrapped_once() {
    let disk = OnDisk::new();
    for kind in [ValueKind::Json, ValueKind::Result] {
        let value = put(&disk.store, NewValue::bytes(kind, *br#"{"b": 1, "a": [2]}"#));
        let paths = [(); 2]
            .map(|()| disk.folder.context_link(&disk.store, new_run(), "data", &value).unwrap());
        let text = std::fs::read_to_string(&paths[0]).unwrap();
        // The value keeps its bytes.
        assert!(text.ends_with(",\"value\":{\"b\": 1, \"a\": [2]}}\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["ref"], serde_json::to_value(value).unwrap());
        assert_eq!(paths[0].file_name().unwrap(), "data.json");
        // Beside the value stands one wrapped form, however many see it.
        let stored = disk.store.path(&value).unwrap();
        let beside = std::fs::read_dir(stored.parent().unwrap()).unwrap();
        let wrapped = beside.filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_some_and(|end| end == kind.as_ref())
        });
        assert_eq!(wrapped.count(), 1);
        assert_eq!(std::fs::read_to_string(&paths[1]).unwrap(), text);
        // What a power failure or a program may leave of it is written again.
        let damaged = stored.with_extension(kind.as_ref());
        for damage in [String::new(), text.replace('1', "7")] {
            std::fs::remove_file(&damaged).unwrap();
            std::fs::write(&damaged, damage).unwrap();
            let path = disk.folder.context_link(&disk.store, new_run(), "data", &value).unwrap();
            assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        }
    }
}

#[test]
fn a_value_in_memory_can_be_given_to_a_run_too() {
    let disk = OnDisk::new();
    let store = MemoryStore::new();
    let value = put(&store, NewValue::bytes(ValueKind::Bytes, *b"\xff"));
    let path = disk.folder.context_link(&store, new_run(), "raw", &value).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), b"\xff");
}

#[test]
fn a_missing_value_cannot_be_given() {
    let disk = OnDisk::new();
    for kind in [ValueKind::Text, ValueKind::Json] {
        let hash = offshoot_model::ContentHash::of(b"never stored");
        let value = VariableRef { hash, size: 12, kind };
        let error = disk.folder.context_link(&disk.store, new_run(), "x", &value).unwrap_err();
        assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    }
}

#[test]
fn a_damaged_value_cannot_be_given() {
    let disk = OnDisk::new();
    for kind in [ValueKind::Text, ValueKind::Json] {
        let value = put(&disk.store, NewValue::bytes(kind, *b"[1]"));
        let path = disk.store.path(&value).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "[2]").unwrap();
        let error = disk.folder.context_link(&disk.store, new_run(), "x", &value).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    }
}

#[test]
fn a_large_json_variable_is_wrapped_without_being_held() {
    let disk = OnDisk::new();
    let text = format!("[\"{}\"]", "x".repeat(3 << 20));
    let value = put(&disk.store, NewValue::bytes(ValueKind::Json, text.as_bytes()));
    for _ in 0..2 {
        let path = disk.folder.context_link(&disk.store, new_run(), "data", &value).unwrap();
        assert!(std::fs::read_to_string(path).unwrap().ends_with(&format!("{text}}}\n")));
    }
}

#[test]
fn spool_files_are_new_and_private() {
    let disk = OnDisk::new();
    let (mut file, path) = disk.folder.spool_file().unwrap();
    let (_, other) = disk.folder.spool_file().unwrap();
    assert_ne!(path, other);
    assert_eq!(mode(&path), 0o600);
    std::io::Write::write_all(&mut file, b"output").unwrap();
    let value = put(&disk.store, NewValue::adopt(ValueKind::Text, &path));
    assert_eq!(disk.store.read(&value).unwrap(), b"output");
    assert_eq!(std::fs::read_dir(disk.folder.spool_folder()).unwrap().count(), 1);
}
