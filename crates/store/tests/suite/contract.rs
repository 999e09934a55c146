//! The promises of every store; each promise is checked of both.

use std::sync::Arc;

use offshoot_model::{ContentHash, Event, EventKind, Payload, RootId, ValueKind, VariableRef};
use offshoot_store::{FIND_LIMIT, MemoryStore, NewValue, RootSummary, Store, StoreError};

use crate::sample::{OnDisk, Script, admission, admitted, ended, failed, new_run};

macro_rules! contract {
    ($($promise:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $promise() { super::$promise(std::sync::Arc::new(super::MemoryStore::new())); })*
        }
        mod sqlite {
            $(#[test] fn $promise() {
                let disk = super::OnDisk::new();
                super::$promise(std::sync::Arc::new(disk.store));
            })*
        }
    };
}

contract![
    events_come_back_in_order,
    a_long_record_is_read_page_by_page,
    what_does_not_follow_is_refused_whole,
    one_call_may_be_about_several_trees,
    progress_is_passed_over,
    a_dropped_commit_is_recorded_all_the_same,
    many_threads_append_at_once,
    trees_are_listed_as_they_were_opened,
    all_trees_are_read_one_after_the_other,
    runs_are_found_by_what_people_type,
    a_run_is_known_from_admission_to_ending,
    what_another_tree_says_of_a_run_does_not_count,
    a_value_is_stored_once,
    a_file_is_copied_and_a_spooled_one_is_moved,
    a_large_value_comes_back,
    what_is_no_file_is_refused,
    a_value_that_was_not_stored_is_missing,
];

type AnyStore = Arc<dyn Store>;

fn events(store: &AnyStore, root: RootId, after: u64) -> Vec<Event> {
    store.events(root, after).collect::<Result<_, _>>().unwrap()
}

fn put(store: &AnyStore, value: NewValue) -> Result<VariableRef, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.put(value))
}

fn events_come_back_in_order(store: AnyStore) {
    let mut script = Script::new();
    let first = vec![script.next(admitted("agent:main:main")), script.next(EventKind::Starting)];
    let second = vec![script.next(ended("42"))];
    store.append(&first).wait().unwrap();
    store.append(&second).wait().unwrap();
    let all = [first, second].concat();
    for after in 0..=3 {
        assert_eq!(events(&store, script.root, after), all[after as usize..]);
    }
    assert_eq!(events(&store, script.root, u64::MAX), []);
    assert_eq!(events(&store, RootId::new(new_run()), 0), []);
}

fn a_long_record_is_read_page_by_page(store: AnyStore) {
    let mut script = Script::new();
    store.append(&script.many(5000)).wait().unwrap();
    let mut reading = store.events(script.root, 0);
    let first = reading.next().unwrap().unwrap();
    // Events that are recorded during the reading are read too.
    store.append(&script.many(5000)).wait().unwrap();
    let seqs: Vec<u64> = reading.map(|event| event.unwrap().seq).collect();
    assert_eq!(first.seq, 1);
    assert_eq!(seqs, (2..=10_000).collect::<Vec<_>>());
}

fn what_does_not_follow_is_refused_whole(store: AnyStore) {
    let mut script = Script::new();
    let one = script.many(1);
    let lost = script.many(2);
    let later = script.many(1);
    #[track_caller]
    fn check(result: Result<(), StoreError>, root: RootId, last: u64, seq: u64) {
        match result {
            Err(StoreError::Broken { root: r, last: l, seq: s }) => {
                assert_eq!((r, l, s), (root, last, seq));
            }
            other => panic!("{other:?}"),
        }
    }
    let root = script.root;
    check(store.append(&lost).wait(), root, 0, 2);
    store.append(&one).wait().unwrap();
    check(store.append(&later).wait(), root, 1, 4);
    check(store.append(&one).wait(), root, 1, 1);
    // A gap inside a call: nothing of it is recorded.
    check(store.append(&[lost[..1].to_vec(), later.clone()].concat()).wait(), root, 2, 4);
    assert_eq!(events(&store, root, 0), one);
    // What was lost can be appended again, and then the rest.
    store.append(&lost).wait().unwrap();
    store.append(&later).wait().unwrap();
    assert_eq!(events(&store, root, 0).len(), 4);
}

