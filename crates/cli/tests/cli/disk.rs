//! Data folders that cannot be used.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};

use offshoot_test_support::{Disk, named_pipe};

use crate::command::{Place, check};

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let place = Place::new();
    place.file("in", "x");
    let map = |folder: &str| place.run(&["map", "--data-dir", folder, "in", "--", "cat"]);
    check("disk_file", &map("in"));
    check("disk_below_a_file", &map("in/data"));
}

#[test]
fn a_folder_that_is_read_only_is_named() {
    let Some(disk) = Disk::of(1 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    disk.make_read_only();
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let outcome = place.run(&["map", "--data-dir", folder, "in", "--", "cat"]).expect_code(2);
    let message = outcome.stderr.replace(disk.path().to_str().expect("a plain name"), "DISK");
    insta::assert_snapshot!("disk_read_only", message);
}

#[test]
fn a_full_disk_is_an_honest_outcome_and_no_lasting_one() {
    let Some(disk) = Disk::of(8 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    // A tree that has begun waits as long as this for space.
    place.file("c.toml", "[agents.defaults.subagents]\ngraceSeconds = 0\n");
    let map = ["-q", "map", "--config", "c.toml", "--data-dir", folder, "in", "--", "cat"];
    let map = || place.run(&map);
    assert_eq!(map().expect_code(0).stdout(), "x\n");
    let ballast = disk.fill();
    let full = map();
    assert!(full.code != 0 && full.stdout.is_empty(), "{}", full.text());
    assert!(full.stderr.contains("hint: free space there"), "{}", full.stderr);
    fs::remove_file(ballast).expect("the file cannot be removed");
    assert_eq!(map().expect_code(0).stdout(), "x\n");
}

/// A disk that is full while an agent works, and what became of its tree: the test goes on when the agent has said `up`.
fn full_while_it_works(
    free: bool,
    script: &str,
) -> Option<(Place, String, crate::command::Outcome)> {
    let disk = Disk::of(8 << 20)?;
    let place = Place::new();
    place.file("c.toml", "[agents.defaults.subagents]\ngraceSeconds = 1\n");
    let pipe = |name: &str| {
        let path = place.path().join(name);
        named_pipe(&path);
        // Open at both ends, so that neither side waits for the other to open it.
        File::options().read(true).write(true).open(path).expect("a pipe")
    };
    let (up, mut hold) = (pipe("up"), pipe("hold"));
    place.file("agent.sh", script);
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let run = ["run", "--data-dir", folder, "--config", "c.toml", "--allow-recursive-spawn", "x"];
    let mut command = place.command(&[&run[..], &["--", "sh", "agent.sh"]].concat());
    let mut child = command.spawn().expect("the program cannot be started");
    let mut stderr = BufReader::new(child.stderr.take().expect("the stream is not a pipe")).lines();
    let mut word = String::new();
    BufReader::new(up).read_line(&mut word).expect("the agent says that it works");
    let ballast = disk.fill();
    hold.write_all(b"go\n").expect("the reader is gone");
    let told = stderr.find(|line| line.as_ref().is_ok_and(|line| line.contains("until it can be")));
    let told =
        told.expect("it says that the record cannot be written").expect("the bytes are not text");
    if free {
        fs::remove_file(ballast).expect("the file cannot be removed");
        hold.write_all(b"on\n").expect("the reader is gone");
    }
    let outcome = place.finish(child, &command, &[]);
    if free {
        let events = place.run(&["events", "--data-dir", folder, "--json", &root(&place, folder)]);
        assert!(events.expect_code(0).stdout().contains("\"reported\""), "what was said is kept");
    }
    Some((place, told, outcome))
}

fn root(place: &Place, folder: &str) -> String {
    let list = place.run(&["list", "--data-dir", folder, "--json"]).expect_code(0).json();
    list[0]["runId"].as_str().expect("a root").to_owned()
}

#[test]
fn a_disk_that_is_full_for_a_moment_costs_a_tree_nothing() {
    let script = r#"exec 3< hold; echo up > up; read -r go <&3
                    "$OFFSHOOT" report 'said while the disk was full'
                    read -r go <&3; "$OFFSHOOT" -q run child -- echo done"#;
    let Some((_place, told, outcome)) = full_while_it_works(true, script) else { return };
    assert!(told.contains("nothing is started"), "{told}");
    assert_eq!(outcome.expect_code(0).stdout(), "done\n");
}

#[test]
fn a_disk_that_stays_full_asks_what_runs_to_stop() {
    // Its process, not its disk, is what must have time: it writes elsewhere.
    let script = r#"trap 'echo asked > asked; exit 0' TERM
                    exec 3< hold; echo up > up; read -r go <&3
                    "$OFFSHOOT" report 'said while the disk was full'
                    while :; do read -r go <&3; done"#;
    let Some((place, _, outcome)) = full_while_it_works(false, script) else { return };
    assert_eq!(outcome.code, 1, "{}", outcome.text());
    let asked = fs::read_to_string(place.path().join("asked")).expect("it was asked, not killed");
    assert_eq!(asked, "asked\n");
}

#[test]
fn a_fanout_whose_tasks_do_not_fit_is_resumed_once_they_do() {
    const TASKS: usize = 100;
    let place = Place::new();
    let task = |number: usize| format!("{{\"task\":\"{number} {}\"}}\n", "x".repeat(100_000));
    place.file("tasks", (0..TASKS).map(task).collect::<String>());
    place.file("c.toml", "[agents.defaults.subagents]\ngraceSeconds = 0\n");
    let there = ["-q", "--data-dir", "data", "--config", "c.toml"];
    let offshoot = |arguments: &[&str]| place.run(&[&there[..], arguments].concat());
    // The values of the folder lie on a disk of their own, which has room for some of the tasks.
    fs::create_dir_all(place.path().join("data/blobs")).expect("the folder cannot be made");
    let Some(disk) = Disk::over(&place.path().join("data/blobs"), 7 << 20) else { return };
    let fanout = ["fanout", "--tasks", "tasks", "--merge", "sum", "--", "sh", "-c", "wc -w"];
    let full = offshoot(&fanout).expect_code(1);
    assert!(full.stdout.is_empty() && full.stderr.contains("no space left"), "{}", full.text());
    let root = root(&place, "data");
    assert!(full.stderr.contains(&format!("`offshoot resume {root}` goes on")), "{}", full.stderr);
    disk.grow(64 << 20);
    let resumed = offshoot(&["resume", &root]).expect_code(0);
    assert_eq!(resumed.stdout(), "200\n");
}

#[test]
fn a_run_that_prints_without_end_is_ended_by_name() {
    let place = Place::new();
    place.file("c.toml", "[agents.defaults.subagents]\nmaxOutputBytes = 100000\n");
    let tasks = ["--task", "loops", "--task", "prints"];
    let fanout = [&["-q", "fanout", "--json", "--config", "c.toml"][..], &tasks, &["--"]].concat();
    let script =
        r#"read -r task; if [ "$task" = loops ]; then yes; else head -c 99999 /dev/zero; fi"#;
    let report = place.run(&[&fanout[..], &["sh", "-c", script]].concat()).expect_code(1).json();
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(1), "its neighbour completed");
    let failure = &report["failures"][0];
    assert_eq!(failure["envelope"]["error"]["code"], "output_limit", "{failure}");
}

#[test]
fn an_answer_larger_than_the_disk_is_a_failure() {
    let Some(disk) = Disk::of(4 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    place.file("c.toml", "[agents.defaults.subagents]\ngraceSeconds = 0\n");
    let agent = ["--", "head", "-c", "8388608", "/dev/zero"];
    let map = ["-q", "map", "--config", "c.toml", "--data-dir", folder, "in"];
    let outcome = place.run(&[&map[..], &agent].concat());
    assert!(outcome.code == 1 && outcome.stdout.is_empty(), "{}", outcome.text());
    assert!(outcome.stderr.contains("hint: free space"), "{}", outcome.stderr);
}

#[test]
fn a_piece_that_cannot_be_put_together_names_the_folder_and_not_the_input() {
    let Some(disk) = Disk::of(4 << 20) else { return };
    let place = Place::new();
    place.file("in", format!("header\nfirst\n{}\n", "x".repeat(8 << 20)));
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let map = ["-q", "map", "--data-dir", folder, "--header", "1", "--split", "lines:1", "--json"];
    let map = [&map[..], &["in", "--", "wc", "-c"]].concat();
    let report = place.run(&map).expect_code(1).json();
    // Its neighbour may find the disk full too, for as long as this piece is being put together.
    let failures = report["failures"].as_array().expect("failures");
    let large = failures.iter().find(|failure| failure["key"] == "in:2");
    let error = &large.expect("the large piece cannot be put together")["envelope"]["error"];
    assert!(failures.iter().all(|failure| failure["envelope"]["error"]["code"] == "not_recorded"));
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(folder) && message.contains("o space left"), "{message}");
    assert!(!message.contains("cannot read"), "{message}");
}
