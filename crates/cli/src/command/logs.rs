//! `offshoot logs`.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anstyle::Style;
use clap::Args;
use offshoot_display::{neutral, number};
use offshoot_door::{Client, Output as AskedOutput};
use offshoot_model::{EventKind, Node, RunId, RunStatus, Stream, Timestamp, Tree};
use offshoot_spawner::{Clock, SystemClock};
use offshoot_store::{FoundRun, OutputReader};
use serde::Serialize;

use crate::arguments::value::{duration, whole};
use crate::code::NoteCode;
use crate::door::reach;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::said::{SaidLine, SaidLines, Text};
use crate::work::engine::block_on;

/// Print what an agent said: both streams of every attempt
///
/// A program has said what it printed on standard output and on standard error; a model what it wrote, and which tools it used. Of
/// a run that only holds pieces, and with --subtree of any run, the lines of all runs below it stand behind their labels.
/// The two streams of a program come by two ways: lines that it writes to both at about the same moment may stand in the other order.
/// On a terminal with colours, lines of standard error are yellow; with --json each line has its `stream`.
/// Lines of a second attempt stand below a line `── attempt 2 ──`; with --json each has its `attempt`.
/// Each attempt is kept up to `logs.keepOutputBytes`, beginning and end, and a line says how much is missing between them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot logs 0198c7
  offshoot logs 0198c7 --follow --subtree
  offshoot logs 0198c7 --stderr --tail 20 --timestamps
  offshoot logs 0198c7 --since 10m --json | jq -r .text")]
pub(crate) struct LogsArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Go on with what is said, until the run is over or its supervisor has gone
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Standard output alone
    #[arg(long, conflicts_with = "stderr")]
    pub(crate) stdout: bool,

    /// Standard error alone
    #[arg(long)]
    pub(crate) stderr: bool,

    /// The last lines alone, so many
    #[arg(long, value_name = "N", value_parser = whole(0_usize.., "50"))]
    pub(crate) tail: Option<usize>,

    /// Lines of the last so much time alone, such as 90s, 10m or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<Duration>,

    /// The runs below it too
    #[arg(long)]
    pub(crate) subtree: bool,

    /// Begin each line with the time at which it was said
    #[arg(short, long)]
    pub(crate) timestamps: bool,

    /// Begin each line with the label of its run, or its agent; lines of several runs have that always
    #[arg(long)]
    pub(crate) tag: bool,
}

impl LogsArguments {
    /// True if this stream is wanted.
    pub(crate) const fn wants(&self, stream: Stream) -> bool {
        match stream {
            Stream::Stdout => !self.stderr,
            Stream::Stderr => !self.stdout,
        }
    }
}

/// Lines are printed when so many were read, so that memory stays small.
const AT_ONCE: usize = 4096;

/// A line as JSON.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineJson<'a> {
    run_id: RunId,
    label: Option<&'a str>,
    /// From 1.
    attempt: u32,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    at: Timestamp,
    stream: Option<Stream>,
    text: Option<&'a str>,
    /// The reason why something is not here.
    missing: Option<&'a str>,
}

/// The runs that are wanted, as far as the record tells of them.
struct Scope {
    found: FoundRun,
    /// True if the runs below are wanted too.
    subtree: bool,
    tree: Tree,
    /// The last event that was read.
    last: u64,
    /// The time of that event.
    seen: Timestamp,
    /// The last time of which the supervisor before the last one has told.
    left: Timestamp,
}

/// The lines on their way out.
struct Printer<'a> {
    arguments: &'a LogsArguments,
    cx: &'a Invocation,
    since: Option<Timestamp>,
    /// The time of the last line that is older.
    older: Option<Timestamp>,
    /// Lines that were not printed yet; the last ones alone where no more are wanted.
    held: VecDeque<SaidLine>,
    /// The attempts of which lines were printed last; the first where none was.
    attempts: HashMap<RunId, u32>,
    /// The width of the labels.
    width: usize,
    /// True until the first lines were printed: of these alone the last ones are wanted.
    is_first: bool,
    printed: bool,
    /// The colours of the two streams.
    styles: [Style; 2],
}

