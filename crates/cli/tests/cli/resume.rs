//! Trees whose supervisor is killed, and what `resume` makes of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use offshoot_test_support::named_pipe;

use crate::command::Place;
use crate::doomed::Doomed;
use crate::forged::forge;

/// Counts how often each line was worked on. The third hangs until the file `go` is there, after it has said so.
pub(crate) const WORK: &str = "read line; echo ran >> ran-$line; \
    if [ $line = 3 ] && [ ! -e go ]; then echo up > fifo; exec sleep 600; fi; echo done $line";

pub(crate) fn killed_map() -> Place {
    let place = Place::new();
    place.file("in", LINES);
    killed_map_of(place, "in")
}

fn killed_map_of(place: Place, input: &str) -> Place {
    let map = ["map", "--split", "lines:1", "--max-concurrent", "1", input, "--", "sh", "-c", WORK];
    Doomed::start(place, &map).kill()
}

/// Returns the number of times that a line was worked on.
pub(crate) fn ran(place: &Place, line: u32) -> usize {
    let log = fs::read_to_string(place.path().join(format!("ran-{line}"))).unwrap_or_default();
    log.lines().count()
}

/// True if the record says that the piece of this line has ended. One that was about to say so when the supervisor was killed has
/// not.
fn had_ended(place: &Place, line: u32) -> bool {
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let label = format!("in:{line}");
    let of_line = |run: &&serde_json::Value| run["label"] == label.as_str();
    let runs = runs.as_array().expect("a list of runs");
    runs.iter().find(of_line).is_some_and(|run| run["status"] == "completed")
}

/// Four lines, each a piece.
const LINES: &str = "1\n2\n3\n4\n";

const WHOLE: &str = "done 1\n---\ndone 2\n---\ndone 3\n---\ndone 4\n";

#[test]
fn what_had_ended_is_not_run_again_and_the_answer_is_whole() {
    let place = killed_map();
    let lost = place.run(&["tree"]).expect_code(0);
    assert!(lost.stdout().contains("lost"), "{}", lost.stdout());
    let expected = [1, 2, 3, 4].map(|line| if line > 3 || had_ended(&place, line) { 1 } else { 2 });
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), WHOLE);
    assert_eq!([1, 2, 3, 4].map(|line| ran(&place, line)), expected);
    let roots = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let root = roots[0]["runId"].as_str().expect("a list of runs").to_owned();
    place.run(&["audit", &root]).expect_code(0);

    let again = place.run(&["resume"]).expect_code(2);
    assert!(again.stderr.contains("nothing to resume"), "{}", again.stderr);
    let over = place.run(&["resume", &root]).expect_code(0);
    assert_eq!(over.stdout(), WHOLE, "a tree that is over says what came of it");
    assert!(over.stderr.contains("is over"), "{}", over.stderr);
}

#[test]
fn an_input_that_has_changed_is_named() {
    let place = killed_map();
    place.file("go", "");
    place.file("in", "1\n2\n7\n4\n");
    let root = place.run(&["list", "--json"]).json()[0]["runId"]
        .as_str()
        .expect("the run has no id")
        .to_owned();
    let events = || place.run(&["events", &root]).expect_code(0).stdout().to_owned();
    let before = (events(), [1, 2, 3, 4].map(|line| ran(&place, line)));
    let refused = place.run(&["resume"]).expect_code(2);
    assert!(refused.stderr.contains("/in has changed"), "{}", refused.stderr);
    assert!(refused.stderr.contains("bytes 4 to 6"), "{}", refused.stderr);
    let after = (events(), [1, 2, 3, 4].map(|line| ran(&place, line)));
    assert_eq!(after, before, "nothing runs, and nothing is written");
    place.file("in", "1\n2\n3\n4\n5\n6\n");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), WHOLE, "put back, it is as before; what was appended is not read");
}

