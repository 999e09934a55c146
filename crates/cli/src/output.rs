//! The only file that prints: results on standard output, everything else on standard error.
//!
//! Colours go through `anstream`, which drops them where the stream is no terminal or `NO_COLOR` is set.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use indexmap::IndexMap;
use offshoot_config::Valued;
use offshoot_display::json::{Document, Format, printed as printed_in};
use offshoot_display::{Progress, ProgressDrawTarget, Redrawn, in_tree, neutral};
use offshoot_merge::Answer;
use offshoot_spawner::StoredValues;
use offshoot_store::ValueFile;
use parking_lot::Mutex;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::code::{FailureCode, NoteCode};
use crate::failure::{Complaint, Failure};
use offshoot_host::{Level, Reporter};
use offshoot_model::{RootId, SaidError, plain};

/// Standard output, where it is a regular file to which standard error does not go as well: notes between two parts of an
/// answer would be taken for a part of it.
fn file_of_its_own() -> Option<File> {
    let open = |stream: BorrowedFd<'_>| stream.try_clone_to_owned().ok().map(File::from);
    let about = |file: &File| file.metadata().ok();
    let out = open(io::stdout().as_fd())?;
    let about_out = about(&out).filter(|about| about.is_file())?;
    let about_err = open(io::stderr().as_fd()).as_ref().and_then(about);
    let is_same = about_err
        .is_some_and(|error| (error.dev(), error.ino()) == (about_out.dev(), about_out.ino()));
    (!is_same).then_some(out)
}

/// The amount of text on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loudness {
    /// Errors alone.
    Quiet,
    /// And progress and notes.
    Normal,
    /// And what leads to them.
    Verbose,
}

/// The two streams. Cheap to copy: the streams themselves belong to the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    loudness: Loudness,
    json: bool,
    format: Format,
}

/// The tree of this command, once it is known.
static TREE: OnceLock<RootId> = OnceLock::new();

/// Returns advice with the id of this command's tree in it.
fn filled(advice: &str) -> Cow<'_, str> {
    TREE.get().map_or(advice.into(), |root| in_tree(advice, *root))
}

/// The lines on the terminal that the progress of this process redraws.
static REDRAWN: Mutex<Option<Redrawn>> = Mutex::new(None);

/// True once anything of a result was printed.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// The number of columns where a terminal does not report its width.
const USUAL_COLUMNS: usize = 80;

/// The number of rows where a terminal does not report its height.
const USUAL_ROWS: usize = 23;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
const FAINT: Style = Style::new().dimmed();

impl Output {
    /// As the flags ask.
    pub(crate) const fn new(loudness: Loudness, json: bool) -> Self {
        Self { loudness, json, format: Format::V2 }
    }

    /// The same, with JSON in this version of its form.
    pub(crate) const fn in_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Returns the version of the form of JSON.
    pub(crate) const fn format(self) -> Format {
        self.format
    }

    /// True if results are wanted as JSON.
    pub(crate) const fn wants_json(self) -> bool {
        self.json
    }

    /// True if details are wanted.
    pub(crate) fn wants_details(self) -> bool {
        self.loudness >= Loudness::Verbose
    }

    /// True if failures are named while they happen, by progress or by details.
    pub(crate) fn names_failures(self) -> bool {
        self.loudness >= Loudness::Normal
    }

