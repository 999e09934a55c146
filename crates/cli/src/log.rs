//! The log: what happens inside, for an operator who looks for the cause of something.
//!
//! ```text
//!   OFFSHOOT_LOG ─▶ filter ─┐
//!   events of our crates ───┴─▶ one line each ─▶ standard error, beside the progress
//!                                             └▶ --log-file, appended
//! ```
//!
//! Promise: without `OFFSHOOT_LOG` and `--log-file` nothing is installed. Events of other crates are never logged, because some of
//! them hold what agents say. A log that cannot be written, or that is not read, stops nothing: its lines are counted, and the
//! next line that can be written says how many were lost.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use offshoot_host::KeeperLog;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::retry_on_intr;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};

use crate::arguments::Global;
use crate::code::FailureCode;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output;

/// The filter of the log where only `--log-file` asks for one.
const USUAL: &str = "info";

/// The beginning of the names of our crates.
const OURS: &str = "offshoot";

/// The time for which a line waits until standard error takes it. After a line that was lost, none waits before one was written.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The writer of the log. Cheap to clone.
#[derive(Clone, Debug)]
struct Writer {
    /// The file; none for standard error, to which other processes write too, and which may not be read.
    file: Option<Arc<OwnedFd>>,
    /// Lines that could not be written since the last one that was.
    lost: Arc<AtomicU64>,
}

/// Starts the log that the environment and the command line ask for, and returns what the keeper is to log.
pub(crate) fn start_for_command(
    global: &Global,
    environment: &Environment,
) -> Result<Option<KeeperLog>, Failure> {
    let file = global.log_file.as_deref();
    let directives = match (&environment.log, file) {
        (Some(log), _) => Some(log.to_str().ok_or_else(|| {
            Failure::input(FailureCode::BadLogVariable, "OFFSHOOT_LOG is not UTF-8")
        })?),
        (None, Some(_)) => Some(USUAL),
        (None, None) => None,
    };
    start(directives, file)
}

/// Starts a log of what the directives name, where there are any.
pub(crate) fn start(
    directives: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<KeeperLog>, Failure> {
    let Some(directives) = directives else { return Ok(None) };
    let filter = filter(directives)?;
    let file: Option<Arc<OwnedFd>> = file.map(open).transpose()?.map(|file| Arc::new(file.into()));
    let stream = match &file {
        Some(file) => Arc::clone(file),
        None => Arc::new(io::stderr().as_fd().try_clone_to_owned().map_err(|error| {
            Failure::input(FailureCode::CannotLog, "cannot log to standard error")
                .caused_by(Some(&error))
                .hint("log to a file with --log-file FILE, or unset OFFSHOOT_LOG")
        })?),
    };
    let has_colours = file.is_none() && output::has_colours();
    let ours = filter_fn(|metadata| metadata.target().starts_with(OURS));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(Writer { file, lost: Arc::default() })
        .with_ansi(has_colours)
        // Lines that cannot be written are counted by our writer.
        .log_internal_errors(false)
        .with_filter(filter.and(ours.with_max_level_hint(LevelFilter::TRACE)));
    let subscriber = tracing_subscriber::registry().with(lines);
    tracing::subscriber::set_global_default(subscriber).expect("the log is started once");
    Ok(Some(KeeperLog { directives: directives.into(), stream }))
}

impl Writer {
    fn write_line(&self, stream: BorrowedFd<'_>, line: &[u8]) {
        let lost = self.lost.load(Ordering::Relaxed);
        let is_written = (self.file.is_some() || has_room(stream, lost == 0))
            && (lost == 0 || self.tell_lost(stream, lost))
            && write_all(stream, line);
        if !is_written {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Says how many lines are missing. The last of them may have been written in part.
    fn tell_lost(&self, stream: BorrowedFd<'_>, lost: u64) -> bool {
        let text =
            format!("\n{lost} lines of the log are missing here: they could not be written\n");
        let is_written = write_all(stream, text.as_bytes());
        if is_written {
            self.lost.fetch_sub(lost, Ordering::Relaxed);
        }
        is_written
    }
}

/// Reads directives as `tracing` knows them. A part that is not ours would be taken and log nothing.
fn filter(directives: &str) -> Result<EnvFilter, Failure> {
    let wrong = |why: String| {
        Failure::input(FailureCode::BadLogVariable, format_args!("OFFSHOOT_LOG: {why}"))
            .hint("write a level, such as `info`, or parts with levels, such as `offshoot_spawner=debug,info`")
    };
    for directive in directives.split(',') {
        let part = directive.split(['=', '[']).next().unwrap_or_default().trim();
        if !part.is_empty() && !part.starts_with(OURS) && part.parse::<LevelFilter>().is_err() {
            return Err(wrong(format!("`{part}` is neither a level nor a part of offshoot")));
        }
    }
    EnvFilter::builder().parse(directives).map_err(|error| wrong(error.to_string()))
}

/// Opens the file of the log, which may be there. A symbolic link could lead to a file that is not to be written to.
fn open(path: &Path) -> Result<File, Failure> {
    let cannot = |error: &io::Error| Failure::file(FailureCode::CannotLog, "log to", path, error);
    // A pipe without a reader must not block, and is refused below.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::LOOP.raw_os_error() => Failure::input(
            FailureCode::LogNotAFile,
            format_args!("cannot log to {}: it is a symbolic link", path.display()),
        )
        .hint("name the file itself with --log-file FILE"),
        _ => cannot(&error),
    })?;
    match file.metadata().map_err(|error| cannot(&error))?.is_file() {
        true => Ok(file),
        false => Err(Failure::input(
            FailureCode::LogNotAFile,
            format_args!("cannot log to {}: it is not a file", path.display()),
        )
        .hint("name a file with --log-file FILE; it is made where there is none")),
    }
}

/// Waits until a stream takes a line without delay, if it may wait.
pub(crate) fn has_room(stream: BorrowedFd<'_>, may_wait: bool) -> bool {
    let patience = if may_wait { PATIENCE } else { Timespec { tv_sec: 0, tv_nsec: 0 } };
    let mut polled = [PollFd::new(&stream, PollFlags::OUT)];
    matches!(retry_on_intr(|| poll(&mut polled, Some(&patience))), Ok(1..))
}

fn write_all(stream: BorrowedFd<'_>, mut text: &[u8]) -> bool {
    while !text.is_empty() {
        match retry_on_intr(|| rustix::io::write(stream, text)) {
            Ok(written @ 1..) => text = &text[written..],
            Ok(0) | Err(_) => return false,
        }
    }
    true
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

/// Takes a whole line at once, as the formatter hands it over.
impl Write for &Writer {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.file {
            None => output::log_line(|stderr| self.write_line(stderr, line)),
            Some(file) => self.write_line(file.as_fd(), line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
