//! The power fails before each sync of a tree: what was told by then is there afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
use offshoot_faults::{Cut, Image, Points, Power, TOLD, restore};
use offshoot_model::{EventKind, Payload, RunStatus, Tree, ValueKind, VariableRef};
use offshoot_store::{DataFolder, NewValue, SqliteStore, Store};
use offshoot_test_support::{lacking, offshoot_at_home};

/// A file system without power for long, or a word why there is none.
fn power(test: &str) -> Option<Power> {
    match Power::mount() {
        Ok(power) => Some(power),
        Err(error) => {
            lacking(test, &format!("no file system can be mounted on /dev/fuse: {error}"));
            None
        }
    }
}

/// A command whose data are on the file system, and whose home is not.
fn command(power: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = offshoot_at_home(home, arguments);
    command.env("XDG_RUNTIME_DIR", home).env("OFFSHOOT_DATA_DIR", power.join("project/data"));
    let told = File::create(power.join(TOLD).join("operator")).expect("the file cannot be made");
    command
        .stdout(told)
        .stderr(File::create(home.join("stderr")).expect("the file cannot be made"));
    command
}

fn run(mut command: Command, home: &Path) {
    let status = command.status().expect("the program cannot be started");
    let said = fs::read_to_string(home.join("stderr")).unwrap_or_default();
    assert!(status.success(), "{status}: {said}");
}

/// The answers of the runs, by their labels. The operator hears the last word of the root.
fn answers() -> BTreeMap<&'static str, Vec<u8>> {
    let repeated = |letter: u8, times: usize| vec![letter; times];
    BTreeMap::from([
        ("small", b"a few words".to_vec()),
        ("large", repeated(b'x', 300_000)),
        ("again", repeated(b'x', 300_000)),
        ("gone", repeated(b'g', 20_000)),
        ("one", repeated(b'1', 9_000)),
        ("two", repeated(b'2', 9_000)),
        ("listener", HEARD.as_bytes().to_vec()),
    ])
}

/// An agent that asks for children, keeps values, and writes down each word that it was told.
const AGENT: &str = r#"
    tell() { printf '%s\n' "$*" >> "$TOLD/agent"; }
    print() { printf 'head -c %s /dev/zero | tr "\\0" %s' "$1" "$2"; }
    ask() {
        label=$1; shift
        "$OFFSHOOT" -q spawn --wait --label "$label" "$@" >/dev/null && tell "ended $label"
    }
    ask small x -- printf 'a few words'
    ask large x -- sh -c "$(print 300000 x)"
    printf 'a value' | "$OFFSHOOT" -q context put first - >/dev/null && tell "kept first"
    ask again x -- sh -c "$(print 300000 x)"
    ask gone --cleanup delete x -- sh -c "$(print 20000 g)"
    listener=$("$OFFSHOOT" -q spawn --agent listener --label listener listen)
    "$OFFSHOOT" -q send "$listener" "the word is plum" && tell "sent plum"
    "$OFFSHOOT" -q wait "$listener" >/dev/null && tell "ended listener"
    one=$("$OFFSHOOT" -q spawn --label one x -- sh -c "$(print 9000 1)")
    two=$("$OFFSHOOT" -q spawn --label two x -- sh -c "$(print 9000 2)")
    "$OFFSHOOT" -q wait "$one" "$two" >/dev/null && tell "ended one" && tell "ended two"
    head -c 70000 /dev/zero | tr '\0' v | "$OFFSHOOT" -q context put second - >/dev/null && tell "kept second"
    echo done
"#;

/// The letter to the listener.
const LETTER: &str = "the word is plum";

/// The listener's answer once it has its letter. Until then it goes on, so that the letter is handed to a session at its work.
const HEARD: &str = "the word was plum";

/// A model that answers so, and the configuration of the agent that uses it.
fn listener(home: &Path) -> FakeModelApi {
    let rules = [
        Rule::when(Condition::Prompt("plum".into()), Reply::text(HEARD)),
        Rule::always(Reply::call("sessions_wait", serde_json::json!({}))),
    ];
    let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
    let config = format!(
        "[runtimes.openai.options]\nbaseUrl = \"{}/v1\"\nmodel = \"small\"\n\
         [[agents.list]]\nid = \"listener\"\nruntime = \"openai\"\n\
         [agents.defaults.subagents]\nallowAgents = [\"*\"]\n",
        api.url()
    );
    fs::write(home.join("c.toml"), config).expect("the file cannot be written");
    api
}

