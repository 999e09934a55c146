//! Ctrl-C, once and twice, and worse.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use offshoot_test_support::named_pipe;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::command::{Outcome, Place, check, check_text};

/// A map whose agents say that they run.
struct Running {
    place: Place,
    command: Command,
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
    /// The word that the agent wrote when it began.
    word: String,
}

impl Running {
    /// Starts `offshoot map` over the lines of the input, one at a time, with an agent that runs this script. One of them writes a line into
    /// "$FIFO" as soon as it is ready.
    fn start(script: &str, input: &str) -> Self {
        let place = Place::new();
        place.file("in", input);
        place.file(
            "c.toml",
            "[agents.defaults.subagents]\ngraceSeconds = 600\n[runtimes.exec]\nenv = [\"FIFO\"]\n",
        );
        let fifo = place.path().join("fifo");
        named_pipe(&fifo);
        let mut command = place.command(&[
            "map",
            "--config",
            "c.toml",
            "--max-concurrent",
            "1",
            "--split",
            "lines:1",
            "in",
            "--",
            "sh",
            "-c",
            script,
        ]);
        command.env("FIFO", &fifo).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program cannot be started");
        let stderr = BufReader::new(child.stderr.take().expect("the stream is not a pipe"));
        // Opening waits for the agent, which waits for us.
        let word = read(fifo);
        Self { place, command, child, stderr, said: String::new(), word }
    }

    fn group(&self) -> Pid {
        let id = i32::try_from(self.child.id()).expect("ids are small");
        assert!(id > 1, "a group of our own");
        Pid::from_raw(id).expect("it is not zero")
    }

    /// Sends the signal of a terminal's Ctrl-C.
    fn press_ctrl_c(&self) {
        kill_process_group(self.group(), Signal::INT).expect("the group cannot be signalled");
    }

    /// Waits until it says this.
    fn hear(&mut self, words: &str) {
        while !self.said.contains(words) {
            let read = self.stderr.read_line(&mut self.said).expect("messages are UTF-8");
            assert!(read > 0, "it never said {words:?}: {}", self.said);
        }
    }

    fn end(mut self) -> (Place, Outcome) {
        self.stderr.read_to_string(&mut self.said).expect("messages are UTF-8");
        let mut outcome = self.place.finish(self.child, &self.command, &[]);
        outcome.stderr = self.said;
        (self.place, outcome)
    }
}

fn read(fifo: PathBuf) -> String {
    let mut line = String::new();
    let file = File::open(fifo).expect("the agent opens its side");
    BufReader::new(file).read_line(&mut line).expect("the agent writes a line");
    line.trim().to_owned()
}

#[test]
fn once_stops_softly_and_says_how_to_go_on() {
    let script = "trap 'echo half; exit 0' TERM; echo ready > \"$FIFO\"; sleep 1000 & wait";
    let mut running = Running::start(script, "x\n");
    assert_eq!(running.word, "ready");
    running.press_ctrl_c();
    running.hear("stopping everything");
    let (place, outcome) = running.end();
    check("interrupt_once", &outcome);
    check("interrupt_once_tree", &place.run(&["tree"]));
}

#[test]
fn twice_kills() {
    let script = "trap '' TERM; echo ready > \"$FIFO\"; sleep 1000 & wait; sleep 1000";
    let mut running = Running::start(script, "x\n");
    running.press_ctrl_c();
    running.hear("stopping everything");
    running.press_ctrl_c();
    running.hear("killing everything");
    let (place, outcome) = running.end();
    check("interrupt_twice", &outcome);
    check("interrupt_twice_tree", &place.run(&["tree"]));
}

#[test]
fn what_completed_before_is_kept() {
    // The first piece is done before the second begins, and the third never does.
    let script =
        "read x; [ $x = b ] || { echo got $x; exit; }; echo ready > \"$FIFO\"; exec sleep 1000";
    let mut running = Running::start(script, "a\nb\nc\n");
    running.press_ctrl_c();
    running.hear("stopping everything");
    let (place, outcome) = running.end();
    check("interrupt_kept", &outcome);
    let trees = place.run(&["tree", "--json"]).expect_code(0).json();
    let id = trees[0]["runId"].as_str().expect("the run has no id");
    let merged = place.run(&["-q", "merge", "--children", id]).expect_code(0);
    assert_eq!(merged.stdout(), "got a\n");
}