#[test]
fn a_resumed_map_reads_no_file_through_a_link_that_was_not_there_before() {
    let outside = tempfile::tempdir().expect("no temporary folder can be made");
    // The same bytes, so that no hash tells them apart.
    fs::write(outside.path().join("in"), LINES).expect("the file cannot be written");
    let place = Place::new();
    place.file("folder/in", LINES);
    let place = killed_map_of(place, "folder/in");
    let path = |name: &str| place.path().join(name);
    let rename = |from, to| fs::rename(path(from), path(to)).expect("the file cannot be renamed");
    place.file("go", "");
    for (replaced, link) in
        [("folder/in", outside.path().join("in")), ("folder", outside.path().into())]
    {
        rename(replaced, "aside");
        symlink(link, path(replaced)).expect("the link cannot be made");
        let refused = place.run(&["resume"]).expect_code(2);
        let why = format!("/{replaced} became a symbolic link after the input was cut");
        assert!(refused.stderr.contains(&why), "{}", refused.stderr);
        fs::remove_file(path(replaced)).expect("it is a link");
        rename("aside", replaced);
    }
    assert_eq!(place.run(&["resume"]).expect_code(0).stdout(), WHOLE);
}

#[test]
fn a_link_that_the_user_has_named_is_followed_once_also_across_a_resume() {
    let place = Place::new();
    place.file("real", LINES);
    place.file("other", "1\n2\n3\nsecret\n");
    symlink("real", place.path().join("link")).expect("the link cannot be made");
    let place = killed_map_of(place, "link");
    fs::remove_file(place.path().join("link")).expect("the file cannot be removed");
    symlink("other", place.path().join("link")).expect("the link cannot be made");
    place.file("go", "");
    assert_eq!(place.run(&["resume"]).expect_code(0).stdout(), WHOLE);
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    assert!(
        runs.as_array()
            .expect("the answer has no list of runs")
            .iter()
            .any(|run| run["label"] == "link:4"),
        "{runs}"
    );
}

#[test]
fn a_record_that_does_not_say_where_links_led_is_resumed() {
    let place = Place::new();
    let real = place.file("real", LINES).display().to_string();
    symlink("real", place.path().join("link")).expect("the link cannot be made");
    let place = killed_map_of(place, "link");
    let (asked_for, resolved) = (real.replace("/real", "/link"), r#""resolved":"REAL","#);
    // As earlier versions have written it.
    let statement = format!(
        r#"UPDATE events SET body = replace(replace(replace(body, '{}', ''), '{}', ''), '{real}', '{asked_for}')"#,
        resolved.replace("REAL", &real),
        resolved.replace('"', r#"\""#).replace("REAL", &real),
    );
    forge(&place, &statement);
    place.file("go", "");
    assert_eq!(place.run(&["resume"]).expect_code(0).stdout(), WHOLE);
}

#[test]
fn a_tree_that_is_killed_while_it_is_resumed_is_resumed_again() {
    let place = killed_map();
    let place = Doomed::start(place, &["resume"]).kill();
    let before = [1, 2, 3].map(|line| (had_ended(&place, line), ran(&place, line)));
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), WHOLE);
    let once_more = |(ended, ran): (bool, usize)| if ended { ran } else { ran + 1 };
    assert_eq!([1, 2, 3].map(|line| ran(&place, line)), before.map(once_more));
    // Programs use no tokens, however often they are begun.
    let stats = place.run(&["stats", "last"]).expect_code(0).stdout().to_owned();
    assert!(!stats.contains("not reported"), "{stats}");
}

#[test]
fn what_held_it_more_strictly_goes_on_holding_it() {
    let place = Place::new();
    place.file("in", "3\n4\n");
    let was =
        "maxConcurrent = 1\nmaxSpawns = 9\nonParentEnd = \"cascade\"\nallowAgents = [\"a\"]\n";
    // An agent that is not defined any more runs on too: only a new tree is refused one.
    let defined = "[[agents.list]]\nid = \"gone\"\n";
    place.file("c.toml", format!("[agents.defaults.subagents]\n{was}{defined}"));
    let agent = ["--config", "c.toml", "--agent", "gone"];
    let command = ["--split", "lines:1", "in", "--", "sh", "-c", WORK];
    let place = Doomed::start(place, &[&["map"], &agent[..], &command].concat()).kill();
    place.file("go", "");
    place.file("c.toml", "[agents.defaults.subagents]\nmaxSpawns = 5\n");
    let resumed = place.run(&["resume"]).expect_code(0);
    for said in [
        "maxConcurrent was 1 and is 8 now: 1 holds",
        "maxSpawns was 9 and is 5 now: 5 holds",
        "onParentEnd was cascade and is letFinish now: cascade holds",
        "allowAgents was [\"a\"] and is unset now: [] holds",
    ] {
        assert!(resumed.stderr.contains(said), "{}", resumed.stderr);
    }
}