fn one_call_may_be_about_several_trees(store: AnyStore) {
    let (mut one, mut other) = (Script::new(), Script::new());
    let call = vec![
        one.next(EventKind::Starting),
        other.next(EventKind::Starting),
        one.next(EventKind::Waiting),
        other.next(EventKind::Waiting),
    ];
    store.append(&call).wait().unwrap();
    // Whole or not at all, also across trees.
    let good = one.next(EventKind::Returned);
    let mut bad = other.next(EventKind::Returned);
    bad.seq += 1;
    assert!(store.append(&[good, bad]).wait().is_err());
    assert_eq!(events(&store, one.root, 0).len(), 2);
    assert_eq!(events(&store, other.root, 0).len(), 2);
}

fn progress_is_passed_over(store: AnyStore) {
    let mut script = Script::new();
    let kept = script.next(EventKind::Starting);
    let mut progress = kept.clone();
    progress.kind = EventKind::Progress { text: "half".into() };
    store.append(&[progress.clone()]).wait().unwrap();
    store.append(&[kept.clone(), progress]).wait().unwrap();
    store.append(&[]).wait().unwrap();
    assert_eq!(events(&store, script.root, 0), [kept]);
}

fn a_dropped_commit_is_recorded_all_the_same(store: AnyStore) {
    let mut script = Script::new();
    drop(store.append(&script.many(1)));
    store.append(&script.many(1)).wait().unwrap();
    assert_eq!(events(&store, script.root, 0).len(), 2);
}

fn many_threads_append_at_once(store: AnyStore) {
    let roots: Vec<RootId> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut script = Script::new();
                    let commits: Vec<_> = (0..50).map(|_| store.append(&script.many(2))).collect();
                    commits.into_iter().for_each(|commit| commit.wait().unwrap());
                    script.root
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for root in roots {
        let seqs: Vec<u64> = events(&store, root, 0).iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=100).collect::<Vec<_>>());
    }
}

fn trees_are_listed_as_they_were_opened(store: AnyStore) {
    assert_eq!(store.roots().unwrap(), []);
    let (mut one, mut other) = (Script::new(), Script::new());
    // The second id is the older one: what counts is who was opened first.
    store.append(&[other.next(admitted("agent:b:main"))]).wait().unwrap();
    store.append(&[one.next(EventKind::Starting), one.next(failed(7))]).wait().unwrap();
    let child = new_run();
    store.append(&[other.about(child, ended("a child's end is not the tree's"))]).wait().unwrap();
    let summary = |script: &Script, key: Option<&str>, last_seq, ended| RootSummary {
        root: script.root,
        key: key.map(|key| key.parse().unwrap()),
        opened_at: offshoot_model::Timestamp::from_micros(1),
        last_seq,
        ended,
        // The script's clock counts its events.
        last_at: offshoot_model::Timestamp::from_micros(last_seq),
    };
    let expected = [summary(&other, Some("agent:b:main"), 2, false), summary(&one, None, 2, true)];
    assert_eq!(store.roots().unwrap(), expected);
}

fn all_trees_are_read_one_after_the_other(store: AnyStore) {
    assert_eq!(store.all_events().count(), 0);
    let mut scripts = [(); 3].map(|()| Script::new());
    // Recorded in turns; one tree is longer than a page, and their ends meet pages' ends.
    for count in [1, 2047, 100] {
        for script in &mut scripts {
            store.append(&script.many(count)).wait().unwrap();
        }
    }
    let read: Vec<Event> = store.all_events().collect::<Result<_, _>>().unwrap();
    let expected: Vec<Event> =
        scripts.iter().flat_map(|script| events(&store, script.root, 0)).collect();
    assert_eq!(expected.len(), 3 * 2148);
    assert!(read == expected);
}