#[test]
fn what_failed_before_stands_below_what_was_stopped() {
    let script = "read x; case $x in a|b) echo no $x >&2; exit 3 ;; c) echo ready > \"$FIFO\" ;; esac; \
        exec sleep 1000";
    let mut running = Running::start(script, "a\nb\nc\nd\ne\n");
    running.press_ctrl_c();
    running.hear("stopping everything");
    let (_, outcome) = running.end();
    let at = |words: &str| {
        outcome.stderr.rfind(words).unwrap_or_else(|| panic!("{words}: {}", outcome.stderr))
    };
    let last = ["cancelled  3 runs", "2 failed before that:", "in:1  exited", "in:2  exited"];
    assert!(last.map(at).is_sorted(), "{}", outcome.stderr);
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    let running = Running::start("echo $$ > \"$FIFO\"; exec sleep 1000", "x\n");
    let agent: i32 = running.word.parse().expect("the agent told its number");
    let agent = pidfd_open(Pid::from_raw(agent).expect("it is not zero"), PidfdFlags::empty())
        .expect("the agent lives");
    kill_process(running.group(), Signal::KILL).expect("the process cannot be signalled");
    let (_, outcome) = running.end();
    assert_eq!(outcome.code, -9);
    let mut gone = [PollFd::new(&agent, PollFlags::IN)];
    let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(
        poll(&mut gone, Some(&minute)).expect("it can be waited for"),
        1,
        "the agent lives on"
    );
}

#[test]
fn what_a_killed_supervisor_left_is_shown_as_lost() {
    let running = Running::start("echo $$ > \"$FIFO\"; exec sleep 1000", "x\ny\n");
    let place = running.place.path();
    let look = |arguments: &[&str]| {
        let folder = place.join(".offshoot");
        let folder = folder.to_str().expect("a plain name");
        running.place.run(&[arguments, &["--data-dir", folder]].concat()).expect_code(0)
    };
    let before = look(&["tree", "--json"]).json();
    assert_eq!(before[0]["status"], "running", "while a supervisor holds it: {before}");
    kill_process(running.group(), Signal::KILL).expect("the process cannot be signalled");
    let (place, outcome) = running.end();
    assert_eq!(outcome.code, -9);
    check("interrupt_killed_tree", &place.run(&["tree"]));
    // The columns are as wide as ids and times happen to be.
    let list = place.run(&["list", "--all"]).text();
    let words = |line: &str| {
        line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("  ")
    };
    check_text("interrupt_killed_list", &list.lines().map(words).collect::<Vec<_>>().join("\n"));
    let trees = place.run(&["tree", "--json"]).expect_code(0).json();
    let id = trees[0]["children"][0]["runId"].as_str().expect("the run has no id").to_owned();
    check("interrupt_killed_show", &place.run(&["show", &id]));
    let shown = place.run(&["show", &id, "--json"]).expect_code(0).json();
    assert_eq!(
        (&shown["status"], &shown["error"]["code"]),
        (&"lost".into(), &"interrupted".into())
    );
    // Its numbers tell why, and its time does not go on.
    let stats = place.run(&["stats", "last", "--json"]).expect_code(0).json();
    // What stood in line has lost nothing.
    assert_eq!(stats["statuses"], serde_json::json!({ "lost": 1, "queued": 1 }), "{stats}");
    assert_eq!(stats["causes"][0]["runs"], 1, "{stats}");
    let listed = || place.run(&["list", "--all", "--json"]).expect_code(0).json();
    assert_eq!(listed()[1]["reason"]["type"], "interrupted");
    // Looking writes nothing: the record ends where its supervisor did.
    let events =
        place.run(&["events", trees[0]["runId"].as_str().expect("the run has no id"), "--json"]);
    assert!(!events.expect_code(0).stdout().contains("\"ended\""));
}
