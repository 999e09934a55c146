//! Kills agents, and the supervisor, of a real tree whose runs work in folders of their own, and looks for every line that they wrote.
//!
//! ```text
//!  offshoot map --isolation ── SIGKILL of agents, of the supervisor, or of both ──▶ resume, which may be killed too ──▶ resume
//!                                                                                     │
//!  every line that an agent says to have written is in a patch that the record names; ◀┘
//!  no worktree and no folder of a run is left; the files, branches and worktrees of the user are as they were
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use offshoot_test_support::{offshoot, offshoot_at_home};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use tempfile::TempDir;

use super::{ends_within, share};

/// Runs of one tree.
pub const ISOLATED_RUNS: u32 = 16;

/// Each run has a name of its own, also where it runs again. It writes lines into a new file and into one of the repository, and
/// notes elsewhere, behind each, that it has done so.
const WORK: &str = r#"read -r token < /proc/sys/kernel/random/uuid; echo $$ >> "$1/pids"; k=0; mkdir -p new
while [ $k -lt 200 ]; do
    k=$((k + 1)); echo "$token $k" >> "new/$token"; echo "$token $k" >> tracked; echo "$k" >> "$1/wrote/$token"
done"#;

/// Lines that each attempt writes if it is not cut off.
const LINES: u64 = 200;

/// Lines in the files of each run for one that it has noted.
const COPIES: usize = 2;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// An agent.
    Agent,
    /// The supervisor.
    Supervisor,
    /// An agent, and at once the supervisor.
    Both,
}

/// What came of one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The processes that were killed while the tree lived.
    pub kills: u32,
    /// The lines that agents had written, all of which are there.
    pub lines: u64,
    /// The attempts that were cut off with lines in their folder.
    pub cut_off: u32,
}

impl Victim {
    /// The one of a seed.
    pub fn of(seed: u64) -> Self {
        [Self::Agent, Self::Supervisor, Self::Both][seed as usize % 3]
    }
}

/// How long an undisturbed tree takes here.
///
/// # Errors
///
/// In words, where it does not come out as it should.
#[expect(clippy::disallowed_methods, reason = "it measures, and decides nothing")]
pub fn undisturbed_isolated() -> Result<Duration, String> {
    // The first use builds it, which is no part of a tree.
    offshoot();
    let mut longest = Duration::ZERO;
    for isolation in ISOLATIONS {
        let place = Place::new(isolation)?;
        let began = Instant::now();
        let status = place.start(&place.map()).wait().map_err(|error| error.to_string())?;
        longest = longest.max(began.elapsed());
        if !status.success() {
            return Err(format!("map: {status}: {}", place.said()));
        }
        let kept = place.check()?;
        let expected = u64::from(ISOLATED_RUNS) * LINES;
        if kept.lines != expected {
            return Err(format!("{} of {expected} lines", kept.lines));
        }
    }
    Ok(longest)
}

/// Kills at the moment that a seed chooses within so much time, goes on, and looks for what was written.
///
/// # Errors
///
/// In words, what was lost or left behind.
pub fn kill_isolated(seed: u64, within: Duration) -> Result<Kept, String> {
    let victim = Victim::of(seed);
    let place = Place::new(ISOLATIONS[(seed / 3) as usize % ISOLATIONS.len()])?;
    let mut kills = 0;
    let mut child = place.start(&place.map());
    let moment = within.mul_f64(share(seed) * 1.05);
    let over = ends_within(&child, moment);
    if !over && victim != Victim::Supervisor {
        kills += u32::from(place.kill_an_agent(seed));
    }
    if !over && victim != Victim::Agent {
        kills += u32::from(kill_child(&mut child)?);
        place.wait_for_locks()?;
        // The supervisor that takes over is killed too, by every second seed.
        if seed % 2 == 1
            && let Some(root) = place.root()?
        {
            let mut again = place.start(&["resume".to_owned(), root]);
            if !ends_within(&again, within.mul_f64(share(!seed) * 0.7)) {
                kills += u32::from(kill_child(&mut again)?);
            }
            again.wait().map_err(|error| error.to_string())?;
        }
    }
    child.wait().map_err(|error| error.to_string())?;
    place.wait_for_locks()?;
    // What was interrupted is run again, what a kill of an agent ended is not: its changes are on record as they are.
    if let Some(root) = place.root()? {
        let mut resumed = place.start(&["resume".to_owned(), root]);
        resumed.wait().map_err(|error| error.to_string())?;
    }
    Ok(Kept { kills, ..place.check()? })
}

const ISOLATIONS: [&str; 2] = ["worktree", "copy"];

