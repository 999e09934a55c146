//! The log of `--joblog`: what GNU parallel writes, so that what reads its logs reads ours.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_model::Reason;
use offshoot_spawner::{Clock, Piece, SystemClock};

use crate::code::FailureCode;
use crate::failure::Failure;
use crate::wording;

/// A file with a line for each run that is over.
#[derive(Debug)]
pub(crate) struct JobLog {
    path: PathBuf,
    file: File,
    /// The number of bytes that each piece is given, and its command where that is its own.
    given: Vec<(u64, Option<String>)>,
    command: String,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The place in the request, from 0.
    pub(crate) place: u32,
    pub(crate) key: &'a str,
    pub(crate) took: Duration,
    /// The number of bytes of its answer.
    pub(crate) received: u64,
    /// The exit code and the signal.
    pub(crate) exit: (i32, i32),
}

const COLUMNS: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

impl JobLog {
    /// Makes the file of `--joblog`, before anything runs.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let create = || {
            let mut file = File::create(path)?;
            file.write_all(COLUMNS.as_bytes())?;
            Ok(file)
        };
        let file = create().map_err(|error: io::Error| {
            Failure::file(FailureCode::CannotWrite, "write", path, &error)
        })?;
        Ok(Self { path: path.to_owned(), file, given: Vec::new(), command: String::new() })
    }

    pub(super) fn expect(&mut self, pieces: &[Piece], command: &str) {
        let given = |piece: &Piece| {
            let bytes = match &piece.input {
                Some(range) => range.size(),
                None => piece.request.task.len() as u64,
            };
            let own = piece.run_spec.as_ref().and_then(|own| own.command.as_ref());
            (bytes, own.map(|own| wording::command_line(own)))
        };
        // What reads the answer of another is one job with that.
        let jobs = pieces.iter().filter(|piece| !piece.reads_need);
        self.expect_given(jobs.map(given), command);
    }

    /// Learns the number of bytes that each run is given, the command of those that have their own, and that of the others.
    pub(crate) fn expect_given(
        &mut self,
        given: impl Iterator<Item = (u64, Option<String>)>,
        command: &str,
    ) {
        // A line of the log is a line.
        let plain = |command: &str| command.replace(['\t', '\n'], " ");
        self.given = given.map(|(bytes, own)| (bytes, own.as_deref().map(plain))).collect();
        self.command = plain(command);
    }

    /// Writes the line of a run.
    pub(crate) fn add(&mut self, job: &Job<'_>) -> Result<(), Failure> {
        let line = self.line(job);
        // One write for a whole line: a program that follows the file sees no part of one.
        let written = self.file.write_all(line.as_bytes());
        written
            .map_err(|error| Failure::file(FailureCode::CannotWrite, "write", &self.path, &error))
    }

    fn line(&self, job: &Job<'_>) -> String {
        let Job { place, key, took, received, exit: (exit, signal) } = *job;
        // Counted back from when its end is told, which is some milliseconds after it: the end is made durable first.
        let started = Duration::from_micros(SystemClock.now().as_micros());
        let started = started.saturating_sub(took);
        let (given, own) = &self.given[place as usize];
        format!(
            "{}\t:\t{:.3}\t{:10.3}\t{}\t{received}\t{exit}\t{signal}\t{} < {key}\n",
            place + 1,
            started.as_secs_f64(),
            took.as_secs_f64(),
            given,
            own.as_ref().unwrap_or(&self.command),
        )
    }
}

/// The exit code and the signal of a process that ended so. What ended otherwise has no code of its own, and did not succeed.
pub(super) const fn exit_of(reason: Option<&Reason>) -> (i32, i32) {
    match reason {
        Some(Reason::Completed { exit_code: Some(code) } | Reason::ExitCode { code }) => (*code, 0),
        Some(Reason::Completed { exit_code: None }) => (0, 0),
        Some(Reason::Signal { signal }) => (0, *signal),
        _ => (NO_CODE, 0),
    }
}

/// The exit code of what has none.
pub(crate) const NO_CODE: i32 = -1;
