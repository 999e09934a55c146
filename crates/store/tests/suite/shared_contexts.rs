//! The variables that runs of a tree start with, as files that runs with the same ones share.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use offshoot_model::{ContextEntry, RootId, ValueKind, VariableRef};
use offshoot_store::{NewValue, SharedContexts, Store, StoreError};

use crate::sample::{OnDisk, new_run};

fn put(disk: &OnDisk, kind: ValueKind, bytes: &[u8]) -> VariableRef {
    disk_put(disk, NewValue::bytes(kind, bytes))
}

fn disk_put(disk: &OnDisk, value: NewValue) -> VariableRef {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(disk.store.put(value)).unwrap()
}

fn entry(name: &str, value: VariableRef) -> ContextEntry {
    ContextEntry { name: name.into(), value }
}

fn contexts(disk: &OnDisk) -> SharedContexts {
    SharedContexts::new(&disk.folder, RootId::new(new_run()))
}

/// The number of folders of a tree.
fn folders(contexts: &Path) -> usize {
    fs::read_dir(contexts).unwrap().count()
}

#[test]
fn the_manifest_lists_what_a_run_may_read() {
    let disk = OnDisk::new();
    let value = put(&disk, ValueKind::Json, b"[1]");
    let names = ["a \"quoted\" name", "other"];
    let variables = names.map(|name| entry(name, value));
    let context = contexts(&disk).of(&disk.store, &variables).unwrap();
    let manifest = fs::read_to_string(&context.manifest).unwrap();
    let json: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    for (name, path) in names.iter().zip(&context.files) {
        let path = path.to_str().unwrap();
        assert_eq!(json[name], serde_json::json!({ "path": path, "size": 3, "type": "json" }));
        assert!(fs::read_to_string(path).unwrap().ends_with(",\"value\":[1]}\n"));
    }
}

#[test]
fn runs_with_the_same_variables_share_a_folder_and_others_have_their_own() {
    let disk = OnDisk::new();
    let contexts = contexts(&disk);
    let (one, two) = (put(&disk, ValueKind::Text, b"1"), put(&disk, ValueKind::Text, b"2"));
    let of = |variables: &[ContextEntry]| contexts.of(&disk.store, variables).unwrap();
    let first = of(&[entry("x", one), entry("y", two)]);
    assert_eq!(of(&[entry("x", one), entry("y", two)]), first);
    let there = first.manifest.ancestors().nth(2).unwrap();
    assert_eq!(folders(there), 1);
    // The same names with other values, the same values under other names, one of them alone, and names that run together.
    let others = [
        vec![entry("x", two), entry("y", one)],
        vec![entry("y", one), entry("x", two)],
        vec![entry("x", one)],
        vec![entry("xy", one)],
    ];
    for (count, variables) in (2..).zip(&others) {
        let other = of(variables);
        assert_eq!(folders(there), count);
        for (ContextEntry { value, .. }, path) in variables.iter().zip(&other.files) {
            assert_eq!(fs::read(path).unwrap(), disk.store.read(value).unwrap());
        }
    }
    // Another tree has other folders: they go with it.
    let elsewhere = self::contexts(&disk).of(&disk.store, &[entry("x", one)]).unwrap();
    assert!(!elsewhere.manifest.starts_with(there));
}

/// A file that an agent removes or overwrites is as it was for the next run.
#[test]
fn what_was_changed_is_put_there_anew() {
    let disk = OnDisk::new();
    let contexts = contexts(&disk);
    let variables = [
        entry("text", put(&disk, ValueKind::Text, b"a text")),
        entry("json", put(&disk, ValueKind::Json, b"[1]")),
        entry("large", put(&disk, ValueKind::Text, "x".repeat(3 << 20).as_bytes())),
    ];
    let context = contexts.of(&disk.store, &variables).unwrap();
    let files = || context.files.iter().chain([&context.manifest]);
    let whole: Vec<Vec<u8>> = files().map(|path| fs::read(path).unwrap()).collect();
    for path in files() {
        for change in ["removed", "replaced"] {
            fs::remove_file(path).unwrap();
            if change == "replaced" {
                fs::write(path, "something else").unwrap();
            }
            // By one that remembers the folder, and by the next supervisor, which does not.
            assert_eq!(contexts.of(&disk.store, &variables).unwrap(), context);
            let now: Vec<Vec<u8>> = files().map(|path| fs::read(path).unwrap()).collect();
            assert!(now == whole, "{change}: {path:?}");
        }
    }
}