fn runs_are_found_by_what_people_type(store: AnyStore) {
    let mut script = Script::new();
    let root = script.root;
    let children: Vec<_> = (0..3).map(|_| new_run()).collect();
    let child_key = |at: usize| format!("agent:scanner:subagent:{}", children[at]);
    let mut opening = vec![script.next(admitted("agent:main:main"))];
    for (at, &child) in children.iter().enumerate() {
        opening.push(script.about(child, admitted(&child_key(at))));
        opening.push(script.about(child, EventKind::Starting));
        opening.push(script.about(child, ended("done")));
    }
    let mut telegram = Script::new();
    opening.push(telegram.next(admitted("agent:main:telegram:main")));
    store.append(&opening).wait().unwrap();

    let check = |text: &str, expected: &[_]| {
        let found = store.find(text).unwrap();
        assert!(found.iter().all(|found| found.root == root || found.run == found.root.run()));
        let runs: Vec<_> = found.iter().map(|found| found.run).collect();
        assert_eq!(runs, expected, "{text:?}");
    };
    check("main", &[root.run()]);
    check("MAIN ", &[root.run()]);
    check("agent:main:main", &[root.run()]);
    check(&child_key(1), &[children[1]]);
    check(&child_key(1).to_uppercase(), &[children[1]]);
    check(&children[2].to_string(), &[children[2]]);
    check(&children[2].to_string()[..35], &[children[2]]);
    check("agent:nobody:main", &[]);
    check(&new_run().to_string(), &[]);
    check("", &[]);
    check("zebra", &[]);
    check("agent:main:subagent:", &[]);
    // A label is what is meant where nothing else is.
    let mut labelled = Script::new();
    let with_label = |label: &str| {
        let mut admission = admission("agent:a:main");
        admission.label = Some(label.into());
        EventKind::Admitted(Box::new(admission))
    };
    let named: Vec<_> = (0..3).map(|_| new_run()).collect();
    let labels = ["zebra", "host-b (3)", "01"];
    let events: Vec<_> = named
        .iter()
        .zip(labels)
        .map(|(&run, label)| labelled.about(run, with_label(label)))
        .collect();
    store.append(&events).wait().unwrap();
    for (at, label) in [(0, " zebra"), (1, "host-b (3)")] {
        assert_eq!(store.find(label).unwrap()[0].run, named[at], "{label}");
    }
    assert!(store.find("01").unwrap().len() > 1, "the beginning of an id goes before a label");
    assert!(store.find("Zebra").unwrap().is_empty());
    // All ids of these years begin alike; the newest come first.
    let all = store.find(&root.to_string()[..2]).unwrap();
    let runs: Vec<_> = all.iter().map(|found| found.run).collect();
    assert_eq!(runs.len(), 8);
    assert!(runs.is_sorted_by(|a, b| a > b));

    let mut crowd = Script::new();
    let crowd: Vec<_> = (0..30).map(|_| crowd.about(new_run(), admitted("agent:a:main"))).collect();
    store.append(&crowd).wait().unwrap();
    assert_eq!(store.find(&root.to_string()[..2]).unwrap().len(), FIND_LIMIT);
}

fn a_run_is_known_from_admission_to_ending(store: AnyStore) {
    let mut script = Script::new();
    let (root, run) = (script.root, script.root.run());
    assert!(store.admitted(root, run).unwrap().is_none());
    assert!(store.ending(root, run).unwrap().is_none());
    store.append(&[script.next(admitted("agent:main:main"))]).wait().unwrap();
    assert_eq!(store.admitted(root, run).unwrap().unwrap(), admission("agent:main:main"));
    assert!(store.ending(root, run).unwrap().is_none());
    store.append(&[script.next(EventKind::Starting), script.next(ended("42"))]).wait().unwrap();
    let ending = store.ending(root, run).unwrap().unwrap();
    assert_eq!(ending.output, Some(Payload::text("42")));
    assert_eq!(store.admitted(root, run).unwrap().unwrap(), admission("agent:main:main"));
}

fn what_another_tree_says_of_a_run_does_not_count(store: AnyStore) {
    let (mut own, mut other) = (Script::new(), Script::new());
    let (root, run) = (own.root, new_run());
    let forged = vec![other.about(run, admitted("agent:b:main")), other.about(run, ended("43"))];
    let admission = own.about(run, admitted("agent:a:main"));
    store.append(&forged).wait().unwrap();
    store.append(&[admission]).wait().unwrap();
    assert_eq!(store.admitted(root, run).unwrap().unwrap().key.as_str(), "agent:a:main");
    assert_eq!(store.ending(root, run).unwrap(), None);
    store.append(&[own.about(run, ended("42"))]).wait().unwrap();
    assert_eq!(store.ending(root, run).unwrap().unwrap().output, Some(Payload::text("42")));
    assert_eq!(store.ending(other.root, run).unwrap().unwrap().output, Some(Payload::text("43")));
}

