//! Kills the supervisor of a real tree of 200 programs at a moment that a seed chooses, resumes it, and compares.
//!
//! ```text
//!  offshoot map ── SIGKILL at a random moment ──▶ the record as it is
//!                                                   │ what had ended, what ran how often
//!  offshoot resume ──▶ the answer of an undisturbed tree; nothing that had ended was run again; the audit holds;
//!                      no process is left
//! ```
//!
//! Promise: a seed chooses the same share of the tree's time again. The moment itself is the machine's, so that many
//! seeds on different machines try many moments.

mod isolated;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use offshoot_test_support::{offshoot, offshoot_at_home};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tempfile::TempDir;

pub use isolated::{ISOLATED_RUNS, Kept, Victim, kill_isolated, undisturbed_isolated};

/// Runs of one tree.
pub const RUNS: u32 = 200;

/// Each run writes down its own number, and that of a process that it leaves in another session; notes that it has run, under
/// its line; and answers.
const WORK: &str = "echo $$ >> pids; read line; env -u HOME setsid sh -c 'echo $$ >> pids; exec sleep 600' \
    </dev/null >/dev/null 2>&1 & echo ran >> ran/$line; echo done $line";

/// How long the keeper of a killed supervisor may take to end what that left.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// What came of one kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survived {
    /// Nothing had been recorded: there was no tree yet.
    BeforeItBegan,
    /// The tree went on, with so many runs that had ended before.
    Resumed {
        /// Runs whose end was on record.
        ended: u32,
    },
    /// The tree was over before the moment came.
    AfterItEnded,
}

/// How long an undisturbed tree takes here, and with that the moments to choose from.
///
/// # Errors
///
/// In words, where it does not come out as it should.
#[expect(clippy::disallowed_methods, reason = "it measures, and decides nothing")]
pub fn undisturbed() -> Result<Duration, String> {
    // The first use builds it, which is no part of a tree.
    offshoot();
    let place = Place::new();
    let began = Instant::now();
    let child = place.map();
    let outcome = place.finish(child)?;
    place.compare(&outcome)?;
    Ok(began.elapsed())
}

/// Kills a tree at the moment that a seed chooses within so much time, and goes on with it.
///
/// # Errors
///
/// In words, what was lost, run again, left behind or different.
pub fn kill(seed: u64, within: Duration) -> Result<Survived, String> {
    let place = Place::new();
    let mut child = place.map();
    // A twentieth more, so that the very end is tried too.
    let moment = within.mul_f64(share(seed) * 1.05);
    if ends_within(&child, moment) {
        let outcome = place.finish(child)?;
        place.compare(&outcome)?;
        return Ok(Survived::AfterItEnded);
    }
    let id = i32::try_from(child.id()).expect("ids are small");
    assert!(id > 1, "a process of our own");
    let dead = kill_process(Pid::from_raw(id).expect("not zero"), Signal::KILL);
    child.wait().map_err(|error| error.to_string())?;
    dead.map_err(|error| format!("it cannot be killed: {error}"))?;
    // Before anything else is started here, which would end what it finds.
    place.nothing_lives()?;

    let before = place.record()?;
    let Some((root, ended)) = before else {
        return Ok(Survived::BeforeItBegan);
    };
    let ran: BTreeMap<u32, usize> = ended.iter().map(|line| (*line, place.ran(*line))).collect();
    let outcome = place.run(&["resume", &root])?;
    place.compare(&outcome)?;
    for (line, times) in ran {
        if place.ran(line) != times {
            return Err(format!("line {line} had ended, and was run again"));
        }
    }
    place.run(&["audit", &root])?;
    place.nothing_lives()?;
    Ok(Survived::Resumed { ended: ended.len() as u32 })
}

