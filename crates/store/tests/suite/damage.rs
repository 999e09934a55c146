//! Records that were cut off or changed in single bits: nothing panics, nothing wrong is believed, and what is whole is
//! still read.

use std::path::Path;

use offshoot_model::{Event, RootId, ValueKind};
use offshoot_store::{DataFolder, NewValue, SqliteStore, Store, StoreError};

use crate::sample::{OnDisk, Script, admitted, ended};

/// One tree, and what was written of it.
type Tree = (RootId, Vec<Event>);

const TREES: usize = 12;
const EVENTS: usize = 60;

/// A database of some trees in one file, and what was written into it.
fn record() -> (OnDisk, Vec<Tree>, Vec<u8>) {
    let disk = OnDisk::new();
    let mut trees = Vec::new();
    for _ in 0..TREES {
        let mut script = Script::new();
        let mut events = vec![script.next(admitted("agent:main:main"))];
        events.extend(script.many(EVENTS - 2));
        events.push(script.next(ended("a result that is long enough to be seen in the file")));
        disk.store.append(&events).wait().unwrap();
        trees.push((script.root, events));
    }
    let database = disk.database();
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(database);
    let bytes = std::fs::read(disk.folder.path().join("offshoot.db")).unwrap();
    (disk, trees, bytes)
}

/// The data that can still be read from a damaged database.
#[derive(Debug, Default)]
struct Left {
    /// Trees whose chain holds.
    whole: usize,
    /// Trees with an error, all of which name what is wrong.
    damaged: usize,
}

fn read(database: &[u8], trees: &[Tree]) -> Left {
    let home = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(home.path().join("data")).unwrap();
    std::fs::write(folder.path().join("offshoot.db"), database).unwrap();
    let store = match SqliteStore::open(&folder) {
        Ok(store) => store,
        Err(error) => {
            assert!(told(&error, folder.path()), "{error}");
            return Left { whole: 0, damaged: trees.len() };
        }
    };
    let mut left = Left::default();
    for (root, written) in trees {
        let events: Vec<_> = store.events(*root, 0).collect();
        for error in events.iter().filter_map(|event| event.as_ref().err()) {
            assert!(told(error, folder.path()), "{error}");
        }
        match store.verify_record(*root) {
            Ok(proven) if proven > 0 => {
                let read: Vec<Event> = events.into_iter().map(Result::unwrap).collect();
                let differs = read.iter().zip(written).find(|(read, written)| read != written);
                assert!(differs.is_none(), "proven, and not what was written: {differs:?}");
                assert_eq!(read.len(), written.len());
                left.whole += 1;
            }
            // It is not even listed any more.
            Ok(_) => left.damaged += 1,
            Err(error) => {
                assert!(told(&error, folder.path()), "{error}");
                left.damaged += 1;
            }
        }
    }
    // The rest of what a command asks does not panic either.
    let _ = (store.roots(), store.find("main"), store.all_events().count());
    left
}

/// True if an error names the file or the event, and says what to do.
fn told(error: &StoreError, folder: &Path) -> bool {
    let text = error.to_string();
    let names_it = text.contains(folder.to_str().unwrap()) || text.contains("event ");
    names_it && (error.hint().is_some() || !error.is_damaged())
}

/// A fixed sequence of numbers that look random.
fn numbers() -> impl Iterator<Item = usize> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize
    })
}

#[test]
fn a_flipped_bit_is_named_and_hurts_its_own_tree_only() {
    let (_disk, trees, bytes) = record();
    let mut numbers = numbers();
    let mut next = |below: usize| numbers.next().unwrap() % below;
    let (mut silent, mut single) = (0, 0);
    const FLIPS: usize = 120;
    for _ in 0..FLIPS {
        let mut flipped = bytes.clone();
        flipped[next(bytes.len())] ^= 1 << next(8);
        let left = read(&flipped, &trees);
        assert_eq!(left.whole + left.damaged, TREES);
        // Free space, or a place that no tree depends on.
        silent += usize::from(left.damaged == 0);
        single += usize::from(left.damaged == 1);
    }
    // Most of the file is bodies and links of single events.
    assert!(single > FLIPS / 3, "{single} of {FLIPS} hurt one tree alone, {silent} none");
}

#[test]
fn a_record_that_was_cut_off_is_named_wherever_it_was_cut() {
    let (_disk, trees, bytes) = record();
    let page = 4096;
    let mut some = 0;
    for cut in (page..bytes.len()).step_by(page).chain([1, 100, page + 17, bytes.len() - 1]) {
        let left = read(&bytes[..cut], &trees);
        assert!(left.whole < TREES || cut + page > bytes.len(), "cut at {cut} and not noticed");
        some += usize::from(left.whole > 0);
    }
    assert!(some > 0, "where only the end is gone, the beginning is still read");
}

#[test]
fn an_empty_record_beside_values_is_no_new_one() {
    let disk = OnDisk::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(disk.store.put(NewValue::bytes(ValueKind::Text, *b"a value"))).unwrap();
    let OnDisk { store, folder, _home } = disk;
    drop(store);
    for file in ["offshoot.db-wal", "offshoot.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(file));
    }
    std::fs::write(folder.path().join("offshoot.db"), "").unwrap();
    let error = SqliteStore::open(&folder).unwrap_err();
    assert!(matches!(error, StoreError::Emptied { .. }), "{error:?}");
    assert!(error.hint().is_some() && error.is_damaged());
}

/// Two folders with a tree each, closed.
fn two_records() -> [(tempfile::TempDir, DataFolder); 2] {
    [(); 2].map(|()| {
        let OnDisk { store, folder, _home } = OnDisk::new();
        store.append(&Script::new().many(3)).wait().unwrap();
        (_home, folder)
    })
}