    /// True if a user at a terminal can be asked.
    pub(crate) fn can_ask(self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks the user at the terminal, and takes everything but a yes as a no.
    pub(crate) fn ask(self, question: impl Display) -> Result<bool, Failure> {
        let mut answer = String::new();
        let mut stderr = io::stderr().lock();
        let asked = write!(stderr, "{question}").and_then(|()| stderr.flush());
        let answered = asked.and_then(|()| io::stdin().read_line(&mut answer));
        answered.map_err(|error| {
            Failure::input(FailureCode::CannotAsk, "cannot ask on the terminal")
                .caused_by(Some(&error))
                .hint("answer beforehand with --yes")
        })?;
        Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
    }

    /// Progress of so many runs: a bar on a terminal, or the tree as it grows where it begins with one; elsewhere plain
    /// lines, of failures alone where there is no more than one to tell of. Nothing where it is not wanted, and where every event is told anyway.
    pub(crate) fn progress(self, expected: u64) -> Option<Progress> {
        let out = anstream::stderr();
        let style = match out.current_choice() {
            ColorChoice::Never => offshoot_display::Style::Plain,
            _ => offshoot_display::Style::Colour,
        };
        let size = tcgetwinsize(io::stderr());
        let [rows, columns] = size.map_or([0; 2], |it| [it.ws_row, it.ws_col].map(usize::from));
        let progress = match (self.loudness, io::stderr().is_terminal()) {
            (Loudness::Normal, true) if expected == 1 => {
                // A row stays free for what is said besides.
                let rows = if rows == 0 { USUAL_ROWS } else { rows.saturating_sub(1).max(1) };
                Some(Progress::growing(ProgressDrawTarget::stderr(), rows, style))
            }
            (Loudness::Normal, true) => {
                let columns = if columns == 0 { USUAL_COLUMNS } else { columns };
                let target = ProgressDrawTarget::stderr();
                Some(Progress::on_terminal(target, Some(expected), columns, style))
            }
            (Loudness::Normal, false) if expected > 1 => {
                Some(Progress::in_lines(Box::new(out), Some(expected), style))
            }
            (Loudness::Normal, false) => Some(Progress::failures(Box::new(out), style)),
            _ => None,
        };
        let redrawn = progress.as_ref().and_then(Progress::redrawn);
        *REDRAWN.lock() = redrawn;
        progress
    }

    /// Returns what shows the messages of a host.
    pub(crate) fn reporter(self) -> Reporter {
        Reporter::new(move |level, text| match level {
            Level::Detail => self.detail(harmless(text)),
            Level::Note => self.note(NoteCode::HostNote, harmless(text)),
            Level::Warning => self.warning(NoteCode::HostWarning, harmless(text)),
        })
    }

    /// Prints a result byte for byte.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream(|out| out.write_all(bytes))
    }

    /// Prints a result and a newline.
    pub(crate) fn line(self, text: impl Display) -> Result<(), Failure> {
        self.stream(|out| writeln!(out, "{text}"))
    }