/// Prints what a run said.
pub(crate) fn run(arguments: &LogsArguments, cx: &Invocation) -> Result<(), Failure> {
    let (record, found) = Record::open_own(cx, &arguments.run)?;
    let reader = OutputReader::new(record.folder(), found.root);
    let run = found.run;
    let scope = Scope {
        found,
        subtree: arguments.subtree,
        tree: Tree::new(),
        last: 0,
        seen: Timestamp::EPOCH,
        left: Timestamp::EPOCH,
    };
    let mut printer = Printer::new(arguments, cx);
    block_on(print(&record, scope, reader, &mut printer))?;
    if !printer.printed && !cx.output.wants_json() {
        match printer.older {
            Some(at) => cx.output.note(
                NoteCode::NothingSaid,
                format_args!(
                    "run {run} has said nothing since then: its last line is of {}, and --since leaves it out",
                    number::moment(at)
                ),
            ),
            None => cx.output.note(
                NoteCode::NothingSaid,
                format_args!("nothing that run {run} said is kept, or nothing of that kind"),
            ),
        }
    }
    Ok(())
}

async fn print(
    record: &Record,
    mut scope: Scope,
    mut reader: OutputReader,
    printer: &mut Printer<'_>,
) -> Result<(), Failure> {
    let mut lines = SaidLines::default();
    let (mut supervisor, mut said) = (None, None);
    loop {
        // Before anything is read: one that has let go of the tree has written all there is.
        let abandoned = record.is_abandoned(scope.found.root)?;
        if !abandoned {
            said = settled(record, &scope, printer, &mut supervisor, said).await?;
        }
        scope.read(record, &mut lines)?;
        let is_over = abandoned || scope.is_over();
        if is_over && !abandoned {
            // What was said last was said before its end was recorded, and maybe after the files were written.
            settled(record, &scope, printer, &mut supervisor, None).await?;
        }
        reader.read::<Failure>(
            |run| scope.wants(run),
            |said| {
                lines.take(said, &mut |line| printer.take(line));
                printer.print_full(&scope)
            },
        )?;
        let is_last = is_over || !printer.arguments.follow;
        if is_last {
            if abandoned {
                scope.tree.lose(scope.found.root);
            }
            for node in scope.tree.nodes().filter(|node| scope.wants(node.run)) {
                lines.lost_before(node.run, u32::MAX, &mut |line| printer.take(line));
                if node.status == RunStatus::Lost && !node.runs_nothing() {
                    lines.cut_off(node.run, scope.seen, &mut |line| printer.take(line));
                }
            }
        }
        printer.print(&scope)?;
        if is_last {
            return Ok(());
        }
    }
}

/// Has the supervisor write what was said; where it was asked before, once there is more than at that time. Answers how much was
/// said by then.
async fn settled(
    record: &Record,
    scope: &Scope,
    printer: &Printer<'_>,
    supervisor: &mut Option<Client>,
    said: Option<u64>,
) -> Result<Option<u64>, Failure> {
    let client = match supervisor {
        Some(client) => client,
        None => match reach(&scope.found.run.to_string(), printer.cx).await {
            Ok((client, _)) => supervisor.insert(client),
            // It has just gone.
            Err(_) if record.is_abandoned(scope.found.root)? => return Ok(said),
            Err(failure) => return Err(failure),
        },
    };
    match client.call(AskedOutput { after: said, event: scope.last }).await {
        Ok(answer) => Ok(Some(answer.said)),
        Err(error) if record.is_abandoned(scope.found.root)? => {
            tracing::debug!(%error, "the supervisor has gone");
            *supervisor = None;
            Ok(said)
        }
        Err(error) => Err(error.into()),
    }
}

impl Scope {
    fn read(&mut self, record: &Record, lines: &mut SaidLines) -> Result<(), Failure> {
        for event in record.store().events(self.found.root, self.last) {
            let event = event?;
            if let EventKind::Reopened = event.kind {
                self.left = self.seen;
            }
            if let EventKind::Resumed { attempt, ref after, .. } = event.kind {
                lines.another_attempt(event.run, attempt, (self.left, event.at), after.is_none());
            }
            self.seen = event.at;
            self.last = event.seq;
            self.tree.apply(&event);
        }
        // One that runs nothing says nothing itself.
        self.subtree |= self.tree.get(self.found.run).is_some_and(Node::runs_nothing);
        Ok(())
    }

