//! A real tree that puts something into every kind of file there is, and what must hold of it after a fault.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use offshoot_test_support::offshoot_at_home;
use serde_json::Value;
use tempfile::TempDir;

use crate::gate::{self, Ambush, Failure, Passed};

/// What each piece does: one answers more than fits in memory, one asks for a child, one shows what it was given.
/// Each leaves a process in another session, which the gate waits for: the filter is inherited, so it sees whatever lives.
const WORK: &str = r#"
    setsid sleep 600 </dev/null >/dev/null 2>&1 &
    read line
    case $line in
        large) head -c 300000 /dev/zero | tr '\0' x ;;
        child) "$OFFSHOOT" spawn --wait --label below 'answer at length' -- \
                   sh -c 'head -c 9000 /dev/zero | tr "\0" y' ;;
        given) cat "$OFFSHOOT_TASK_FILE" context/* 2>/dev/null; echo "$OFFSHOOT_TASK" ;;
    esac
"#;

/// A folder with a tree in it.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
}

/// What an undisturbed tree answers.
#[derive(Debug)]
pub struct Expected {
    /// The merged answer.
    answer: Vec<u8>,
    /// The answer of each run, by its label.
    answers: BTreeMap<String, Vec<u8>>,
}

/// What came of a tree that met a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It answered all the same.
    Answered,
    /// It stopped, and answered when it was resumed.
    Resumed,
    /// It ended with a failure that names what could not be done; what had completed is there.
    Failed,
    /// There was no tree yet.
    NotBegun,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answered => "answered all the same",
            Self::Resumed => "answered when resumed",
            Self::Failed => "failed and said why",
            Self::NotBegun => "not begun",
        })
    }
}

impl Place {
    /// An empty one.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("the system has room for a folder");
        let place = Self { folder };
        fs::create_dir_all(place.path().join("kept/run")).expect("the folder cannot be made");
        fs::write(place.path().join("in"), "large\nchild\ngiven\n")
            .expect("the file cannot be written");
        fs::write(place.path().join("notes.json"), "{\"a\": [1, 2, 3]}")
            .expect("the file cannot be written");
        place
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the path cannot be resolved")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = offshoot_at_home(&self.path(), arguments);
        command
            .env("XDG_RUNTIME_DIR", self.path().join("kept/run"))
            .env("OFFSHOOT_DATA_DIR", self.path().join("kept/data"))
            // So long a tree waits for a disk that is full to have space again.
            .env("OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__GRACESECONDS", "0");
        command
    }

    /// Runs the tree behind the gate. None, where there is no gate.
    pub fn live(&self, ambush: Option<Ambush>) -> Option<Passed> {
        let task = format!("show what you were given {}", "at length ".repeat(40));
        let map = [
            "-q",
            "map",
            "--split",
            "lines:1",
            "--task",
            &task,
            "--context",
            "notes=notes.json",
            "--allow-recursive-spawn",
            "--max-concurrent",
            "1",
            "-",
            "--",
            "sh",
            "-c",
            WORK,
        ];
        let file =
            |name: &str| File::create(self.path().join(name)).expect("the file cannot be made");
        let mut command = self.command(&map);
        command.stdin(File::open(self.path().join("in")).expect("the file cannot be opened"));
        command.stdout(file("stdout")).stderr(file("stderr"));
        gate::run(&mut command, &self.path().join("kept"), ambush)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).expect("the file cannot be read")
    }

    /// Runs the command without a fault: its exit code, and what it printed.
    fn run(&self, arguments: &[&str]) -> (i32, Vec<u8>, String) {
        let outcome = self.command(arguments).output().expect("the program cannot be started");
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        (outcome.status.code().unwrap_or(-1), outcome.stdout, said)
    }

    fn well(&self, arguments: &[&str]) -> Vec<u8> {
        let (code, printed, said) = self.run(arguments);
        assert_eq!(code, 0, "offshoot {arguments:?}: {said}");
        printed
    }

    fn runs(&self) -> Vec<Value> {
        let listed = self.well(&["list", "--all", "--json"]);
        if listed.is_empty() {
            return Vec::new();
        }
        let runs: Value = serde_json::from_slice(&listed).expect("the text is not JSON");
        runs.as_array().expect("a list").clone()
    }

    fn answers(&self, runs: &[Value]) -> BTreeMap<String, Vec<u8>> {
        let completed = runs.iter().filter(|run| run["status"] == "completed" && run["depth"] != 0);
        let answer = |run: &Value| {
            let label = run["label"].as_str().expect("all have labels").to_owned();
            let id = run["runId"].as_str().expect("the run has no id");
            (label, self.well(&["show", id, "--answer"]))
        };
        completed.map(answer).collect()
    }

    /// What an undisturbed tree answers, after it has run here.
    pub fn expected(&self, passed: &Passed) -> Expected {
        let said = String::from_utf8_lossy(&self.read("stderr")).into_owned();
        assert!(passed.status.success(), "{said}");
        let answers = self.answers(&self.runs());
        assert_eq!(answers.len(), 4, "{answers:?}");
        Expected { answer: self.read("stdout"), answers }
    }

    /// Goes on with what a fault has left, and compares.
    ///
    /// # Panics
    ///
    /// Where anything was lost, left behind or different.
    pub fn check(&self, passed: &Passed, ambush: Ambush, expected: &Expected) -> Fate {
        let met = passed.met.as_deref().expect("only faults that were met are checked");
        let what = format!("{ambush:?} at {met}");
        let said = String::from_utf8_lossy(&self.read("stderr")).into_owned();
        let killed = ambush.failure == Failure::Death;
        if passed.status.success() {
            assert!(self.read("stdout") == expected.answer, "{what}: another answer: {said}");
        } else if !killed {
            assert!(said.contains("error: ") || said.contains("failed"), "{what}: silent: {said}");
        }
        let fate = self.go_on(passed, killed, expected, &what);
        for (label, answer) in self.answers(&self.runs()) {
            assert!(answer == expected.answers[&label], "{what}: {label} has another answer");
        }
        let left = self.left();
        assert!(left.is_empty(), "{what}: left behind: {left:?}");
        fate
    }

    fn go_on(&self, passed: &Passed, killed: bool, expected: &Expected, what: &str) -> Fate {
        let runs = self.runs();
        let Some(root) = runs.iter().find(|run| run["depth"] == 0) else {
            assert!(!passed.status.success(), "{what}: an answer without a record");
            self.again(expected, what);
            return Fate::NotBegun;
        };
        let root = root["runId"].as_str().expect("the run has no id");
        let before = self.answers(&runs);
        let (code, answer, said) = self.run(&["-q", "resume", root]);
        let (audited, findings, _) = self.run(&["audit", root]);
        let findings = String::from_utf8_lossy(&findings).into_owned();
        assert_eq!(audited, 0, "{what}: {findings}");
        let after = self.answers(&self.runs());
        assert!(before.keys().all(|label| after.contains_key(label)), "{what}: a result was lost");
        if code == 0 {
            assert!(answer == expected.answer, "{what}: resumed to another answer: {said}");
            return if passed.status.success() { Fate::Answered } else { Fate::Resumed };
        }
        assert!(!killed, "{what}: it cannot be resumed: {said}");
        assert!(!passed.status.success(), "{what}: answered, and failed when asked again: {said}");
        // It is over: some run says what could not be done, and everything works again.
        let tree = self.well(&["events", root]);
        let tree = String::from_utf8_lossy(&tree).into_owned();
        let text = format!("{said}\n{tree}").to_lowercase();
        let named = ["input/output error", "no space left", "storage full"];
        assert!(
            named.iter().any(|reason| text.contains(reason)),
            "{what}: over, and no message says why: {said}\n{tree}"
        );
        self.again(expected, what);
        Fate::Failed
    }

    /// The same once more, as if nothing had happened.
    fn again(&self, expected: &Expected, what: &str) {
        let passed = self.live(None).expect("there was a gate before");
        let said = String::from_utf8_lossy(&self.read("stderr")).into_owned();
        assert!(passed.status.success(), "{what}: and again: {said}");
        assert!(self.read("stdout") == expected.answer, "{what}: and again: another answer");
    }

    /// Files that were not finished.
    fn left(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        visit(&self.path().join("kept"), &mut |path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let in_folder = |folder: &str| path.parent().is_some_and(|it| it.ends_with(folder));
            let unfinished = name.starts_with(".new-")
                || in_folder("spool")
                || in_folder("run/offshoot")
                || in_folder("doors")
                || (in_folder("runs/tasks") && name.contains('.'))
                || (in_folder("locks") && !matches!(name, "values" | "writing"));
            if unfinished {
                left.push(path.to_owned());
            }
        });
        left
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

fn visit(folder: &Path, each: &mut impl FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => visit(&entry.path(), each),
            false => each(&entry.path()),
        }
    }
}
