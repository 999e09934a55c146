//! Finding runs: which hangs, which failed and why, and by what names.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;

use offshoot_test_support::named_pipe;
use serde_json::json;

use crate::command::Place;

/// A map of seven pieces of which three fail, two of them by the same cause.
pub(crate) fn with_failures() -> Place {
    let place = Place::new();
    let script = r#"read x
        case $x in
        b|e) echo "host 1$(($(printf %d "'$x"))): error 42: no route" >&2; exit 3;;
        d) echo "out of beans" >&2; exit 4;;
        *) echo ok;;
        esac"#;
    place.file("in", "a\nb\nc\nd\ne\nf\ng\n");
    let map =
        ["-q", "map", "--split", "lines:1", "--label", "beans", "in", "--", "sh", "-c", script];
    place.run(&map).expect_code(1);
    place
}

/// A named pipe in the folder of the test, open at both ends, so that neither end waits for the other to open it.
pub(crate) fn pipe(place: &Place, name: &str) -> File {
    let path = place.path().join(name);
    named_pipe(&path);
    File::options().read(true).write(true).open(path).expect("the file cannot be opened")
}

/// Waits for the line `up`.
fn read_line(pipe: &mut File) {
    let mut line = [0; 3];
    pipe.read_exact(&mut line).expect("it is open");
    assert_eq!(&line, b"up\n");
}

#[test]
fn runs_are_listed_by_what_is_asked_for() {
    let place = with_failures();
    let labels = |arguments: &[&str]| -> Vec<String> {
        let runs = place.run(&[&["list", "--json"], arguments].concat()).expect_code(0).json();
        let runs = runs.as_array().expect("runs").iter();
        runs.map(|run| run["label"].as_str().unwrap_or("?").to_owned()).collect()
    };
    assert_eq!(labels(&[]), ["beans"]);
    assert_eq!(
        labels(&["--tree", "last", "--status", "failed"]),
        ["beans", "in:2", "in:4", "in:5"]
    );
    assert_eq!(
        labels(&["--tree", "beans", "--status", "completed", "--limit", "2"]),
        ["in:6", "in:7"]
    );
    assert_eq!(labels(&["--tree", "last", "--sort", "time", "--limit", "1"]), ["beans"]);
    assert_eq!(labels(&["--all", "--agent", "nobody-is-called-so"]), [""; 0]);
    assert_eq!(labels(&["--since", "1h"]), ["beans"]);
    assert_eq!(labels(&["--since", "0s"]), [""; 0]);
    place.run(&["list", "--status", "filed"]).expect_code(2);
    let slip = place.run(&["list", "--agent", "mian"]).expect_code(0);
    assert_eq!(slip.stderr, "no run matches: the nearest agent is `main`: --agent main\n");
    let failed = place.run(&["list", "--tree", "last", "--status", "failed"]).expect_code(0);
    let row = failed.stdout().lines().find(|row| row.contains("in:4")).expect("a row").to_owned();
    assert!(row.contains("out of beans") && row.starts_with("@3 "), "{row}");
    // The ids that are printed can be used, and so can the numbers.
    let id = row.split_whitespace().nth(1).expect("the row has no id").to_owned();
    for name in [&*id, "@3", "in:4"] {
        let shown = place.run(&["show", name, "--json"]).expect_code(0).json();
        assert_eq!(shown["label"], "in:4", "{name}");
    }
    let none = place.run(&["show", "@9"]).expect_code(2);
    assert!(none.stderr.contains("the last listing had 4"), "{}", none.stderr);
}