/// Where a tree lives.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("the system has room for a folder");
        let input: String = (1..=RUNS).map(|line| format!("{line}\n")).collect();
        fs::write(folder.path().join("in"), input).expect("the file cannot be written");
        fs::create_dir(folder.path().join("ran")).expect("the folder cannot be made");
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder is there")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = offshoot_at_home(&self.path(), arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn map(&self) -> Child {
        let map = ["map", "--quiet", "--split", "lines:1", "in", "--", "sh", "-c", WORK];
        // Its output goes into files: a pipe without a reader would block it.
        let file = |name: &str| {
            fs::File::create(self.path().join(name)).expect("the system has no room for it")
        };
        let mut command = self.command(&map);
        command.stdout(file("stdout")).stderr(file("stderr"));
        command.spawn().expect("the program cannot be started")
    }

    fn finish(&self, mut child: Child) -> Result<String, String> {
        let status = child.wait().map_err(|error| error.to_string())?;
        let read = |name: &str| fs::read_to_string(self.path().join(name)).unwrap_or_default();
        if !status.success() {
            return Err(format!("map: {status}: {}", read("stderr")));
        }
        Ok(read("stdout"))
    }

    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let outcome = self.command(arguments).output().map_err(|error| error.to_string())?;
        if !outcome.status.success() {
            let said = String::from_utf8_lossy(&outcome.stderr);
            return Err(format!("{}: {}: {said}", arguments.join(" "), outcome.status));
        }
        Ok(String::from_utf8_lossy(&outcome.stdout).into_owned())
    }

    /// The root of the tree and the lines whose runs have ended; none where nothing is on record.
    fn record(&self) -> Result<Option<(String, Vec<u32>)>, String> {
        let listed = self.run(&["list", "--all", "--json"])?;
        let runs: serde_json::Value =
            serde_json::from_str(&listed).map_err(|error| error.to_string())?;
        let runs = runs.as_array().ok_or("no list")?;
        let Some(root) = runs.iter().find(|run| run["depth"] == 0) else { return Ok(None) };
        let root = root["runId"].as_str().ok_or("no id")?.to_owned();
        let ended = runs.iter().filter(|run| run["status"] == "completed");
        let line =
            |run: &serde_json::Value| run["label"].as_str()?.strip_prefix("in:")?.parse().ok();
        Ok(Some((root, ended.filter_map(line).collect())))
    }

    fn compare(&self, outcome: &str) -> Result<(), String> {
        let expected: Vec<String> = (1..=RUNS).map(|line| format!("done {line}")).collect();
        let expected = expected.join("\n---\n") + "\n";
        (outcome == expected).then_some(()).ok_or_else(|| format!("another answer: {outcome}"))
    }

    fn ran(&self, line: u32) -> usize {
        let log = fs::read_to_string(self.path().join("ran").join(line.to_string()));
        log.unwrap_or_default().lines().count()
    }

    /// Waits until no process lives whose number an agent wrote down and which works in this place: that is not erased
    /// with an environment, and no other process that got the number since then has it.
    fn nothing_lives(&self) -> Result<(), String> {
        let written = fs::read_to_string(self.path().join("pids")).unwrap_or_default();
        let pids = written.lines().filter_map(|line| line.parse::<i32>().ok());
        for pid in pids.filter(|pid| *pid > 1) {
            let Some(handle) = self.lives_here(pid) else { continue };
            let left = Timespec::try_from(GONE_WITHIN).expect("a minute is short");
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            if poll(&mut handles, Some(&left)).expect("the handle is open") == 0 {
                return Err(format!("process {pid} was left behind"));
            }
        }
        Ok(())
    }

    /// A process of this number that works in this place.
    fn lives_here(&self, pid: i32) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        // Looked at while it is held, so that it is the same.
        let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        (folder == self.path()).then_some(handle)
    }
}

/// Waits for the end of a process, at most so long.
fn ends_within(child: &Child, moment: Duration) -> bool {
    let id = i32::try_from(child.id()).expect("ids are small");
    let pid = Pid::from_raw(id).expect("a process has a number");
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let timeout = Timespec::try_from(moment).expect("a moment is short");
    let mut handles = [PollFd::new(&handle, PollFlags::IN)];
    poll(&mut handles, Some(&timeout)).expect("the handle is open") > 0
}

/// A number between 0 and 1 of a seed, by SplitMix64.
fn share(seed: u64) -> f64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}