/// The values that the agent keeps.
fn kept() -> BTreeMap<&'static str, Vec<u8>> {
    BTreeMap::from([("first", b"a value".to_vec()), ("second", vec![b'v'; 70_000])])
}

/// Returns what was told before a cut, line by line.
fn told(cut: &Cut) -> Vec<String> {
    let lines = |(path, bytes): (&PathBuf, &std::sync::Arc<Vec<u8>>)| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let from = path.to_string_lossy().into_owned();
        text.lines().map(|line| format!("{from} {line}")).collect::<Vec<_>>()
    };
    cut.told.iter().flat_map(lines).collect()
}

/// Checks that everything that was told is there, in what is left.
fn check(image: &Image, told: &[String]) {
    let disk = tempfile::tempdir().expect("no temporary folder can be made");
    restore(image, disk.path()).expect("the image cannot be written");
    let path = disk.path().join("project/data");
    let folder = DataFolder::existing(&path).expect("it can be looked at");
    let Some(folder) = folder else {
        assert!(told.is_empty(), "there is no record, and {told:?}");
        return;
    };
    let store = SqliteStore::open(&folder).expect("it can be opened");
    let roots = store.roots().expect("it cannot be read");
    let mut tree = Tree::new();
    let mut values: BTreeMap<String, VariableRef> = BTreeMap::new();
    let mut letters: Vec<Payload> = Vec::new();
    for root in &roots {
        store.verify_record(root.root).expect("the chain holds");
        for event in store.events(root.root, 0) {
            let event = event.expect("it cannot be read");
            tree.apply(&event);
            match event.kind {
                EventKind::Kept { name, value } => drop(values.insert(name.to_string(), value)),
                EventKind::Letter { text, .. } => letters.push(text),
                _ => {}
            }
        }
    }
    let read = |payload: &Payload| match payload {
        Payload::Text(text) => text.as_bytes().to_vec(),
        Payload::Json(json) => json.as_str().as_bytes().to_vec(),
        Payload::Stored(value) => store.read(value).expect("a value that is named is there"),
    };
    let answers = answers();
    let answered = |node: &offshoot_model::Node| {
        let ending = store.ending(node.root, node.run).expect("it cannot be read")?;
        ending.output.as_ref().map(read)
    };
    // Whatever is on record is whole, told or not.
    let mut found = BTreeMap::new();
    for node in tree.nodes().filter(|node| node.status == RunStatus::Completed) {
        let label = node.label.as_deref().unwrap_or("root");
        let answer = answered(node).unwrap_or_default();
        assert!(answers.get(label).is_none_or(|expected| *expected == answer), "{label}");
        found.insert(label, answer);
    }
    let kept = kept();
    for (name, value) in &values {
        assert!(store.read(value).expect("it is missing") == kept[name.as_str()], "{name}");
    }
    for word in told {
        let is_there = match word.split(' ').collect::<Vec<_>>()[..] {
            ["agent", "ended", label] => found.contains_key(label),
            ["agent", "kept", name] => values.contains_key(name),
            ["agent", "sent", _] => {
                letters.iter().any(|text| read(text).ends_with(LETTER.as_bytes()))
            }
            ["operator", ..] => found.get("root").is_some_and(|answer| answer.starts_with(b"done")),
            _ => panic!("{word}"),
        };
        assert!(is_there, "told, and lost: {word}");
    }
}