#[test]
fn failures_are_grouped_by_cause() {
    let place = with_failures();
    let stats = place.run(&["stats", "last", "--json"]).expect_code(0).json();
    assert_eq!((&stats["trees"], &stats["runs"]), (&1.into(), &7.into()));
    assert_eq!(
        (&stats["statuses"]["completed"], &stats["statuses"]["failed"]),
        (&4.into(), &3.into())
    );
    let causes = stats["causes"].as_array().expect("causes");
    assert_eq!(causes.len(), 2, "{causes:#?}");
    assert_eq!((&causes[0]["runs"], &causes[0]["code"]), (&2.into(), &"exit_code".into()));
    assert_eq!((&causes[1]["runs"], &causes[1]["name"]), (&1.into(), &"main: in:4".into()));
    assert!(causes[1]["example"].as_str().is_some_and(|text| text.contains("out of beans")));
    for times in ["queue", "run"] {
        assert_eq!(stats[times]["count"], 7, "{times}");
        assert!(stats[times]["p50"].is_u64(), "{times}");
    }
    // The slots of the tree bound what is below one of its runs, too.
    let below = place.run(&["stats", "in:4", "--json"]).expect_code(0).json();
    assert_eq!(below["runs"], 1);
    assert!(below["parallelism"]["possible"].as_f64().is_some_and(|slots| slots >= 1.0), "{below}");
    let page = place.run(&["stats"]).expect_code(0).stdout().to_owned();
    assert!(page.starts_with("runs         7 in 1 tree: 4 completed, 3 failed\n"), "{page}");
    assert!(page.contains("failures     2 × failed  exited with code 3"), "{page}");
    assert_eq!(place.run(&["stats", "--since", "0s", "--json"]).expect_code(0).json()["runs"], 0);
    let tree = place.run(&["tree", "last", "--failed"]).expect_code(0).stdout().to_owned();
    assert_eq!(tree.lines().count(), 1 + 3 + 1, "{tree}");
    assert!(tree.ends_with("└─ … 4 more completed\n"), "{tree}");
    let failed = place.run(&["tree", "last", "--failed", "--json"]).expect_code(0).json();
    assert_eq!(failed[0]["children"].as_array().map(Vec::len), Some(3));
    let shallow = place.run(&["tree", "--depth", "0"]).expect_code(0).stdout().to_owned();
    assert_eq!(shallow.lines().count(), 2, "{shallow}");
}

#[test]
fn each_cause_has_an_example_that_still_counts() {
    let place = Place::new();
    place.file("in", "a\nb\nc\nd\n");
    // Two codes with the same words, and one of each is right the second time.
    let script = r#"read x; case $x in a|c) [ -e again ] && exit;; esac
        case $x in a|b) code=3;; *) code=4;; esac; echo "no beans in $code" >&2; exit $code"#;
    let map = ["-q", "map", "--split", "lines:1", "-j", "1", "in", "--", "sh", "-c", script];
    place.run(&map).expect_code(1);
    let causes = || {
        let page = place.run(&["stats", "last", "--json"]).expect_code(0).json();
        let causes = page["causes"].as_array().expect("causes").clone();
        let mut causes: Vec<[String; 3]> = causes
            .iter()
            .map(|cause| {
                [&cause["runs"], &cause["name"], &cause["example"]].map(ToString::to_string)
            })
            .collect();
        causes.sort_unstable();
        causes.into_iter().map(|cause| cause.join(" ")).collect::<Vec<_>>()
    };
    let why = |code| format!("\"failed  exited with code {code}: no beans in {code}\"");
    let expected = [(2, "in:1", 3), (2, "in:3", 4)];
    let said = |(runs, name, code)| format!("{runs} \"main: {name}\" {}", why(code));
    assert_eq!(causes(), expected.map(said));
    place.file("again", "");
    place.run(&["-q", "resume", "last", "--failed"]).expect_code(1);
    assert_eq!(causes(), [(1, "in:2", 3), (1, "in:4", 4)].map(said));
}

#[test]
fn an_agent_sees_that_its_tree_is_paused() {
    let place = Place::new();
    let (mut up, mut go) = (pipe(&place, "up"), pipe(&place, "go"));
    let script = r#"echo up > up; read go < go; "$OFFSHOOT" tree; "$OFFSHOOT" list;
        "$OFFSHOOT" tree --json; "$OFFSHOOT" list --json; echo up > up; read go < go;
        "$OFFSHOOT" show $OFFSHOOT_RUN_ID | grep "^silent for"; "$OFFSHOOT" tree"#;
    let mut command = place.command(&["run", "--label", "look", "x", "--", "sh", "-c", script]);
    let child = command.spawn().expect("the program cannot be started");
    read_line(&mut up);
    place.run(&["pause", "last"]).expect_code(0);
    go.write_all(b"go\n").expect("it reads");
    read_line(&mut up);
    place.run(&["unpause", "last"]).expect_code(0);
    go.write_all(b"go\n").expect("it reads");
    let outcome = place.finish(child, &command, &[]).expect_code(0);
    let said = outcome.stdout();
    assert_eq!(said.matches("paused by the operator since 20").count(), 2, "{said}");
    assert_eq!(said.matches("\"pausedSince\"").count(), 2, "{said}");
    // Its age and its silence: in the tree, below headings in the list, in the JSON of both, in `show`.
    assert_eq!(said.matches("  silent ").count(), 2, "{said}");
    let headings = ["RUN", "AGENT", "STATUS", "DEPTH", "AGE", "TIME", "SILENT", "LABEL", "REASON"];
    let headed = said.lines().find(|line| line.starts_with("RUN ")).expect("a list has headings");
    assert_eq!(headed.split_whitespace().collect::<Vec<_>>(), headings, "{said}");
    for field in ["ageMs", "runningMs", "silentMs"] {
        assert_eq!(said.matches(&format!("\"{field}\"")).count(), 2, "{field}: {said}");
    }
    assert!(said.contains("\nsilent for  "), "{said}");
    let last = said.lines().last().expect("a tree");
    assert!(last.starts_with("main: look 0") && last.contains(" (depth 0)  running  "), "{last}");
}