/// A run of the supervisor before may still be reading: a file that is as it should be is left alone.
#[test]
fn another_supervisor_finds_the_folders_of_the_one_before() {
    let disk = OnDisk::new();
    let root = RootId::new(new_run());
    let value = put(&disk, ValueKind::Text, b"a text");
    let by_a_supervisor = || {
        let contexts = SharedContexts::new(&disk.folder, root);
        let context = contexts.of(&disk.store, &[entry("x", value)]).unwrap();
        let numbers =
            [&context.files[0], &context.manifest].map(|p| fs::metadata(p).unwrap().ino());
        (context, numbers)
    };
    let (context, numbers) = by_a_supervisor();
    assert_eq!(by_a_supervisor(), (context.clone(), numbers));
    // One that was killed while it wrote the list.
    fs::write(&context.manifest, "{").unwrap();
    assert_eq!(by_a_supervisor().0, context);
    assert!(fs::read_to_string(&context.manifest).unwrap().len() > 1);
}

#[test]
fn a_value_that_is_missing_or_damaged_is_given_to_no_run() {
    let disk = OnDisk::new();
    let contexts = contexts(&disk);
    let value = put(&disk, ValueKind::Text, b"a text");
    let variables = [entry("x", value)];
    let context = contexts.of(&disk.store, &variables).unwrap();
    // Where files share no blocks, a program that writes to what it sees writes to the value.
    let stored = disk.store.path(&value).unwrap();
    for path in [&context.files[0], &stored] {
        fs::remove_file(path).unwrap();
        fs::write(path, "b text").unwrap();
    }
    let error = contexts.of(&disk.store, &variables).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    fs::remove_file(&stored).unwrap();
    let error = contexts.of(&disk.store, &variables).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    disk_put(&disk, NewValue::bytes(ValueKind::Text, *b"a text"));
    assert_eq!(contexts.of(&disk.store, &variables).unwrap(), context);
    let long = [entry(&"x".repeat(201), value)];
    assert!(matches!(contexts.of(&disk.store, &long), Err(StoreError::NameTooLong { .. })));
}

#[test]
fn more_folders_than_are_remembered_are_found_again() {
    let disk = OnDisk::new();
    let contexts = contexts(&disk);
    let value = put(&disk, ValueKind::Text, b"a text");
    let of =
        |number: u32| contexts.of(&disk.store, &[entry(&format!("name {number}"), value)]).unwrap();
    let first = of(0);
    (1..1100).for_each(|number| drop(of(number)));
    assert_eq!(of(0), first);
    assert_eq!(fs::read(&first.files[0]).unwrap(), b"a text");
}

#[test]
fn many_at_once_find_one_folder() {
    let disk = OnDisk::new();
    let contexts = contexts(&disk);
    let variables = [entry("x", put(&disk, ValueKind::Json, b"[1]"))];
    let found: Vec<_> = std::thread::scope(|scope| {
        let of = || contexts.of(&disk.store, &variables).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(of)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(found.iter().all(|one| *one == found[0]));
}

/// One that is as large as the value, and is not compared with its hash.
#[test]
fn a_large_file_that_was_replaced_or_written_to_is_noticed() {
    let disk = OnDisk::new();
    let contexts = contexts(&disk);
    let text = "x".repeat(3 << 20);
    let variables = [entry("large", put(&disk, ValueKind::Text, text.as_bytes()))];
    let path = contexts.of(&disk.store, &variables).unwrap().files.remove(0);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "y".repeat(3 << 20)).unwrap();
    contexts.of(&disk.store, &variables).unwrap();
    assert!(fs::read(&path).unwrap() == text.as_bytes());
    // A folder in its place is no reason to start nothing more.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "").unwrap();
    contexts.of(&disk.store, &variables).unwrap();
    assert!(fs::read(&path).unwrap() == text.as_bytes());
    let folder = path.parent().unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "nothing is left aside");
}