#[test]
fn a_tree_has_one_supervisor() {
    let place = Place::new();
    place.file("in", "3\n");
    let doomed = Doomed::start(place, &["map", "in", "--", "sh", "-c", WORK]);
    let roots = doomed.place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let root = roots[0]["runId"].as_str().expect("a list of runs").to_owned();
    let held = doomed.place.run(&["resume", &root]).expect_code(2);
    assert!(held.stderr.contains("is held by a supervisor"), "{}", held.stderr);
    doomed.kill();
}

/// In a second terminal, while it runs and until it is killed; and once more, to its end.
#[test]
fn events_are_followed_until_the_supervisor_is_gone() {
    let place = Place::new();
    place.file("in", "3\n4\n");
    let map = ["map", "--split", "lines:1", "--max-concurrent", "1", "in", "--", "sh", "-c", WORK];
    let mut doomed = Doomed::start(place, &map);
    let roots = doomed.place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let root = roots[0]["runId"].as_str().expect("a list of runs").to_owned();
    let follow = ["events", "--follow", "--json", &root];
    let mut command = doomed.place.command(&follow);
    let mut follower = command.spawn().expect("the program cannot be started");
    let mut lines =
        BufReader::new(follower.stdout.take().expect("the stream is not a pipe")).lines();
    let started = |line: &str| line.contains("started");
    assert!(lines.by_ref().map(|line| line.expect("text")).any(|line| started(&line)));
    doomed.end();
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert!(rest.iter().all(|line| !line.contains("\"ended\"")), "{rest:?}");
    let ended = follower.wait_with_output().expect("the child cannot be waited for");
    assert!(ended.status.success());
    let told = String::from_utf8(ended.stderr).expect("messages are UTF-8");
    assert!(told.contains(&format!("the supervisor of tree {root} has gone")), "{told}");
    assert!(told.contains(&format!("`offshoot resume {root}` goes on with it")), "{told}");
    let lost = doomed.place.run(&["show", &root]).expect_code(0);
    for word in [&*format!("`offshoot resume {root}`"), "`onInterrupt`"] {
        assert!(lost.stdout().contains(word), "{}", lost.stdout());
    }

    doomed.place.file("go", "");
    doomed.place.run(&["resume"]).expect_code(0);
    let whole = doomed.place.run(&follow).expect_code(0);
    assert!(whole.stdout().lines().last().expect("events").contains("\"ended\""));
}

#[test]
fn a_header_is_repeated_across_a_resume_too() {
    let place = Place::new();
    place.file("in", "head\n1\n2\n3\n4\n");
    let work = format!("read head; echo $head; {WORK}");
    let map = ["map", "--header", "1", "--split", "lines:1", "in", "--", "sh", "-c", &work];
    let place = Doomed::start(place, &map).kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), WHOLE.replace("done", "head\ndone"));
    // Another header is another input.
    let place = Place::new();
    place.file("in", "head\n1\n3\n");
    let place = Doomed::start(place, &map).kill();
    place.file("go", "");
    place.file("in", "HEAD\n1\n3\n");
    let refused = place.run(&["resume"]).expect_code(2);
    assert!(refused.stderr.contains("changed"), "{}", refused.stderr);
}