#[test]
fn a_piece_that_hangs_is_found_and_a_paused_tree_says_so() {
    let place = Place::new();
    let (mut up, mut go) = (pipe(&place, "up"), pipe(&place, "go"));
    place.file("in", "1\n2\n");
    // The second piece says that it works, and then nothing until it is told to go on.
    let script = r#"read x; [ $x = 1 ] && exit; for i in 1 2 3 4; do echo "part $i" >&2; done
        echo up > up; read go < go; echo done"#;
    let mut command =
        place.command(&["map", "--split", "lines:1", "-j", "1", "in", "--", "sh", "-c", script]);
    let child = command.spawn().expect("the program cannot be started");
    read_line(&mut up);
    place.wait_for_starts(2);
    let runs = ["list", "--tree", "last", "--status", "starting,running", "--json"];
    let runs = place.run(&runs).expect_code(0).json();
    let runs = runs.as_array().expect("runs");
    let hangs = runs.iter().find(|run| run["label"] == "in:2").expect("it runs");
    assert!(hangs["silentMs"].is_u64(), "{hangs}");
    let list =
        place.run(&["list", "--tree", "last", "--status", "starting,running", "--sort", "silent"]);
    let list = list.expect_code(0).stdout().to_owned();
    assert!(list.lines().next().is_some_and(|row| row.contains("SILENT")), "{list}");
    assert!(list.lines().nth(1).is_some_and(|row| row.contains("in:2")), "{list}");
    let tree = place.run(&["tree"]).expect_code(0).stdout().to_owned();
    assert!(tree.lines().any(|row| row.contains("in:2") && row.contains("silent ")), "{tree}");
    let id = hangs["runId"].as_str().expect("the run has no id");
    let mut logs = place.command(&["logs", id, "-f"]).spawn().expect("the program was built");
    let mut lines = BufReader::new(logs.stdout.take().expect("it is a pipe")).lines();
    // Its supervisor has read what it said.
    lines
        .find(|line| line.as_ref().is_ok_and(|line| line == "part 4"))
        .expect("it says so")
        .expect("it is text");
    let show = place.run(&["show", id]).expect_code(0).stdout().to_owned();
    for expected in [
        "\nsilent for  ",
        ", and is ended after 10 min\n",
        "\nlimits      30 min of work, 10 min of silence\n",
        "\nlast said   at 20",
        "Z\n            part 2\n            part 3\n            part 4\n",
        &format!("`offshoot logs {id} -t -f` prints what it says, with times"),
    ] {
        assert!(show.contains(expected), "{expected}\n{show}");
    }
    let show = place.run(&["show", id, "--json"]).expect_code(0).json();
    assert_eq!(show["lastLines"], json!(["part 2", "part 3", "part 4"]));
    assert!(show["silentMs"].is_u64() && show["lastSaidAt"].is_string(), "{show}");
    for (command, expected) in [
        ("pause", "paused: nothing more is started"),
        ("pause", "nothing changed: the tree is paused since"),
    ] {
        let said = place.run(&[command, "last"]).expect_code(0).stderr.clone();
        assert!(said.contains(expected), "{said}");
    }
    for view in [&["tree"][..], &["list"]] {
        let shown = place.run(view).expect_code(0).stdout().to_owned();
        assert!(shown.contains("paused by the operator since 20"), "{shown}");
    }
    for (command, expected) in [
        ("unpause", "the tree goes on; it was paused since"),
        ("unpause", "nothing changed: the tree was not paused"),
    ] {
        let said = place.run(&[command, "last"]).expect_code(0).stderr.clone();
        assert!(said.contains(expected), "{said}");
    }
    let words = place.run(&["events"]).expect_code(0).stdout().to_owned();
    assert_eq!(words.matches("  paused  ").count(), 1, "{words}");
    assert_eq!(words.matches("  unpaused  ").count(), 1, "{words}");
    go.write_all(b"go\n").expect("it reads");
    let outcome = place.finish(child, &command, &[]).expect_code(0);
    assert!(outcome.stdout().ends_with("done\n"), "{}", outcome.text());
    assert!(lines.last().is_some_and(|line| line.is_ok_and(|line| line == "done")));
    logs.wait().expect("it was started");
    let show = place.run(&["show", id]).expect_code(0).stdout().to_owned();
    assert!(!show.contains("silent for") && !show.contains("last said"), "{show}");
    place.run(&["audit", "last"]).expect_code(0);
    assert!(!place.run(&["tree"]).expect_code(0).stdout().contains("silent"));
}