fn open(folder: &DataFolder) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(folder)
}

#[test]
fn a_record_that_was_removed_is_missed_and_nothing_begins_anew() {
    for open in [open, SqliteStore::open_to_read] {
        let [(_home, folder), _] = two_records();
        let path = folder.path().join("offshoot.db");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for _ in 0..2 {
            let found = DataFolder::existing(folder.path()).unwrap().expect("it had a record");
            let error = open(&found).unwrap_err();
            assert!(matches!(error, StoreError::Removed { .. }), "{error:?}");
            assert!(error.to_string().contains("offshoot.id"), "{error}");
            assert!(error.hint().unwrap().contains("bring the file back"));
            assert!(!path.exists(), "nothing was made in its place");
        }
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open(&folder).unwrap().roots().unwrap().len(), 1, "brought back from a copy");
    }
    // A folder from before databases had ids tells by its values.
    let disk = OnDisk::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(disk.store.put(NewValue::bytes(ValueKind::Text, *b"a value"))).unwrap();
    let OnDisk { store, folder, _home } = disk;
    drop(store);
    for file in ["offshoot.db", "offshoot.id"] {
        std::fs::remove_file(folder.path().join(file)).unwrap();
    }
    let error = SqliteStore::open(&folder).unwrap_err();
    assert!(error.to_string().contains("blobs"), "{error}");
}

#[test]
fn a_record_in_place_of_another_is_noticed() {
    let [(_one, folder), (_other, stranger)] = two_records();
    let path = folder.path().join("offshoot.db");
    let id = folder.path().join("offshoot.id");
    let own = std::fs::read(&path).unwrap();
    std::fs::copy(stranger.path().join("offshoot.db"), &path).unwrap();
    for open in [open, SqliteStore::open_to_read] {
        let error = open(&folder).unwrap_err();
        assert!(matches!(error, StoreError::Replaced { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("bring the right file back"));
    }
    // Either way out that the hint names.
    std::fs::write(&path, &own).unwrap();
    SqliteStore::open(&folder).unwrap();
    std::fs::copy(stranger.path().join("offshoot.db"), &path).unwrap();
    std::fs::remove_file(&id).unwrap();
    SqliteStore::open(&folder).unwrap();
    let named = std::fs::read(&id).unwrap();
    assert_eq!(named, std::fs::read(stranger.path().join("offshoot.id")).unwrap());
    // A witness that cannot be read says nothing, and is written again.
    std::fs::write(&id, "?").unwrap();
    SqliteStore::open(&folder).unwrap();
    assert_eq!(std::fs::read(&id).unwrap(), named);
    // Nor does an id that was damaged: the rest is read.
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute("UPDATE identity SET id = zeroblob(16)", ()).unwrap();
    drop(database);
    assert_eq!(SqliteStore::open(&folder).unwrap().roots().unwrap().len(), 1);
}

#[test]
fn an_older_copy_of_the_record_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(home.path().join("data")).unwrap();
    let path = folder.path().join("offshoot.db");
    let mut script = Script::new();
    let append = |script: &mut Script| {
        let store = SqliteStore::open(&folder).unwrap();
        store.append(&script.many(3)).wait().unwrap();
    };
    append(&mut script);
    let older = std::fs::read(&path).unwrap();
    append(&mut script);
    let newer = std::fs::read(&path).unwrap();
    std::fs::write(&path, &older).unwrap();
    for open in [open, SqliteStore::open_to_read] {
        let error = open(&folder).unwrap_err();
        assert!(matches!(error, StoreError::Older { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("bring the newest copy back"));
    }
    // Either way out that the hint names.
    std::fs::write(&path, &newer).unwrap();
    assert_eq!(SqliteStore::open(&folder).unwrap().roots().unwrap()[0].last_seq, 6);
    std::fs::write(&path, &older).unwrap();
    std::fs::remove_file(folder.path().join("offshoot.id")).unwrap();
    assert_eq!(SqliteStore::open(&folder).unwrap().roots().unwrap()[0].last_seq, 3);
    // It goes on from there; removing a tree is a step forward too.
    let store = SqliteStore::open(&folder).unwrap();
    let before = std::fs::read_to_string(folder.path().join("offshoot.id")).unwrap();
    store.remove_tree(script.root).unwrap();
    drop(store);
    assert_ne!(std::fs::read_to_string(folder.path().join("offshoot.id")).unwrap(), before);
    SqliteStore::open(&folder).unwrap();
}

#[test]
fn a_value_with_a_flipped_bit_or_cut_off_is_named_and_the_rest_is_read() {
    let disk = OnDisk::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let put = |text: String| {
        let value = NewValue::bytes(ValueKind::Text, text.into_bytes());
        runtime.block_on(disk.store.put(value)).unwrap()
    };
    let values: Vec<_> = (0..20).map(|number| put(format!("value {number}").repeat(50))).collect();
    let mut numbers = numbers();
    for (at, value) in values.iter().enumerate() {
        let path = disk.store.path(value).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        match at % 3 {
            0 => continue,
            1 => bytes[numbers.next().unwrap() % value.size as usize] ^= 4,
            _ => bytes.truncate(numbers.next().unwrap() % value.size as usize),
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    for (at, value) in values.iter().enumerate() {
        match disk.store.read(value) {
            Ok(bytes) => assert_eq!((at % 3, bytes.len() as u64), (0, value.size)),
            Err(StoreError::Corrupt { hash }) => assert_eq!((at % 3 > 0, hash), (true, value.hash)),
            other => panic!("{other:?}"),
        }
    }
}
