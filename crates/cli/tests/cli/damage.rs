//! Records that were damaged, as the command meets them: what is wrong is named, the rest is shown.

use std::fs;

use rusqlite::Connection;

use offshoot_test_support::Disk;

use crate::command::Place;
use crate::forged::forge;

/// A place with two trees of two pieces each, and their ids, the oldest first.
fn with_two_trees() -> (Place, [String; 2]) {
    let place = Place::new();
    place.file("one", "1");
    place.file("two", "2");
    let run = || {
        let report = place.run(&["map", "--json", "one", "two", "--", "cat"]).expect_code(0).json();
        report["runId"].as_str().expect("the report names the root").to_owned()
    };
    let ids = [run(), run()];
    (place, ids)
}

fn change(place: &Place, statement: &str) {
    let database = Connection::open(place.path().join(".offshoot/offshoot.db")).expect("a record");
    assert!(database.execute(statement, ()).expect("it is one statement") > 0);
}

#[test]
fn a_damaged_event_is_named_and_everything_else_is_shown() {
    let (place, [damaged, whole]) = with_two_trees();
    let garbage = "UPDATE events SET body = '{\"admi' WHERE root = 1 AND seq = 2";
    change(&place, garbage);
    for words in [&["list", "--all"][..], &["tree"], &["list", "--json"], &["tree", "--json"]] {
        let shown = place.run(words).expect_code(2);
        assert!(shown.stdout().contains(&whole[..8]), "{}", shown.text());
        let error = format!("error: event 2 of tree {damaged} cannot be read");
        assert!(shown.stderr.contains(&error), "{}", shown.stderr);
        assert!(shown.stderr.contains("hint: other trees may still be whole"), "{}", shown.stderr);
    }
    place.run(&["audit", &whole]).expect_code(0);
    place.run(&["audit", &damaged]).expect_code(1);
    place.run(&["show", &whole]).expect_code(0);
    place.run(&["events", &damaged]).expect_code(2);
    // And new trees are recorded beside it.
    place.run(&["map", "one", "--", "cat"]).expect_code(0);
}

