//! Memory of the computer: runs wait for it, and none is refused. The part that is to stay available is set so high that the computer
//! is surely short of it.

use std::fs;
use std::path::{Path, PathBuf};

use offshoot_test_support::{control_group, lacking, named_pipe};
use serde_json::Value;

use crate::command::Place;
use crate::walls::followed_until;

/// A user who keeps nearly all of the memory, and a map of three pieces.
fn short_of_memory() -> Place {
    let place = Place::new();
    place.file("home/.config/offshoot/config.toml", "[host]\nmemoryKeep = 0.999\n");
    place.file("in", "one\ntwo\nthree\n");
    place
}

const MAP: &[&str] =
    &["-q", "map", "--split", "lines:1", "--merge", "concatenate", "in", "--", "sh", "-c"];

/// The events of the newest tree: their kinds, each with the event.
fn events(place: &Place) -> Vec<(String, Value)> {
    let events = place.run(&["events", "last", "--json"]).expect_code(0);
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        (event["kind"]["type"].as_str().expect("every event has a kind").to_owned(), event)
    };
    events.stdout().lines().map(event).collect()
}

#[test]
fn memory_waits_and_never_refuses_the_only_run() {
    let place = short_of_memory();
    let outcome = place.run(&[MAP, &["cat"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "one\n---\ntwo\n---\nthree\n");
    let events = events(&place);
    let mut running = 0;
    for (kind, event) in &events {
        match &**kind {
            "starting" => {
                running += 1;
                assert_eq!(running, 1, "one after the other: {event}");
            }
            "ended" if event["run"] != event["root"] => running -= 1,
            _ => {}
        }
    }
    let count = |wanted: &str| events.iter().filter(|(kind, _)| kind == wanted).count();
    let told = ["starting", "memory_short", "memory_enough", "refused"].map(count);
    assert_eq!(told, [3, 1, 1, 0], "the wait is named once, and that it is over");
    let short = events.iter().find(|(kind, _)| kind == "memory_short").expect("it was told");
    let [available, reserved, kept] = ["available", "reserved", "kept"]
        .map(|name| short.1["kind"][name].as_u64().expect("a number of bytes"));
    assert!(available.saturating_sub(reserved) < kept, "{}", short.1);
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_run_that_waits_for_memory_is_shown_with_the_time_since_when() {
    let place = short_of_memory();
    let script = "cat; while [ ! -e go ]; do sleep 0.02; done";
    let map = place.command(&[MAP, &[script]].concat());
    let mut command = map;
    let mut map = command.spawn().expect("the program was built for this test");
    followed_until(&place, "  memory_short  ");
    let tree = place.run(&["tree"]).expect_code(0);
    let held = "held until more memory is available (host.memoryKeep), since ";
    assert_eq!(tree.stdout().matches(held).count(), 3, "the root and two pieces: {}", tree.text());
    let list = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let list = list.as_array().expect("a list").iter();
    let waits = list.filter(|run| run["memoryShortSince"].is_string());
    let waits: Vec<&str> = waits.filter_map(|run| run["status"].as_str()).collect();
    assert_eq!(waits.iter().filter(|status| **status == "queued").count(), 2, "{waits:?}");
    let stats = place.run(&["stats"]).expect_code(0);
    assert!(stats.stdout().contains(held), "{}", stats.text());
    place.file("go", "");
    let status = map.wait().expect("the child cannot be waited for");
    assert!(status.success(), "{status}");
    let tree = place.run(&["tree"]).expect_code(0);
    assert!(!tree.stdout().contains(held), "{}", tree.text());
}

#[test]
fn a_part_of_zero_waits_for_nothing() {
    let place = short_of_memory();
    place.file("home/.config/offshoot/config.toml", "[host]\nmemoryKeep = 0\n");
    place.run(&[MAP, &["cat"]].concat()).expect_code(0);
    let named = events(&place).iter().any(|(kind, _)| kind.starts_with("memory"));
    assert!(!named, "nothing is read and nothing waits");
}

#[test]
fn a_project_does_not_decide_about_the_memory_of_its_user() {
    let place = Place::new();
    place.file("offshoot.toml", "[host]\nmemoryKeep = 0.5\n");
    let outcome = place.run(&["--config", "offshoot.toml", "config", "show"]);
    let said = "`host` may only stand in the system or user file";
    assert!(outcome.text().contains(said), "{}", outcome.text());
    outcome.expect_code(2);
}

/// A place whose user has set this limit of a run.
fn limited(key: &str, value: u64) -> Place {
    let place = Place::new();
    let text = format!("[agents.defaults.subagents]\n{key} = {value}\n");
    place.file("home/.config/offshoot/config.toml", text);
    place
}

/// The code of the end of the root of the newest tree.
fn code(place: &Place) -> String {
    let tree = place.run(&["tree", "last", "--json"]).expect_code(0).json();
    let node = tree.as_array().map_or(&tree, |tops| &tops[0]);
    node["reason"]["type"].as_str().expect("it has ended").to_owned()
}

/// Runs a script, which fails: the code of its end, and what was said.
fn fails(place: &Place, script: &str) -> (String, String) {
    let said = place.run(&["run", "x", "--", "sh", "-c", script]).expect_code(1).text();
    (code(place), said)
}

#[test]
fn cpu_time_that_is_used_up_has_a_name() {
    let (code, said) = fails(&limited("maxCpuSeconds", 1), "while :; do :; done");
    assert_eq!(code, "cpu_limit");
    assert!(said.contains("raise agents.defaults.subagents.maxCpuSeconds"), "{said}");
}

/// A program may do something before its limits are set: each script of these tests reads its own pipe first, into which the test writes
/// once the start is on record.
fn go(place: &Place, starts: usize, pipe: &str) {
    // There may be no tree yet.
    followed_until(place, "  started  ");
    place.wait_for_starts(starts);
    fs::write(place.path().join(pipe), "go\n").expect("it is read");
}

#[test]
fn memory_beyond_the_limit_is_refused_to_the_program() {
    let place = limited("maxMemoryBytes", 300_000_000);
    named_pipe(place.path().join("pipe"));
    let run = |mib: u32| {
        let script = format!("read go < pipe; dd if=/dev/zero of=/dev/null bs={mib}M count=1");
        let mut command = place.command(&["-q", "run", "x", "--", "sh", "-c", &script]);
        let mut child = command.spawn().expect("the program was built for this test");
        go(&place, 1, "pipe");
        child.wait().expect("the child cannot be waited for").code()
    };
    assert_eq!(run(600), Some(1));
    assert_eq!(code(&place), "exit_code", "it was not killed, and ended as it likes");
    let place = limited("maxMemoryBytes", 300_000_000);
    place
        .run(&["-q", "run", "x", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=50M", "count=1"])
        .expect_code(0);
}

/// The kernel tells nothing of a file that it does not open, so the words of the program do.
#[test]
fn open_files_that_are_used_up_have_a_name() {
    let place = limited("maxOpenFiles", 20);
    named_pipe(place.path().join("pipe"));
    let script = "read go < pipe; exec python3 -c 'all = [open(\"/dev/null\") for _ in range(30)]'";
    let mut command = place.command(&["run", "x", "--", "sh", "-c", script]);
    let child = command.spawn().expect("the program was built for this test");
    go(&place, 1, "pipe");
    let said = place.finish(child, &command, &[]).expect_code(1).text();
    assert_eq!(code(&place), "open_file_limit", "{said}");
    assert!(said.contains("may have no more than 20 files open"), "{said}");
    assert!(said.contains("raise agents.defaults.subagents.maxOpenFiles"), "{said}");
}

#[test]
fn open_files_are_bounded_down_the_chain() {
    let tree = |agent: &str| {
        let place = Place::new();
        let settings = "[agents.defaults.subagents]\nmaxOpenFiles = 64\nallowAgents = [\"*\"]\n\
            allowRecursiveSpawn = true\nmaxDepth = 3\n\
            [[agents.list]]\nid = \"less\"\n[agents.list.subagents]\nmaxOpenFiles = 48\n\
            [[agents.list]]\nid = \"more\"\n[agents.list.subagents]\nmaxOpenFiles = 0\n\
            [[agents.list]]\nid = \"last\"\n";
        place.file("home/.config/offshoot/config.toml", settings);
        let pipes = ["first", "second", "third"];
        pipes.iter().for_each(|pipe| named_pipe(place.path().join(pipe)));
        let asks = |pipe: &str| format!("read go < {pipe}; ulimit -n >> told\n");
        let spawns = "\"$OFFSHOOT\" run -q --agent";
        let [root, child, last] = pipes.map(asks);
        place.file("first.sh", format!("{root}{spawns} {agent} x -- sh second.sh"));
        place.file("second.sh", format!("{child}{spawns} last x -- sh third.sh"));
        place.file("third.sh", last);
        let mut command = place.command(&["-q", "run", "x", "--", "sh", "first.sh"]);
        let mut child = command.spawn().expect("the program was built for this test");
        (1..).zip(pipes).for_each(|(starts, pipe)| go(&place, starts, pipe));
        assert!(child.wait().expect("the child cannot be waited for").success());
        fs::read_to_string(place.path().join("told")).expect("each has told")
    };
    // The limits of an agent bind what is below it.
    assert_eq!(tree("less"), "64\n64\n48\n");
    assert_eq!(tree("more"), "64\n64\n64\n", "no agent gives more than it has");
}

/// A group of processes of the test that may have little memory, and goes with this value.
struct SmallGroup(PathBuf);

impl SmallGroup {
    /// Makes one, with groups of whichever version limit memory here. None where none can be made.
    fn new(name: &str) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let first = own.lines().find_map(|line| Some(line.split_once(":memory:/")?.1));
        let first = first.map(|path| Path::new("/sys/fs/cgroup/memory").join(path));
        let name = format!("{name}-{}", std::process::id());
        [first, control_group()].into_iter().flatten().find_map(|home| {
            let group = Self(home.join(&name));
            fs::create_dir(&group.0).ok()?;
            let limit = |file: &str| fs::write(group.0.join(file), "100000000").ok();
            limit("memory.limit_in_bytes").or_else(|| limit("memory.max"))?;
            // Where there is room on a disk it would take long to fill.
            let _ = fs::write(group.0.join("memory.swap.max"), "0");
            Some(group)
        })
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The kernel kills an agent that takes all of the memory. The supervisor, which is in the same group, is spared and says so.
#[test]
fn out_of_memory_has_a_name() {
    let test = "out_of_memory_has_a_name";
    let Some(group) = SmallGroup::new(test) else {
        return lacking(test, "no control group that limits memory can be made here");
    };
    let place = Place::new();
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec {} run x -- tail /dev/zero",
        group.0.display(),
        env!("CARGO_BIN_EXE_offshoot"),
    );
    let outcome = place.outcome(place.command_of("sh", &["-c", &script]), &[]).expect_code(1);
    assert_eq!(code(&place), "out_of_memory", "{}", outcome.text());
    let said = ["killed because memory was short", "host.memoryKeep"];
    assert!(said.iter().all(|said| outcome.text().contains(said)), "{}", outcome.text());
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn doctor_says_how_much_memory_there_is_and_how_it_is_bounded() {
    // It ends with 1 while a tree of another test, which is seen as well, has lost its keeper.
    let said = Place::new().run(&["doctor"]).stdout().to_owned();
    let words = ["memory: ", " available, and standstills", "maxMemoryBytes is held to by "];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
}