    fn wants(&self, run: RunId) -> bool {
        let mut at = Some(run);
        while let Some(run) = at {
            if run == self.found.run {
                return true;
            }
            at = self.tree.get(run).filter(|_| self.subtree).and_then(|node| node.parent);
        }
        false
    }

    /// True if nothing more will be said.
    fn is_over(&self) -> bool {
        let lives = |node: &Node| !node.status.is_terminal();
        !self.tree.nodes().any(|node| lives(node) && self.wants(node.run))
    }
}

impl<'a> Printer<'a> {
    fn new(arguments: &'a LogsArguments, cx: &'a Invocation) -> Self {
        let now = SystemClock.now().as_micros();
        let since = arguments.since.map(|age| {
            let micros = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
            Timestamp::from_micros(now.saturating_sub(micros))
        });
        Self {
            arguments,
            cx,
            since,
            older: None,
            held: VecDeque::new(),
            attempts: HashMap::new(),
            width: 0,
            is_first: true,
            printed: false,
            styles: [Style::new(), cx.output.style_of_stderr()],
        }
    }

    fn take(&mut self, line: SaidLine) {
        let is_wanted = match line.text {
            Text::Said(stream, _) => self.arguments.wants(stream),
            Text::Missing(_) => true,
        };
        if !is_wanted {
            return;
        }
        if self.since.is_some_and(|since| line.at < since) {
            self.older = self.older.max(Some(line.at));
            return;
        }
        self.held.push_back(line);
        if let Some(most) = self.arguments.tail.filter(|_| self.is_first)
            && self.held.len() > most
        {
            self.held.pop_front();
        }
    }

    fn print_full(&mut self, scope: &Scope) -> Result<(), Failure> {
        let is_bounded = self.arguments.tail.is_some() && self.is_first;
        if self.held.len() < AT_ONCE || is_bounded { Ok(()) } else { self.print(scope) }
    }

    fn print(&mut self, scope: &Scope) -> Result<(), Failure> {
        self.is_first = false;
        if self.held.is_empty() {
            return Ok(());
        }
        self.printed = true;
        let held = std::mem::take(&mut self.held);
        let (json, output) = (self.cx.output.wants_json(), self.cx.output);
        output.stream(|out| {
            for line in &held {
                if json {
                    print_json(line, scope, out)?
                } else {
                    self.print_text(line, scope, out)?
                }
            }
            Ok(())
        })
    }

    fn print_text(
        &mut self,
        line: &SaidLine,
        scope: &Scope,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut tagged = String::new();
        if scope.subtree || self.arguments.tag {
            let tag = tag(scope, line.run);
            self.width = self.width.max(tag.chars().count());
            tagged = format!("{tag:width$} | ", width = self.width);
        }
        if self.attempts.insert(line.run, line.attempt).unwrap_or(1) != line.attempt {
            writeln!(out, "{tagged}── attempt {} ──", line.attempt)?;
        }
        out.write_all(tagged.as_bytes())?;
        if self.arguments.timestamps {
            write!(out, "{}  ", number::moment(line.at))?;
        }
        match &line.text {
            Text::Said(stream, text) if io::stdout().is_terminal() => {
                let text = String::from_utf8_lossy(text);
                let style = self.styles[*stream as usize];
                writeln!(out, "{style}{}{style:#}", neutral::block(&text))
            }
            Text::Said(_, text) => {
                out.write_all(text)?;
                out.write_all(b"\n")
            }
            Text::Missing(why) => writeln!(out, "[{why}]"),
        }
    }
}

fn print_json(line: &SaidLine, scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let SaidLine { run, attempt, at, text } = line;
    let (stream, text, missing) = match text {
        Text::Said(stream, text) => (Some(*stream), Some(String::from_utf8_lossy(text)), None),
        Text::Missing(why) => (None, None, Some(why.as_str())),
    };
    let line = LineJson {
        run_id: *run,
        label: scope.tree.get(*run).and_then(|node| node.label.as_deref()),
        attempt: *attempt,
        at: *at,
        stream,
        text: text.as_deref(),
        missing,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// The label of a run, or its agent.
fn tag(scope: &Scope, run: RunId) -> String {
    let node = scope.tree.get(run);
    let label = node.and_then(|node| node.label.as_deref()).map(neutral::line);
    match (label, node) {
        (Some(label), _) => label.into_owned(),
        (None, Some(node)) => node.agent.to_string(),
        (None, None) => run.to_string(),
    }
}