#[test]
fn what_was_told_survives_a_power_cut_at_any_moment() {
    let Some(power) = power("a tree without power") else { return };
    let home = tempfile::tempdir().expect("no temporary folder can be made");
    fs::create_dir(power.path().join("project")).expect("the folder cannot be made");
    File::open(power.path()).and_then(|folder| folder.sync_all()).expect("it can be synced");
    let script = format!("TOLD='{}'\n{AGENT}", power.path().join(TOLD).display());
    let _api = listener(home.path());
    let words =
        ["-q", "run", "--config", "c.toml", "--allow-recursive-spawn", "x", "--", "sh", "-c"];
    let words = [&words[..], &[&script]].concat();
    run(command(&power.path(), home.path(), &words), home.path());
    let cuts = power.cuts();
    let last = told(cuts.last().expect("there is an end"));
    // A letter and the operator's answer beside them.
    assert_eq!(last.len(), answers().len() + kept().len() + 2, "{last:?}");
    let many = cuts.len() as u64;
    assert!(many > 40, "{many} syncs");
    for (what, of) in [
        (
            "the power fails before the n-th sync of a tree",
            (|cut| &cut.dropped) as fn(&Cut) -> &Image,
        ),
        ("the same, on a disk that keeps names and loses contents", |cut| &cut.renamed),
    ] {
        let mut points = Points::of(what);
        for (at, cut) in (0..).zip(&cuts) {
            // The last ones tell of most.
            if at + 1 == many || Points::wants(at, many, 60) {
                points.try_one(|| check(of(cut), &told(cut)));
            }
        }
        points.report();
    }
}

#[test]
fn a_tree_that_lost_its_power_is_resumed_to_the_same_answer() {
    let Some(power) = power("a map without power") else { return };
    let home = tempfile::tempdir().expect("no temporary folder can be made");
    fs::create_dir(power.path().join("project")).expect("the folder cannot be made");
    File::open(power.path()).and_then(|folder| folder.sync_all()).expect("it can be synced");
    fs::write(home.path().join("in"), "a\nb\nc\n").expect("the file cannot be written");
    let work = "read letter; head -c 9000 /dev/zero | tr '\\0' \"$letter\"";
    let words = ["-q", "map", "--split", "lines:1", "in", "--", "sh", "-c", work];
    run(command(&power.path(), home.path(), &words), home.path());
    let cuts = power.cuts();
    let answer =
        fs::read(power.path().join(TOLD).join("operator")).expect("the file cannot be read");
    let many = cuts.len() as u64;
    let mut points = Points::of("the power fails before the n-th sync of a map, which is resumed");
    for (at, cut) in (0..).zip(&cuts) {
        if !Points::wants(at, many, 4) {
            continue;
        }
        points.try_one(|| {
            let disk = tempfile::tempdir().expect("no temporary folder can be made");
            restore(&cut.dropped, disk.path()).expect("the image cannot be written");
            let path = disk.path().join("project/data");
            let folder = DataFolder::existing(&path).expect("it can be looked at");
            let root = folder.and_then(|folder| {
                let store = SqliteStore::open(&folder).expect("it can be opened");
                store.roots().expect("it cannot be read").pop()
            });
            // Where nothing is on record, nothing was begun.
            let Some(root) = root else { return };
            let root = root.root.to_string();
            fs::create_dir_all(disk.path().join(TOLD)).expect("the folder cannot be made");
            let words = ["-q", "resume", &root];
            run(command(disk.path(), home.path(), &words), home.path());
            let resumed = fs::read(disk.path().join(TOLD).join("operator"));
            assert!(resumed.expect("it is missing") == answer, "before {}", cut.before.display());
        });
    }
    points.report();
}

#[test]
fn a_value_that_is_used_again_is_durable_also_where_another_wrote_it() {
    let Some(power) = power("a value used again") else { return };
    let folder =
        DataFolder::open(power.path().join("data")).expect("the data folder cannot be opened");
    let store = SqliteStore::open(&folder).expect("the record cannot be opened");
    let bytes = vec![b'v'; 100_000];
    let value = VariableRef {
        hash: offshoot_model::ContentHash::of(&bytes),
        size: bytes.len() as u64,
        kind: ValueKind::Text,
    };
    // What one leaves that dies after it has given the value its name.
    let path = store.path(&value).expect("a path");
    fs::create_dir(path.parent().expect("a folder")).expect("the folder cannot be made");
    fs::write(&path, &bytes).expect("the file cannot be written");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let put = runtime.block_on(store.put(NewValue::bytes(ValueKind::Text, bytes.as_slice())));
    assert_eq!(put.expect("the system has no room for it"), value);
    let cuts = power.cuts();
    let disk = tempfile::tempdir().expect("no temporary folder can be made");
    restore(&cuts.last().expect("there is an end").dropped, disk.path())
        .expect("the image cannot be written");
    let folder =
        DataFolder::open(disk.path().join("data")).expect("the data folder cannot be opened");
    let store = SqliteStore::open(&folder).expect("the record cannot be opened");
    assert!(store.read(&value).expect("it is missing") == bytes);
}