/// Where a tree lives: a repository, and beside it what the agents note.
struct Place {
    folder: TempDir,
    isolation: &'static str,
}

impl Place {
    fn new(isolation: &'static str) -> Result<Self, String> {
        let folder = tempfile::tempdir().expect("the system has room for a folder");
        let place = Self { folder, isolation };
        let repository = place.repository();
        for folder in [repository.clone(), place.notes().join("wrote"), repository.join("below")] {
            fs::create_dir_all(folder).expect("the folder cannot be made");
        }
        let input: String = (1..=ISOLATED_RUNS).map(|line| format!("{line}\n")).collect();
        for (name, text) in [("in", &*input), ("tracked", "first\n"), ("below/other", "other\n")] {
            fs::write(repository.join(name), text).expect("the file cannot be written");
        }
        place.git(&["init", "-q", "-b", "main"])?;
        place.git(&["add", "-A"])?;
        place.git(&["commit", "-q", "-m", "begin"])?;
        Ok(place)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder is there")
    }

    fn repository(&self) -> PathBuf {
        self.path().join("repository")
    }

    fn notes(&self) -> PathBuf {
        self.path().join("notes")
    }

    fn map(&self) -> Vec<String> {
        let notes = self.notes().display().to_string();
        let words = [
            "map",
            "--quiet",
            "--isolation",
            self.isolation,
            "--on-failure",
            "skip",
            "--split",
            "lines:1",
            "in",
            "--",
            "sh",
            "-c",
            WORK,
            "sh",
            &notes,
        ];
        words.map(str::to_owned).to_vec()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = offshoot_at_home(&self.path(), arguments);
        command.current_dir(self.repository());
        command
    }