#[test]
fn a_tree_that_its_breaker_holds_back_says_so() {
    let place = Place::new();
    let agent = place.file("agent", "#!/bin/sh\nrm agent\n");
    fs::set_permissions(&agent, Permissions::from_mode(0o755)).expect("the mode cannot be set");
    place.file("in", "1\n2\n3\n4\n5\n");
    let limits = "[agents.defaults.subagents.breaker]\nfailures = 2\ncooldownSeconds = 3600\n";
    place.file("c.toml", limits);
    let map = ["--config", "c.toml", "map", "--split", "lines:1", "-j", "1", "in", "--", "./agent"];
    let mut command = place.command(&map);
    let mut child = command.spawn().expect("the program cannot be started");
    let words = BufReader::new(child.stderr.take().expect("it is a pipe"));
    let held = "held back by the breaker of the agent `main` since 20";
    let mut words = words.lines().map(|line| line.expect("it is text"));
    let told = words.find(|line| line.contains(held)).expect("it is said");
    assert!(told.starts_with(" 20 %  ") && told.contains(": 2 faults in a row, one run"), "{told}");
    for view in [&["tree"][..], &["list"], &["show", "last"], &["show", "in:4"]] {
        let shown = place.run(view).expect_code(0).stdout().to_owned();
        assert!(shown.contains(held), "{view:?}\n{shown}");
    }
    let queued = ["list", "--tree", "last", "--status", "queued"];
    let queued = place.run(&queued).expect_code(0).stdout().to_owned();
    assert_eq!(queued.matches(held).count(), 2, "{queued}");
    for view in ["tree", "list"] {
        let roots = place.run(&[view, "--json"]).expect_code(0).json();
        let open = &roots[0]["openBreakers"][0];
        assert_eq!((&open["agent"], &open["faults"]), (&"main".into(), &2.into()), "{open}");
        assert!(open["until"].is_string() && open["since"].is_string(), "{open}");
    }
    let events = place.run(&["events"]).expect_code(0).stdout().to_owned();
    let event = "  breaker_opened  no run of the agent `main` starts for 1 h: 2 faults in a row";
    assert_eq!(events.matches(event).count(), 1, "{events}");
    place.run(&["cancel", "last"]).expect_code(0);
    let rest = std::thread::spawn(move || drop(words.last()));
    place.finish(child, &command, b"").expect_code(1);
    rest.join().expect("it only reads");
    place.run(&["audit", "last"]).expect_code(0);
    let list = place.run(&["list"]).expect_code(0).stdout().to_owned();
    assert!(!list.contains(held), "{list}");
}

#[test]
fn all_trees_of_a_user_are_paused_and_ended_at_once() {
    let place = Place::new();
    let folder = place.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    // Without the folder these would be the trees of other tests, too.
    let run = |words: [&str; 2]| {
        place.run(&[&words[..], &["--data-dir", folder]].concat()).expect_code(0).stderr
    };
    assert!(run(["pause", "--all"]).contains("nothing changed: no tree in this data folder runs"));
    let (mut up, _go) = (pipe(&place, "up"), pipe(&place, "go"));
    let asked = ["run", "--data-dir", folder, "--label", "waits", "x", "--", "sh", "-c"];
    let mut command = place.command(&[&asked[..], &["echo up > up; read go < go"]].concat());
    let running = [(); 2].map(|()| command.spawn().expect("the program cannot be started"));
    for _ in &running {
        read_line(&mut up);
    }
    for (words, expected) in [
        (["unpause", "--all"], "nothing changed: main: waits"),
        (["pause", "--all"], "paused: main: waits"),
        (["pause", "--all"], "nothing changed: main: waits"),
        (["unpause", "--all"], "goes on: main: waits"),
        (["cancel", "--all"], "asked to end: main: waits"),
    ] {
        let said = run(words);
        assert_eq!(said.matches(expected).count(), 2, "{said}");
    }
    for child in running {
        place.finish(child, &command, b"").expect_code(1);
    }
    let trees = place.run(&["list", "--json", "--data-dir", folder]).expect_code(0).json();
    for tree in trees.as_array().expect("trees") {
        let id = tree["runId"].as_str().expect("the run has no id");
        let words = place.run(&["events", id, "--data-dir", folder]).expect_code(0);
        let words = words.stdout();
        assert!(words.contains("  paused  ") && words.contains("  unpaused  "), "{words}");
    }
}