#[test]
fn what_a_task_is_given_is_kept_across_a_resume() {
    let place = Place::new();
    place.file("there/x", "");
    place.file("note", "a note\n");
    place.file(
        "there/work.sh",
        "[ -e ../go ] || { echo up > ../fifo; exec sleep 600; }\n\
         tr -d ' \\n' < \"$OFFSHOOT_CONTEXT\" | grep -o '\"[a-z]*\":{'; basename \"$PWD\"\n",
    );
    let agent =
        "[[agents.list]]\nid = \"worker\"\ncwd = \"there\"\ncommand = [\"sh\", \"work.sh\"]\n";
    place.file("c.toml", agent);
    let line = r#"{"task":"x","agent":"worker","context":{"mine":"note"},"timeout":"90s"}"#;
    place.file("tasks", [line, line].join("\n"));
    let fanout = ["fanout", "--config", "c.toml", "--tasks", "tasks", "--merge", "structured"];
    let place = Doomed::start(place, &fanout).kill();
    place.file("go", "");
    place.file("tasks", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    let given = "\"mine\":{\nthere";
    assert_eq!(resumed.json(), serde_json::json!({"x": given, "x (2)": given}));
}

#[test]
fn an_agent_that_runs_again_maps_again() {
    let place = Place::new();
    place.file("in", LINES);
    place.file("c.toml", "[agents.defaults.subagents]\nonInterrupt = \"rerun\"\n");
    let script = format!("\"$OFFSHOOT\" -q map --split lines:1 in -- sh -c '{WORK}'");
    let run = ["run", "--config", "c.toml", "x", "--", "sh", "-c", &script];
    let place = Doomed::start(place, &run).kill();
    place.file("go", "");
    assert_eq!(place.run(&["resume"]).expect_code(0).stdout(), WHOLE);
    assert_eq!(ran(&place, 3), 2, "its first children are lost with its first attempt");
}

#[test]
fn the_same_command_line_goes_on_by_itself() {
    let place = Place::new();
    place.file("in", "1\n3\n");
    let arguments = ["map", "--auto-resume", "--split", "lines:1", "in", "--", "sh", "-c", WORK];
    let place = Doomed::start(place, &arguments).kill();
    place.file("go", "");
    let resumed = place.run(&arguments).expect_code(0);
    assert_eq!(resumed.stdout(), "done 1\n---\ndone 3\n");
    assert!(resumed.stderr.contains("resuming tree"), "{}", resumed.stderr);
    let before = [1, 3].map(|line| ran(&place, line));
    let fresh = place.run(&arguments).expect_code(0);
    assert_eq!(fresh.stdout(), "done 1\n---\ndone 3\n");
    let after = [1, 3].map(|line| ran(&place, line));
    assert_eq!(after, before.map(|ran| ran + 1), "what is over is over");
}

#[test]
fn tasks_of_a_fanout_are_kept() {
    let place = Place::new();
    let work = "line=$OFFSHOOT_LABEL; line=${line:-$(cat)}; [ -e go ] || { echo up > fifo; exec sleep 600; }; echo $line";
    let fanout = ["fanout", "--task", "one", "--task", "two", "--merge", "structured", "--", "sh"];
    let fanout = [&fanout[..], &["-c", work]].concat();
    let place = Doomed::start(place, &fanout).kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.json(), serde_json::json!({"one": "one", "two": "two"}));
}

#[test]
fn a_program_that_was_interrupted_is_lost_unless_it_may_run_again() {
    let place = Place::new();
    let work = "echo ran >> ran-3; [ -e go ] || { echo up > fifo; exec sleep 600; }; echo fine";
    let run = ["run", "task", "--", "sh", "-c", work];
    let place = Doomed::start(place, &run).kill();
    place.file("go", "");
    let lost = place.run(&["resume"]).expect_code(1);
    assert!(lost.stderr.contains("interrupted with its supervisor"), "{}", lost.stderr);
    assert_eq!(ran(&place, 3), 1);

    fs::remove_file(place.path().join("go")).expect("the file cannot be removed");
    place.file("c.toml", "[agents.defaults.subagents]\nonInterrupt = \"rerun\"\n");
    let run = [&["--config", "c.toml"][..], &run].concat();
    let place = Doomed::start(place, &run).kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), "fine\n", "the configuration file is remembered");
    assert_eq!(ran(&place, 3), 3);
}

#[test]
fn an_attempt_that_begins_anew_merges_its_own_children() {
    let place = Place::new();
    let config = "onInterrupt = \"rerun\"\nallowRecursiveSpawn = true\n";
    place.file("c.toml", format!("[agents.defaults.subagents]\n{config}"));
    let work = r#""$OFFSHOOT" -q spawn x -- sh -c '[ -e go ] || exec sleep 600; echo 3' >/dev/null
        [ -e go ] || { echo up > fifo; exec sleep 600; }
        "$OFFSHOOT" wait --merge sum"#;
    let run = ["run", "--config", "c.toml", "task", "--", "sh", "-c", work];
    let place = Doomed::start(place, &run).kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), "3\n");
}