    /// Prints a result as indented JSON and a newline.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<(), Failure> {
        self.stream(|out| {
            serde_json::to_writer_pretty(&mut *out, value)?;
            out.write_all(b"\n")
        })
    }

    /// Prints a result with places that differ between the versions of its form.
    pub(crate) fn document(
        self,
        value: &impl Serialize,
        document: Document,
    ) -> Result<(), Failure> {
        self.stream(|out| {
            let text = serde_json::to_string_pretty(value)?;
            writeln!(out, "{}", printed_in(text, document, self.format))
        })
    }

    /// A part of a result with such places, for what is written as it is read: an answer is never held as a whole.
    pub(crate) fn part(self, value: &impl Serialize, document: Document) -> Box<RawValue> {
        let text = serde_json::to_string_pretty(value).expect("it is plain data");
        // One level deeper. Text in JSON has no line breaks of its own.
        let text = printed_in(text, document, self.format).replace('\n', "\n  ");
        RawValue::from_string(text).expect("what is printed is JSON")
    }

    /// Prints a result: as JSON where that is wanted, else by this function.
    pub(crate) fn result(
        self,
        value: &impl Serialize,
        print: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.json { self.json(value) } else { print() }
    }

    /// Prints rows with their columns below each other. A cell wider than the limit moves its own row alone.
    pub(crate) fn table<const N: usize>(self, rows: &[[String; N]]) -> Result<(), Failure> {
        let rows: Vec<Vec<&str>> =
            rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        self.stream(|out| aligned(&rows).iter().try_for_each(|line| writeln!(out, "{line}")))
    }

    /// Prints rows below their headings, on a terminal and elsewhere; nothing where there are none. A column that is empty in each row
    /// is left out.
    pub(crate) fn listing<const N: usize>(
        self,
        headings: [&str; N],
        rows: impl Iterator<Item = [String; N]>,
    ) -> Result<(), Failure> {
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        let is_shown = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
        let shown: Vec<usize> = (0..N).filter(is_shown).collect();
        let headed = shown.iter().map(|column| headings[*column]).collect();
        let rows = rows.iter().map(|row| shown.iter().map(|column| &*row[*column]).collect());
        let lines = aligned(&std::iter::once(headed).chain(rows).collect::<Vec<_>>());
        self.painted(|out| {
            for (at, line) in lines.iter().enumerate() {
                match at {
                    0 => writeln!(out, "{FAINT}{line}{FAINT:#}")?,
                    _ => writeln!(out, "{line}")?,
                }
            }
            Ok(())
        })
    }

    /// Prints values of the configuration, a line each: its key, indented by this, the value and its origin.
    pub(crate) fn values(
        self,
        indent: &str,
        values: &IndexMap<String, Valued<Value>>,
    ) -> Result<(), Failure> {
        let row = |(key, valued): (&String, &Valued<Value>)| {
            let value = match &valued.value {
                Value::Null => "none".to_owned(),
                value => value.to_string(),
            };
            [format!("{indent}{key}"), value, valued.origin.to_string()]
        };
        self.table(&values.iter().map(row).collect::<Vec<_>>())
    }

    /// Copies a result from a reader, and adds a newline.
    pub(crate) fn copy(self, mut from: impl Read) -> Result<(), Failure> {
        self.stream(|out| {
            io::copy(&mut from, out)?;
            out.write_all(b"\n")
        })
    }

    /// Prints a result piece by piece, through one buffer. What an agent printed passes as it is, colours included.
    pub(crate) fn stream(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut out = BufWriter::new(Counted(io::stdout()));
        printed(write(&mut out).and_then(|()| out.flush()))
    }

    /// Prints an answer and a newline.
    pub(crate) fn answer(self, answer: &Answer, values: &StoredValues) -> Result<(), Failure> {
        let Some(mut file) = file_of_its_own() else {
            return self.stream(|out| {
                values.write(answer, out)?;
                out.write_all(b"\n")
            });
        };
        let flushed = io::stdout().flush();
        let written =
            flushed.and_then(|()| values.write_file(answer, &ValueFile::new(file.try_clone()?)));
        printed(written.and_then(|()| file.write_all(b"\n")))
    }

    /// Prints text of our own in colours, which are dropped where the output is no terminal.
    pub(crate) fn painted(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut out = BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
        printed(write(&mut out).and_then(|()| out.flush()))
    }

    /// Returns the colour of what an agent said on standard error, where it is printed among what it said on standard output.
    pub(crate) fn style_of_stderr(self) -> Style {
        match anstream::AutoStream::choice(&io::stdout()) {
            ColorChoice::Never => Style::new(),
            _ => AnsiColor::Yellow.on_default(),
        }
    }

    /// Says something beside the result.
    pub(crate) fn note(self, code: NoteCode, text: impl Display) {
        if self.loudness >= Loudness::Normal {
            say(format_args!("{text}{}", self.shown(Some(code))));
        }
    }

    /// Says what a run said about its error itself.
    pub(crate) fn said(self, said: &SaidError) {
        self.note(
            NoteCode::RunSaid,
            format_args!("it says: {}", neutral::block(&said.to_string())),
        );
    }

    /// Says what led to something, where the user asked for it.
    pub(crate) fn detail(self, text: impl Display) {
        if self.loudness >= Loudness::Verbose {
            say(format_args!("{FAINT}{text}{FAINT:#}"));
        }
    }

    /// Says that something is not as the user may think.
    pub(crate) fn warning(self, code: NoteCode, text: impl Display) {
        if self.loudness >= Loudness::Normal {
            say(format_args!("{WARNING}warning{WARNING:#}: {text}{}", self.shown(Some(code))));
        }
    }

    /// Says what to do next.
    pub(crate) fn hint(self, code: NoteCode, text: impl Display) {
        if self.loudness >= Loudness::Normal {
            let text = text.to_string();
            say(format_args!("{HINT}hint{HINT:#}: {}{}", filled(&text), self.shown(Some(code))));
        }
    }

    /// Names the tree of this command: commands in what is said from now on name it too.
    pub(crate) fn name_tree(self, root: RootId) {
        let _ = TREE.set(root);
    }

    /// The code of a message, as it stands behind the message where details are wanted.
    fn shown(self, code: Option<impl Into<&'static str>>) -> String {
        let code = code.filter(|_| self.wants_details()).map(Into::into);
        code.map(|code| format!("{FAINT} [{code}]{FAINT:#}")).unwrap_or_default()
    }

    /// Says that something failed; also with `-q`.
    pub(crate) fn error(self, complaint: &Complaint) {
        // The message may contain text of a plugin, an agent or a file.
        let code = self.shown(complaint.code);
        say(format_args!("{ERROR}error{ERROR:#}: {}{code}", neutral::block(&complaint.message)));
        for cause in &complaint.causes {
            say(format_args!("  caused by: {}", neutral::block(cause)));
        }
        if let Some(hint) = &complaint.hint {
            say(format_args!("{HINT}hint{HINT:#}: {}", neutral::block(&filled(hint))));
        }
    }

    /// Says why the command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        failure.complaints.iter().for_each(|complaint| self.error(complaint));
    }

    /// Says at the end of the command why it failed, as JSON too where that is wanted.
    pub(crate) fn end(self, failure: &Failure) {
        // One value at most: a result that stands there already is the answer.
        if self.json && !failure.complaints.is_empty() && !HAS_PRINTED.load(Ordering::Relaxed) {
            // Where the JSON cannot be printed, the exit code still tells that the command failed.
            let _ = match &failure.json {
                Some(json) => self.json(json),
                None => self.json(&failure.to_json()),
            };
        }
        self.failure(failure);
    }
}