/// A later version could have added such a word to a record: it is not guessed, as a plugin's word would be.
#[test]
fn an_unknown_word_stops_the_reader_of_a_record() {
    for (known, unknown) in
        [(r#""kind":"completed""#, r#""kind":"dissolved""#), (r#"{"ended":"#, r#"{"dissolved":"#)]
    {
        let (place, [changed, _]) = with_two_trees();
        forge(
            &place,
            &format!(
                "UPDATE events SET body = replace(body, '{known}', '{unknown}') WHERE root = 1"
            ),
        );
        for (words, code) in [("audit", 1), ("resume", 2), ("events", 2)] {
            let outcome = place.run(&[words, &changed]).expect_code(code);
            let text = outcome.text();
            assert!(text.contains("unknown variant `dissolved`"), "{words} {unknown}: {text}");
        }
    }
}

#[test]
fn a_record_that_is_no_database_or_newer_or_empty_is_refused() {
    let (place, _) = with_two_trees();
    let path = place.path().join(".offshoot/offshoot.db");
    let refused = |what: &str| {
        for words in [&["list"][..], &["map", "one", "--", "cat"]] {
            let outcome = place.run(words).expect_code(2);
            assert!(outcome.stderr.contains(what), "{what}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("hint: "), "{what}: {}", outcome.stderr);
        }
    };
    let database = Connection::open(&path).expect("a record");
    database.pragma_update(None, "user_version", 999).expect("the record cannot be written");
    drop(database);
    refused("has version 999, and this program knows versions up to");
    for file in ["offshoot.db-wal", "offshoot.db-shm"] {
        let _ = fs::remove_file(path.with_file_name(file));
    }
    fs::write(&path, "no database at all ".repeat(999)).expect("the file cannot be written");
    refused("cannot open the record");
}

#[test]
fn a_record_that_was_removed_or_exchanged_is_missed() {
    let (place, [root, _]) = with_two_trees();
    let (other, _) = with_two_trees();
    let folder = place.path().join(".offshoot");
    let refused = |what: &str, hint: &str| {
        for words in [
            &["list"][..],
            &["tree"],
            &["show", &root],
            &["audit", &root],
            &["resume", &root],
            &["map", "one", "--", "cat"],
        ] {
            let outcome = place.run(words).expect_code(2);
            assert!(outcome.stderr.contains(what), "{what}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(hint), "{hint}: {}", outcome.stderr);
        }
    };
    let path = folder.join("offshoot.db");
    let own = fs::read(&path).expect("a record");
    fs::remove_file(&path).expect("the file cannot be removed");
    refused("shows that there was one", "hint: bring the file back from a copy");
    fs::copy(other.path().join(".offshoot/offshoot.db"), &path).expect("the file cannot be copied");
    refused("is not the one that", "hint: bring the right file back from a copy");
    fs::write(&path, own).expect("the file cannot be written");
    place.run(&["show", &root]).expect_code(0);
}

#[test]
fn a_result_that_was_changed_is_named_and_others_are_printed() {
    let place = Place::new();
    place.file("one", "1");
    let run = |letter: &str| {
        let script = format!("head -c 300000 /dev/zero | tr '\\0' {letter}");
        let report = place.run(&["run", "--json", "x", "--", "sh", "-c", &script]).expect_code(0);
        report.json()["runId"].as_str().expect("it names the run").to_owned()
    };
    let (damaged, whole) = (run("a"), run("b"));
    for folder in fs::read_dir(place.path().join(".offshoot/blobs")).expect("values").flatten() {
        for value in fs::read_dir(folder.path()).expect("a folder").flatten() {
            let mut bytes = fs::read(value.path()).expect("a value");
            if bytes.first() == Some(&b'a') {
                bytes[7] ^= 1;
                fs::remove_file(value.path()).expect("the file cannot be removed");
                fs::write(value.path(), bytes).expect("the file cannot be written");
            }
        }
    }
    let outcome = place.run(&["show", &damaged, "--answer"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("has been changed"), "{}", outcome.stderr);
    assert_eq!(place.run(&["show", &whole, "--answer"]).expect_code(0).stdout.len(), 300_001);
}

#[test]
fn a_record_in_a_folder_that_has_become_read_only_is_read_and_not_written() {
    let Some(disk) = Disk::of(8 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let map = ["map", "--json", "--data-dir", folder, "in", "--", "cat"];
    let report = place.run(&map).expect_code(0).json();
    let root = report["runId"].as_str().expect("the report names the root");
    let looks: [&[&str]; 8] = [
        &["list", "--all", "--json"],
        &["stats"],
        &["tree"],
        &["show", root],
        &["show", root, "--answer"],
        &["events", root],
        &["history", root],
        &["audit", root],
    ];
    let look = |words: &[&str]| {
        let outcome = place.run(&[words, &["--data-dir", folder]].concat()).expect_code(0);
        outcome.stdout().to_owned()
    };
    let before = looks.map(look);
    disk.make_read_only();
    assert_eq!(looks.map(look), before);
    for words in [&map[..], &["resume", root, "--data-dir", folder]] {
        let outcome = place.run(words).expect_code(2);
        assert!(outcome.stderr.contains("hint: check who may write there"), "{}", outcome.text());
    }
}

/// A place with a tree of two pieces and one that is damaged later; the root and the first piece of the first.
fn with_an_answer() -> (Place, String, String) {
    let (place, _) = with_two_trees();
    place.file("three", "the true answer");
    let report = place.run(&["map", "--json", "three", "one", "--", "cat"]).expect_code(0).json();
    let root = report["runId"].as_str().expect("the report names the root").to_owned();
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let runs = runs.as_array().expect("a list");
    let piece = runs.iter().find(|run| run["parent"] == root.as_str()).expect("it has pieces");
    let piece = piece["runId"].as_str().expect("the run has no id").to_owned();
    (place, root, piece)
}

#[test]
fn an_answer_that_was_changed_is_not_printed_as_the_answer() {
    let (place, root, piece) = with_an_answer();
    let forged = "UPDATE events SET body = replace(body, 'the true answer', 'a forged one')
                  WHERE root = 3 AND kind = 'ended'";
    change(&place, forged);
    for words in [
        &["show", &piece, "--answer"][..],
        &["show", &piece, "--json"],
        &["show", &piece],
        &["show", &root, "--answer"],
        &["merge", "--children", &root],
        &["merge", "--result", &piece],
        &["tree", &root],
        &["tree"],
        &["list", "--all"],
        &["events", &root],
    ] {
        let shown = place.run(words).expect_code(2);
        assert!(!shown.stdout().contains("a forged one"), "{words:?}: {}", shown.text());
        assert!(shown.stderr.contains("is not what was recorded"), "{words:?}: {}", shown.stderr);
    }
}

#[test]
fn a_row_in_another_tree_answers_for_no_run() {
    let (place, root, piece) = with_an_answer();
    let forged = "INSERT INTO events (root, seq, run, at, kind, key, body, chain)
                  SELECT 4, seq, run, at, kind, key,
                         replace(body, 'the true answer', 'a forged one'), chain
                  FROM events WHERE root = 3 AND kind = 'ended'";
    place.run(&["map", "one", "--", "cat"]).expect_code(0);
    change(&place, "DELETE FROM events WHERE root = 4");
    change(&place, forged);
    for words in [
        &["show", &piece, "--answer"][..],
        &["show", &piece, "--json"],
        &["merge", "--children", &root],
        &["merge", "--result", &piece],
    ] {
        let shown = place.run(words).expect_code(0);
        assert!(shown.stdout().contains("the true answer"), "{words:?}: {}", shown.text());
    }
}

#[test]
fn when_a_tree_ended_is_read_from_its_events() {
    let (place, root, _) = with_an_answer();
    let before = place.run(&["list", "--json"]).expect_code(0).stdout().to_owned();
    change(&place, "UPDATE roots SET ended = 0, last_at = 0, opened_at = 0 WHERE number = 3");
    let pruned = place.run(&["prune", "--older-than", "1d", "--dry-run", "--json"]).expect_code(0);
    assert_eq!(pruned.json()["trees"].as_array().map(Vec::len), Some(0), "{}", pruned.text());
    let audited = place.run(&["audit", &root]).expect_code(1);
    assert!(audited.stdout().contains("is not what was recorded"), "{}", audited.text());
    let shown = place.run(&["list", "--json"]).expect_code(2);
    assert_eq!(shown.stdout(), before);
}