fn a_value_is_stored_once(store: AnyStore) {
    let one = put(&store, NewValue::bytes(ValueKind::Text, *b"hello")).unwrap();
    let again = put(&store, NewValue::bytes(ValueKind::Json, *b"hello")).unwrap();
    let copy = store.put_copy(ValueKind::Text, &(*b"hello").into()).unwrap();
    assert_eq!(copy, one);
    assert_eq!(one.hash, ContentHash::of(b"hello"));
    assert_eq!((one.size, one.kind, again.kind), (5, ValueKind::Text, ValueKind::Json));
    assert_eq!(store.path(&one).unwrap(), store.path(&again).unwrap());
    assert_eq!(std::fs::read(store.path(&one).unwrap()).unwrap(), b"hello");
    assert_eq!(store.read(&one).unwrap(), b"hello");
    assert_eq!(std::io::read_to_string(store.open(&one).unwrap()).unwrap(), "hello");
    store.verify(&one).unwrap();
    let empty = put(&store, NewValue::bytes(ValueKind::Bytes, [])).unwrap();
    assert_eq!(store.read(&empty).unwrap(), b"");
}

fn a_file_is_copied_and_a_spooled_one_is_moved(store: AnyStore) {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let theirs = write("theirs", "a file of theirs");
    let copied = put(&store, NewValue::file(ValueKind::Text, &theirs)).unwrap();
    std::fs::write(&theirs, "changed since").unwrap();
    assert_eq!(store.read(&copied).unwrap(), b"a file of theirs");

    let ours = write("ours", "spooled");
    let moved = put(&store, NewValue::adopt(ValueKind::Text, &ours)).unwrap();
    assert!(!ours.exists());
    assert_eq!(store.read(&moved).unwrap(), b"spooled");
    // The same once more: there is nothing to move, and the file goes all the same.
    let again = write("again", "spooled");
    assert_eq!(put(&store, NewValue::adopt(ValueKind::Text, &again)).unwrap(), moved);
    assert!(!again.exists());
    store.verify(&moved).unwrap();
}

fn a_large_value_comes_back(store: AnyStore) {
    // Larger than a portion of a copy, and no multiple of it.
    let bytes: Vec<u8> = (0..9_000_001_u32).map(|at| (at % 251) as u8).collect();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("large");
    std::fs::write(&path, &bytes).unwrap();
    let from_file = put(&store, NewValue::file(ValueKind::Bytes, &path)).unwrap();
    assert_eq!(from_file.size, 9_000_001);
    assert_eq!(from_file.hash, ContentHash::of(&bytes));
    let from_memory = put(&store, NewValue::bytes(ValueKind::Bytes, bytes.clone())).unwrap();
    assert_eq!(from_memory, from_file);
    let moved = put(&store, NewValue::adopt(ValueKind::Bytes, &path)).unwrap();
    assert_eq!(moved, from_file);
    assert!(store.read(&moved).unwrap() == bytes);
}

fn what_is_no_file_is_refused(store: AnyStore) {
    let home = tempfile::tempdir().unwrap();
    let missing = home.path().join("missing");
    for path in [missing.as_path(), home.path()] {
        for value in [NewValue::file(ValueKind::Text, path), NewValue::adopt(ValueKind::Text, path)]
        {
            let error = put(&store, value).unwrap_err();
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
    }
    assert!(home.path().is_dir());
}

fn a_value_that_was_not_stored_is_missing(store: AnyStore) {
    let nothing = VariableRef { hash: ContentHash::of(b"?"), size: 1, kind: ValueKind::Text };
    assert!(matches!(store.read(&nothing), Err(StoreError::Missing { .. })));
    assert!(matches!(store.verify(&nothing), Err(StoreError::Missing { .. })));
}