/// Rows as lines in which the columns stand below each other. A cell wider than the limit moves its own row alone.
fn aligned(rows: &[Vec<&str>]) -> Vec<String> {
    const WIDEST: usize = 48;
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<&str>| {
        let cells = row.iter().zip(&widths);
        let line: String =
            cells.map(|(cell, width)| format!("{:width$}  ", harmless(cell))).collect();
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Standard output, with a note of whether anything was written to it.
struct Counted<W>(W);

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        HAS_PRINTED.fetch_or(!bytes.is_empty(), Ordering::Relaxed);
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Text of others in one line, made harmless for a terminal.
pub(crate) fn harmless(text: &str) -> String {
    neutral::block(text).replace('\n', " ")
}

/// Prints what the parser of the command line made: help and version are results, everything else is an error.
pub(crate) fn print_usage(error: &clap::Error) {
    // A reader that has closed the stream does not want the text.
    let _ = error.print();
}

/// Prints the version, as the parser of the command line does.
pub(crate) fn print_version() {
    // A reader that has closed the stream does not want the text.
    let _ = writeln!(io::stdout().lock(), "offshoot {}", env!("CARGO_PKG_VERSION"));
}

/// The failure where standard output takes no more.
fn printed(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::closed_pipe(),
        _ => Failure::input(
            FailureCode::CannotPrint,
            format_args!("cannot write the result: {}", plain(&error)),
        )
        .hint("what was recorded is kept: `offshoot show last --answer > FILE` writes it to another place"),
    })
}

/// Prints one line on standard error. Where that is closed, the line is dropped.
fn say(text: std::fmt::Arguments<'_>) {
    beside_progress(|| drop(writeln!(anstream::stderr().lock(), "{text}")));
}

/// Writes to standard error what progress on a terminal must not draw over.
pub(crate) fn beside_progress(write: impl FnOnce()) {
    let redrawn = REDRAWN.lock().clone();
    match redrawn {
        Some(redrawn) => redrawn.suspend(write),
        None => write(),
    }
}

/// Writes a line of the log to standard error, by a function that gets the stream while nothing else in this process writes to it.
pub(crate) fn log_line(write: impl FnOnce(BorrowedFd<'_>)) {
    beside_progress(|| {
        let stderr = io::stderr().lock();
        write(stderr.as_fd());
    });
}

/// Returns true if what is written to standard error may have colours.
pub(crate) fn has_colours() -> bool {
    anstream::stderr().current_choice() != ColorChoice::Never
}