#[test]
fn values_are_found_by_their_names_after_the_supervisor_was_killed() {
    let place = Place::new();
    place.file("c.toml", "[agents.defaults.subagents]\nonInterrupt = \"rerun\"\n");
    let script = r#"if [ ! -e go ]; then
        printf 'the plan' | "$OFFSHOOT" -q context put "a b/../c"
        printf 'the old word' | "$OFFSHOOT" -q context put word
        printf 'the new word' | "$OFFSHOOT" -q context put word
        printf 'the plan' | "$OFFSHOOT" -q context put "the same"
        "$OFFSHOOT" -q spawn --wait x -- echo merged >/dev/null
        "$OFFSHOOT" -q --json merge --children $OFFSHOOT_RUN_ID | sed -n 's/.*"name": "\(.*\)".*/\1/p' > name
        echo up > fifo; exec sleep 600
    fi
    for name in "a b/../c" word "the same" "$(cat name)"; do
        "$OFFSHOOT" context get "$name"; echo
    done
    "$OFFSHOOT" --json context info | grep -c '"name"'
    "$OFFSHOOT" --json context info word | grep -c createdAt
    "$OFFSHOOT" -q spawn --wait --give word x -- sh -c '"$OFFSHOOT" context get word'"#;
    let run = ["run", "--config", "c.toml", "task", "--", "sh", "-c", script];
    let place = Doomed::start(place, &run).kill();
    let named = fs::read_to_string(place.path().join("name")).expect("a merge has a name");
    assert!(named.starts_with("merged-"), "{named}");
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    let expected = "the plan\nthe new word\nthe plan\nmerged\n4\n1\nthe new word\n";
    assert_eq!(resumed.stdout(), expected, "{}", resumed.stderr);
    let root = place.run(&["list", "--json"]).json()[0]["runId"]
        .as_str()
        .expect("the run has no id")
        .to_owned();
    let kept = place.run(&["events", &root]).expect_code(0);
    assert_eq!(kept.stdout().matches("  kept  ").count(), 5, "{}", kept.stdout());
    let with = |text: &str| {
        let values = walk(&place.path().join(".offshoot"));
        values.iter().filter(|file| fs::read_to_string(file).is_ok_and(|it| it == text)).count()
    };
    // One value, and for each name a link to it.
    assert_eq!(with("the plan"), 3);
    place.run(&["audit", &root]).expect_code(0);
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_runtime_of_a_plugin_is_given_its_command_again() {
    let place = Place::new();
    crate::plugin::plugin(&place, "plugins", "raw", "raw");
    let fanout = ["fanout", "--plugin-path", "plugins", "--runtime", "upper"];
    let more = ["--task", "say the command", "--", "a", "program"];
    let place = Doomed::start(place, &[&fanout[..], &more].concat()).kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), "A PROGRAM\n");
}

#[test]
fn a_runtime_of_one_task_is_loaded_before_the_tree_goes_on() {
    let place = Place::new();
    crate::plugin::plugin(&place, "plugins", "raw", "raw");
    place.file("c.toml", "[[agents.list]]\nid = \"other\"\n");
    let tasks = "{\"task\":\"one\",\"runtime\":\"upper\",\"agent\":\"other\"}\n\
                 {\"task\":\"two\"}\n";
    place.file("tasks", tasks);
    let work = "[ -e go ] || { echo up > fifo; exec sleep 600; }; cat";
    let fanout = ["fanout", "--config", "c.toml", "--plugin-path", "plugins"];
    let more = ["--max-concurrent", "1", "--tasks", "tasks", "--", "sh", "-c", work];
    let place = Doomed::start(place, &[&fanout[..], &more].concat()).kill();
    // What a tree goes on with need not be defined any more.
    place.file("c.toml", "");
    place.file("go", "");
    let (plugins, away) = (place.path().join("plugins"), place.path().join("away"));
    fs::rename(&plugins, &away).expect("the folder can be renamed");
    let refused = place.run(&["resume"]).expect_code(5);
    assert!(refused.stderr.contains("there is no runtime `upper` here"), "{}", refused.stderr);
    fs::rename(&away, &plugins).expect("the folder can be renamed");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), "ONE\n---\ntwo\n");
}

