//! The n-th write, flush, truncation and removal fails, or the process dies there, for every n.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use offshoot_faults::{
    Acknowledged, Fault, Operation, Points, append_all, check_record, deeds, install, remove, set,
};
use offshoot_model::{RootId, RunId};
use offshoot_store::{DataFolder, SqliteStore, Store, StoreError};

/// The shim has one fault for the whole process.
static TURN: Mutex<()> = Mutex::new(());

const OPERATIONS: [Operation; 4] =
    [Operation::Write, Operation::Flush, Operation::Truncate, Operation::Remove];

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(&DataFolder::open(path)?)
}

/// Everything that a tree does to its database, from the first file to closing it.
fn live(path: &Path) -> (Acknowledged, Option<StoreError>) {
    match open(path) {
        Ok(store) => append_all(&store),
        Err(error) => (Acknowledged::new(), Some(error)),
    }
}

/// How many operations of a kind there are where nothing fails.
fn count(operation: Operation) -> u64 {
    let home = tempfile::tempdir().expect("a folder");
    set(operation, u64::MAX >> 2, Fault::Error);
    let (told, error) = live(&home.path().join("data"));
    assert!(error.is_none(), "{error:?}");
    assert!(!told.is_empty());
    remove()
}

fn fail_each(operation: Operation, fault: Fault, sample: u64) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    install();
    let operations = count(operation);
    let mut points = Points::of(match fault {
        Fault::Full => format!("the disk is full at the n-th {operation} of the database"),
        _ => format!("the n-th {operation} of the database fails"),
    });
    let mut noticed = 0;
    for point in (0..operations).filter(|point| Points::wants(*point, operations, sample)) {
        points.try_one(|| {
            let home = tempfile::tempdir().expect("a folder");
            let path = home.path().join("data");
            set(operation, point, fault);
            let (told, error) = live(&path);
            remove();
            noticed += u64::from(error.is_some());
            if let Some(error) = error {
                let text = error.to_string();
                let names_it = text.contains("record") || text.contains("tree");
                assert!(names_it, "point {point}: {text}");
                assert!(
                    fault != Fault::Full || error.is_full() || text.contains("cannot follow"),
                    "{error:?}"
                );
            }
            check_record(&open(&path).expect("it can be opened again"), &told);
        });
    }
    points.report();
    assert_eq!(points.tried() > 0, operations > 0);
    // To cut or remove its log is tidying up, which the database tries again another time.
    let must_notice = matches!(operation, Operation::Write | Operation::Flush);
    assert!(noticed > 0 || !must_notice, "not noticed");
}

#[test]
fn a_write_that_fails_loses_nothing_that_was_told() {
    fail_each(Operation::Write, Fault::Error, 24);
}

#[test]
fn a_disk_that_is_full_at_any_write_loses_nothing_that_was_told() {
    fail_each(Operation::Write, Fault::Full, 24);
}

#[test]
fn a_flush_that_fails_loses_nothing_that_was_told() {
    fail_each(Operation::Flush, Fault::Error, 16);
}

#[test]
fn a_truncation_or_removal_that_fails_loses_nothing_that_was_told() {
    fail_each(Operation::Truncate, Fault::Error, 8);
    fail_each(Operation::Remove, Fault::Error, 8);
}

const DIE_IN: &str = "OFFSHOOT_TEST_DIE_IN";
const DIE_AT: &str = "OFFSHOOT_TEST_DIE_AT";

/// Not a test of its own: the process that dies in the next one. Without the variables it has nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the parent says so in no other way")]
fn dying_process() {
    let (Ok(path), Ok(at)) = (std::env::var(DIE_IN), std::env::var(DIE_AT)) else { return };
    let (operation, at) = at.split_once(' ').expect("a kind and a number");
    let index: usize = operation.parse().expect("a number");
    install();
    set(OPERATIONS[index], at.parse().expect("a number"), Fault::Death);
    let store = open(Path::new(&path)).expect("it dies or it works");
    for deed in deeds() {
        let last = deed.last().expect("a deed has events").clone();
        store.append(&deed).wait().expect("it dies or it works");
        println!("\ntold {} {}", last.root, last.seq);
    }
    drop(store);
    println!("\nlived");
}

#[test]
fn a_process_that_dies_at_any_write_or_flush_loses_nothing_that_was_told() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    install();
    for (index, operation) in OPERATIONS.into_iter().enumerate() {
        let operations = count(operation);
        let mut points =
            Points::of(format_args!("the process dies in the n-th {operation} of the database"));
        for point in (0..operations).filter(|point| Points::wants(*point, operations, 12)) {
            points.try_one(|| die(index, point));
        }
        points.report();
    }
}

fn die(operation: usize, point: u64) {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("data");
    #[expect(clippy::disallowed_methods, reason = "only another process can die")]
    let mut child = std::process::Command::new(std::env::current_exe().expect("the run is over"))
        .args(["--exact", "dying_process", "--nocapture", "--test-threads=1"])
        .env(DIE_IN, &path)
        .env(DIE_AT, format!("{operation} {point}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program can be started again");
    let mut told: Acknowledged = HashMap::new();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("the bytes are not text");
        assert_ne!(line, "lived", "point {point} of operation {operation} was not met");
        if let Some((root, seq)) = line.strip_prefix("told ").and_then(|told| told.split_once(' '))
        {
            let run: RunId = root.parse().expect("the text is no id");
            told.insert(RootId::new(run), seq.parse().expect("a number"));
        }
    }
    assert!(!child.wait().expect("the child cannot be waited for").success());
    let folder = DataFolder::open(&path).expect("the folder is there");
    check_record(&SqliteStore::open(&folder).expect("it can be opened again"), &told);
}