    /// Waits until no process has a lock of a tree any more. A child that a supervisor was about to start when it was killed has them until
    /// its program begins, and a tree that is held is not resumed.
    fn wait_for_locks(&self) -> Result<(), String> {
        let locks = fs::read_dir(self.repository().join(".offshoot/locks")).into_iter().flatten();
        for lock in locks.flatten() {
            let lock = File::open(lock.path()).map_err(|error| error.to_string())?;
            flock(&lock, FlockOperation::LockShared).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Starts the command with its output in files: a pipe without a reader would block it.
    fn start(&self, arguments: &[String]) -> Child {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let file = |name: &str| {
            File::create(self.path().join(name)).expect("the system has no room for it")
        };
        let mut command = self.command(&arguments);
        command.stdout(file("stdout")).stderr(file("stderr"));
        command.spawn().expect("the program cannot be started")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.path().join("stderr")).unwrap_or_default()
    }

    fn read(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.command(arguments);
        let outcome = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output();
        let outcome = outcome.map_err(|error| error.to_string())?;
        if !outcome.status.success() {
            let said = String::from_utf8_lossy(&outcome.stderr);
            return Err(format!("{}: {}: {said}", arguments.join(" "), outcome.status));
        }
        Ok(String::from_utf8_lossy(&outcome.stdout).into_owned())
    }

    #[expect(clippy::disallowed_methods, reason = "a chore looks at what git says")]
    fn git(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.repository()).env("HOME", self.path());
        command.env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "A")
                .env(format!("GIT_{who}_EMAIL"), "a@b.example");
        }
        let outcome = command.output().map_err(|error| format!("git: {error}"))?;
        if !outcome.status.success() {
            let said = String::from_utf8_lossy(&outcome.stderr);
            return Err(format!("git {}: {said}", arguments.join(" ")));
        }
        Ok(String::from_utf8_lossy(&outcome.stdout).trim_end().to_owned())
    }

    /// The root of the tree; none where nothing is on record.
    fn root(&self) -> Result<Option<String>, String> {
        let listed = self.read(&["list", "--all", "--json"])?;
        let runs: Value = serde_json::from_str(&listed).map_err(|error| error.to_string())?;
        let root = runs.as_array().ok_or("no list")?.iter().find(|run| run["depth"] == 0);
        Ok(root.and_then(|root| root["runId"].as_str()).map(str::to_owned))
    }

    /// Kills an agent that works in one of the folders here. True if there was one.
    fn kill_an_agent(&self, seed: u64) -> bool {
        let written = fs::read_to_string(self.notes().join("pids")).unwrap_or_default();
        let pids: Vec<i32> = written.lines().filter_map(|line| line.parse().ok()).collect();
        // The last ones work most likely: begun with one of them.
        let first = seed as usize % 4;
        let newest = pids.iter().rev().skip(first).chain(pids.iter().rev().take(first));
        for pid in newest.copied().filter(|pid| *pid > 1) {
            let Some(id) = Pid::from_raw(pid) else { continue };
            let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { continue };
            // Looked at while it is held, so that it is the same.
            let folder = fs::read_link(format!("/proc/{pid}/cwd"));
            if folder.is_ok_and(|folder| folder.starts_with(self.path())) {
                return pidfd_send_signal(&handle, Signal::KILL).is_ok();
            }
        }
        false
    }

    /// Looks for every line that an agent noted in what the record names, and for what should not be left.
    fn check(&self) -> Result<Kept, String> {
        let mut kept = Kept::default();
        let patches = self.patches()?;
        for entry in fs::read_dir(self.notes().join("wrote")).map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            let token = entry.file_name().to_string_lossy().into_owned();
            let noted = fs::read_to_string(entry.path()).map_err(|error| error.to_string())?;
            let noted: Vec<&str> =
                noted.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
            let lines = patches.get(&*token).map_or(&[][..], Vec::as_slice);
            for number in noted.iter().map(|line| line.trim_end()) {
                let found = lines.iter().filter(|line| **line == number).count();
                if found < COPIES {
                    let all = noted.len();
                    return Err(format!(
                        "line {number} of the {all} that {token} wrote: {found} of {COPIES} are on record"
                    ));
                }
            }
            kept.lines += noted.len() as u64;
            kept.cut_off += u32::from(!noted.is_empty() && (noted.len() as u64) < LINES);
        }
        if self.nothing_left().is_err() {
            // A kill after the end of the tree leaves what was being removed, and the next start removes it.
            self.read(&["run", "--quiet", "look", "--", "true"])?;
            self.nothing_left()?;
        }
        Ok(kept)
    }

    /// The lines that all patches of the record add, by the name of the agent that wrote them.
    fn patches(&self) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let Some(root) = self.root()? else { return Ok(found) };
        self.read(&["audit", &root])?;
        for event in self.read(&["events", "--json", &root])?.lines() {
            let event: Value = serde_json::from_str(event).map_err(|error| error.to_string())?;
            let mut hashes = Vec::new();
            patches_in(&event, &mut hashes);
            for hash in hashes {
                let (folder, file) = hash.split_at(2);
                let data = self.repository().join(".offshoot/blobs");
                let patch = fs::read_to_string(data.join(folder).join(file));
                let patch = patch.map_err(|error| format!("the patch {hash}: {error}"))?;
                for line in patch.lines().filter_map(|line| line.strip_prefix('+')) {
                    if let Some((token, number)) = line.split_once(' ') {
                        found.entry(token.to_owned()).or_default().push(number.to_owned());
                    }
                }
            }
        }
        Ok(found)
    }

    fn nothing_left(&self) -> Result<(), String> {
        let listed = self.git(&["worktree", "list"])?;
        if listed.lines().count() != 1 {
            return Err(format!("worktrees are left: {listed}"));
        }
        if let Ok(shelf) = fs::read_dir(self.repository().join(".offshoot/isolated")) {
            let names =
                shelf.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            let left: Vec<String> = names.filter(|name| name != ".git").collect();
            if !left.is_empty() {
                return Err(format!("folders of runs are left: {left:?}"));
            }
        }
        let touched = self.git(&["status", "--porcelain"])?;
        let branches = self.git(&["for-each-ref", "--format=%(refname)"])?;
        match (&*touched, &*branches) {
            ("", "refs/heads/main") => Ok(()),
            _ => Err(format!("the repository was touched: {touched}, {branches}")),
        }
    }
}

/// Adds the hashes of the patches that an event names.
fn patches_in(value: &Value, hashes: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(hash) = fields.get("patch").and_then(|patch| patch["hash"].as_str()) {
                hashes.push(hash.to_owned());
            }
            fields.values().for_each(|value| patches_in(value, hashes));
        }
        Value::Array(items) => items.iter().for_each(|item| patches_in(item, hashes)),
        _ => {}
    }
}

/// Kills a process that was started here. True if it lived.
fn kill_child(child: &mut Child) -> Result<bool, String> {
    let lived = child.try_wait().map_err(|error| error.to_string())?.is_none();
    if lived {
        let id = i32::try_from(child.id()).expect("ids are small");
        assert!(id > 1, "a process of our own");
        kill_process(Pid::from_raw(id).expect("not zero"), Signal::KILL)
            .map_err(|error| format!("it cannot be killed: {error}"))?;
        child.wait().map_err(|error| error.to_string())?;
    }
    Ok(lived)
}