#[test]
fn a_tree_without_a_plan_names_what_is_unfinished_in_it() {
    let place = Place::new();
    place.file("one", "1");
    place.file("two", "2");
    let report = place.run(&["map", "--json", "one", "two", "--", "cat"]).expect_code(0).json();
    let root = report["runId"].as_str().expect("the report names the root");
    // As the root of a client is, whose supervisor was killed.
    forge(
        &place,
        "UPDATE events SET body = json_remove(body, '$.admitted.plan') WHERE seq = 1;
         UPDATE events SET body = '\"budget_notice\"', kind = 'budget_notice' WHERE kind = 'ended'
            AND run <> (SELECT run FROM events WHERE kind = 'ended' ORDER BY seq LIMIT 1);
         UPDATE roots SET ended = 0",
    );
    let resumed = place.run(&["resume", root]).expect_code(2);
    let said = "was not opened by a command that can be resumed; unfinished in it: ";
    let (_, named) = resumed.stderr.split_once(said).expect("it says so");
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let lost = runs.as_array().expect("a list").iter().filter(|run| run["status"] == "lost");
    let lost: Vec<&str> =
        lost.filter_map(|run| run["runId"].as_str()).filter(|run| *run != root).collect();
    assert_eq!(lost.len(), 1, "{runs}");
    assert!(named.starts_with(lost[0]), "{}", resumed.stderr);
}

#[test]
fn output_that_a_killed_run_has_left_is_in_no_runs_way() {
    let place = Place::new();
    place.file("in", "x\n");
    // Another tree in the same folder: while it is held, what was left in the folder is not swept.
    let held = place.path().join("held");
    named_pipe(&held);
    let hold = ["run", "x", "--", "sh", "-c", "echo up > held; exec sleep 600"];
    let mut neighbour =
        place.command(&hold).stderr(Stdio::null()).spawn().expect("the program cannot be started");
    assert_eq!(fs::read_to_string(&held).expect("the agent writes a line"), "up\n");

    // It has printed more than is kept in memory, and the file for it is there, when it says that it hangs.
    let work = "head -c 300000 /dev/zero | tr '\\0' x; [ -e go ] && exit; \
        until ls .offshoot/spool | grep -q output-; do :; done; echo up > fifo; exec sleep 600";
    let map = ["map", "--split", "lines:1", "in", "--", "sh", "-c", work];
    let place = Doomed::start(place, &map).kill();
    let place = Doomed::start(place, &["resume"]).kill();
    place.file("go", "");
    let answer = place.run(&["-q", "resume"]).expect_code(0);
    assert_eq!(answer.stdout(), format!("{}\n", "x".repeat(300_000)));
    let spool =
        fs::read_dir(place.path().join(".offshoot/spool")).expect("the folder cannot be read");
    assert_eq!(spool.count(), 0, "what the killed attempts left is gone");
    neighbour.kill().expect("the process cannot be killed");
    neighbour.wait().expect("the child cannot be waited for");
}

/// Failures of an earlier life count towards `--max-fail` from the first moment of the next one.
#[test]
fn failures_before_the_supervisor_was_killed_count_at_once() {
    // The third has put something on record, and so the ends of the first two, before it says that it hangs.
    let work = r#"read line; echo ran >> ran-$line; [ $line -lt 3 ] && exit 1
        if [ $line = 3 ] && [ ! -e go ]; then
            echo | "$OFFSHOOT" -q context put word; echo up > fifo; exec sleep 600
        fi; exit 1"#;
    for (forged, ran_again) in [(None, 1), (Some(1), 0)] {
        let place = Place::new();
        place.file("in", "1\n2\n3\n4\n5\n6\n");
        let map = ["map", "--split", "lines:1", "--max-concurrent", "1", "--max-fail", "2"];
        let map = [&map[..], &["in", "--", "sh", "-c", work]].concat();
        let place = Doomed::start(place, &map).kill();
        if let Some(most) = forged {
            forge(
                &place,
                &format!(
                    "UPDATE events SET body = json_set(body, '$.admitted.plan.maxFail', {most})
                     WHERE seq = 1"
                ),
            );
        }
        place.file("go", "");
        let resumed = place.run(&["resume"]).expect_code(1);
        let most = forged.unwrap_or(2);
        let pieces = if most == 1 { "piece" } else { "pieces" };
        let said = format!("more than {most} {pieces} did not complete");
        assert!(resumed.stderr.contains(&said), "{}", resumed.stderr);
        let ran = [1, 2, 3, 4, 5, 6].map(|line| ran(&place, line));
        assert_eq!(ran, [1, 1, 1 + ran_again, 0, 0, 0], "{}", resumed.stderr);
    }
}