#[test]
fn words_of_other_programs_point_to_ours() {
    let place = Place::new();
    for (word, expected) in
        [("ps", "offshoot list"), ("kill", "offshoot cancel"), ("retry", "offshoot resume")]
    {
        let outcome = place.run(&[word]).expect_code(2);
        assert!(
            outcome.stderr.contains("hint: ") && outcome.stderr.contains(expected),
            "{}",
            outcome.stderr
        );
    }
    let help = place.run(&["help", "map"]).expect_code(0).stdout().to_owned();
    assert!(help.contains("--split") && help.contains("--jobs"), "{help}");
}

#[test]
fn a_second_cancel_says_that_nothing_changed() {
    let place = Place::new();
    let (mut up, mut go) = (pipe(&place, "up"), pipe(&place, "go"));
    let script = "trap '' TERM; echo up > up; read go < go";
    let mut command = place.command(&["run", "x", "--", "sh", "-c", script]);
    let child = command.spawn().expect("the program cannot be started");
    read_line(&mut up);
    let mut events = place.command(&["events", "last", "-f"]).spawn().expect("it was built");
    let cancel = || place.run(&["cancel", "last"]).expect_code(0).stderr;
    assert!(cancel().contains("1 run is asked to end"));
    // It is on record.
    let lines = BufReader::new(events.stdout.take().expect("it is a pipe")).lines();
    let asked = |line: std::io::Result<String>| line.is_ok_and(|it| it.contains("stopping"));
    assert!(lines.into_iter().any(asked), "the record says nothing of it");
    let said = cancel();
    assert!(said.contains("nothing changed: the run is already asked to end"), "{said}");
    go.write_all(b"go\n").expect("it reads");
    place.finish(child, &command, &[]);
    assert!(cancel().contains("nothing changed: the run and all below it are over"));
    events.wait().expect("it ends with the tree");
}

#[test]
fn the_stats_of_a_tree_say_what_more_slots_would_have_given() {
    let place = Place::new();
    place.file("in", "1\n2\n3\n4\n5\n6\n7\n8\n");
    let map = ["-q", "map", "--max-concurrent", "2", "--split", "lines:1", "in", "--"];
    place.run(&[&map[..], &["sh", "-c", "sleep 0.2; cat"]].concat()).expect_code(0);
    let stats = place.run(&["stats", "last", "--json"]).expect_code(0).json();
    let found = &stats["opportunities"];
    let slots = found["slots"].as_array().expect("the tree is over");
    let counts: Vec<_> = slots.iter().map(|it| it["maxConcurrent"].as_u64()).collect();
    assert_eq!(counts, [Some(2), Some(4), Some(8)]);
    let times: Vec<u64> = slots.iter().filter_map(|it| it["ms"].as_u64()).collect();
    // Each piece works for 200 ms at least.
    assert!(times[0] >= 800 && times[1] >= 400 && times[2] >= 200, "{found}");
    assert!(times[1] * 4 <= times[0] * 3 && times[2] < times[1], "{found}");
    assert_eq!(found["queued"][0]["bound"]["limit"], "maxConcurrent", "{found}");
    let chain = &found["slowestChain"];
    assert_eq!(chain["runs"].as_array().expect("a list").len(), 1, "{chain}");
    assert!(chain["ms"].as_u64() >= Some(200), "{chain}");
    assert_eq!(found["cacheReads"], serde_json::Value::Null, "a program reads no tokens");
    let page = place.run(&["stats", "last"]).expect_code(0);
    for line in ["\nin line for  maxConcurrent ", "\nlongest path ", "\nmore slots   "] {
        assert!(page.stdout().contains(line), "{}", page.stdout());
    }
    // The slots of a tree are those of all of it, and those of several trees are not one number.
    for narrower in [&["stats", "in:3", "--json"][..], &["stats", "--json"]] {
        let stats = place.run(narrower).expect_code(0).json();
        assert_eq!(stats["opportunities"], serde_json::Value::Null, "{narrower:?}");
    }
}
