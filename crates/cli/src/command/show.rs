//! `offshoot show`.

mod at_work;

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use clap::Args;
use offshoot_display::json::Document;
use offshoot_display::{Show, Style};
use offshoot_model::{
    AgentId, Changes, ContentHash, Cost, DelegationContext, Ending, EnvelopeError, Grant,
    InputRange, Node, Origin, Payload, RunId, RunStatus, SessionKey, Timestamp, Tree, Usage,
    bounded_request, rfc3339,
};
use offshoot_store::{FoundRun, open_without_links};
use serde::Serialize;

use crate::arguments::FormatArgument;
use crate::code::{FailureCode, NoteCode};
use crate::failure::Failure;
use crate::held_run::HeldRun;
use crate::invocation::Invocation;
use crate::record::{self, Record};
use crate::work::engine::block_on;

/// Show one run: what it was asked, how it ended, what it answered
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot show 0198c7
  offshoot show 0198c7 --json
  offshoot show 0198c7 --answer > answer.txt
  offshoot show 0198c7 --patch | git apply --stat")]
pub(crate) struct ShowArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Print the answer alone, as it is
    #[arg(long)]
    pub(crate) answer: bool,

    /// Print the changes that it made in a folder of its own, as a patch
    #[arg(long, conflicts_with = "answer")]
    pub(crate) patch: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// All that is known of a run: the fields of its envelope, and what it was asked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    status: RunStatus,
    #[serde(serialize_with = "Payload::serialize_plain", skip_serializing_if = "Option::is_none")]
    data: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<EnvelopeError>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    /// The changes that it made, where it worked in a folder of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Box<Changes>>,
    session_key: SessionKey,
    run_id: RunId,
    root: RunId,
    parent: Option<RunId>,
    agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Arc<str>>,
    depth: u32,
    delegation: DelegationContext,
    origin: Origin,
    runtime: Option<Arc<str>>,
    #[serde(serialize_with = "Payload::serialize_plain")]
    task: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<InputRange>,
    grant: Arc<Grant>,
    #[serde(serialize_with = "rfc3339")]
    admitted_at: Timestamp,
    #[serde(serialize_with = "rfc3339")]
    started_at: Option<Timestamp>,
    #[serde(serialize_with = "rfc3339")]
    ended_at: Option<Timestamp>,
    execution_time_ms: Option<u64>,
    #[serde(flatten)]
    holds: HeldRun,
    /// The run that had its place before.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<RunId>,
    /// The run that has its place now.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<RunId>,
    /// The time since its last sign of life, where it runs and its supervisor answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    silent_ms: Option<u64>,
    /// The last lines that it said, while it is not over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_lines: Vec<String>,
    /// The time at which it said the last of them.
    #[serde(serialize_with = "rfc3339", skip_serializing_if = "Option::is_none")]
    last_said_at: Option<Timestamp>,
    usage: Usage,
    cost: Cost,
    /// The tokens of the run with all below it.
    subtree_usage: Usage,
    /// The cost of the run with all below it.
    subtree_cost: Cost,
    children: Vec<RunId>,
}

/// Shows one run, or its answer alone.
pub(crate) fn run(arguments: &ShowArguments, cx: &Invocation) -> Result<(), Failure> {
    let (record, found) = Record::open_own(cx, &arguments.run)?;
    let ending = record.ending(found.root, found.run)?;
    if arguments.answer || arguments.patch {
        let Some(ending) = ending else { return Err(record::not_over(&record, &found)?) };
        return match arguments.answer {
            true => answer(&record, found.run, ending, cx),
            false => patch(&record, found.run, ending, cx),
        };
    }
    if !cx.output.wants_json() {
        return text(&record, &found, cx);
    }
    let tree = record.tree(found.root)?;
    let node = tree.get(found.run).ok_or_else(|| record::no_record(found.run))?;
    let shown = shown(&record, &tree, node, ending, cx)?;
    cx.output.document(&shown, Document::Tree)
}

/// `show --answer`: prints the answer of a run that is over.
fn answer(record: &Record, run: RunId, ending: Ending, cx: &Invocation) -> Result<(), Failure> {
    let status = ending.status();
    let Ending { output, reason, .. } = ending;
    let missing = || {
        Failure::input(FailureCode::NoAnswer, format_args!("run {run} has no answer: it {reason}"))
            .hint(format_args!("`offshoot logs {run}` prints what it said"))
    };
    let output = output.ok_or_else(missing)?;
    record::must_be_there(&**record.store(), run, &output)?;
    if !status.is_success() {
        cx.output.note(
            NoteCode::PartialAnswer,
            format_args!("this is no whole answer: run {run} did not complete: {reason}"),
        );
    }
    record::print(&**record.store(), &output, cx)
}

/// `show --patch`: prints the changes of a run that is over.
fn patch(record: &Record, run: RunId, ending: Ending, cx: &Invocation) -> Result<(), Failure> {
    let status = ending.status();
    let Some(changes) = ending.changes else {
        let message = match status.is_success() {
            true => format!("run {run} had no folder of its own"),
            false => format!("run {run} has left no patch: it {}", ending.reason),
        };
        return Err(Failure::input(FailureCode::NoFolderOfItsOwn, message).hint(
            "--isolation gives a run a folder of its own, and its changes come back as a patch",
        ));
    };
    match changes.patch {
        Some(patch) => record::print(&**record.store(), &Payload::Stored(patch), cx),
        None => Ok(()),
    }
}

fn shown(
    record: &Record,
    tree: &Tree,
    node: &Node,
    ending: Option<Ending>,
    cx: &Invocation,
) -> Result<Shown, Failure> {
    /// A larger answer is named, and printed by `--answer`.
    const INLINE: u64 = 1024 * 1024;
    let store = &**record.store();
    let missing = || record::no_record(node.run);
    let admitted = store.admitted(node.root, node.run)?.ok_or_else(missing)?;
    let at_work = block_on(at_work::look(record, node, cx))?;
    let request = store.admitted(node.root, node.root.run())?.ok_or_else(missing)?;
    let request = match record::at_hand(store, &request.task)? {
        Payload::Text(text) => bounded_request(&text),
        // A task is text.
        Payload::Json(_) | Payload::Stored(_) => Arc::default(),
    };
    // A run without an ending may be lost all the same.
    let unsaid = || node.reason.clone().map(Ending::of);
    let error = ending.clone().or_else(unsaid).as_ref().and_then(EnvelopeError::of);
    let (data, changes) = ending.map(|ending| (ending.output, ending.changes)).unwrap_or_default();
    let at_hand = |payload: Payload| match payload.size() {
        0..=INLINE => record::at_hand(store, &payload),
        _ => Ok(payload),
    };
    let data = data.map(at_hand).transpose()?;
    let (subtree_usage, subtree_cost) = tree.subtree(node);
    Ok(Shown {
        status: node.status,
        partial: error.is_some() && data.is_some(),
        data,
        changes,
        error,
        session_key: node.key.clone(),
        run_id: node.run,
        root: node.root.run(),
        parent: node.parent,
        agent: node.agent.clone(),
        label: node.label.clone(),
        depth: node.depth,
        delegation: DelegationContext::new(tree.trace(node), request),
        origin: node.origin,
        runtime: admitted.runtime,
        task: Some(at_hand(admitted.task)?),
        input: admitted.input,
        grant: admitted.grant,
        admitted_at: node.admitted_at,
        started_at: node.started_at,
        ended_at: node.ended_at,
        execution_time_ms: node.execution_time().map(|time| time.as_millis() as u64),
        holds: HeldRun::of(tree, node),
        instead: node.instead,
        replaced_by: node.replaced_by,
        silent_ms: at_work.silence.map(|silence| silence.as_millis() as u64),
        last_lines: at_work.lines,
        last_said_at: at_work.said_at,
        usage: node.usage,
        cost: node.cost,
        subtree_usage,
        subtree_cost,
        children: tree.children(node).map(|child| child.run).collect(),
    })
}

/// Returns the first line of a piece, where its file still has what was cut from it.
fn piece(range: &InputRange) -> Option<String> {
    /// A larger piece is not read to show its beginning.
    const LARGEST: u64 = 64 * 1024;
    const CHARACTERS: usize = 80;
    if range.size() > LARGEST {
        return None;
    }
    let file = open_without_links(&range.path).ok()?;
    let mut bytes = vec![0; range.size() as usize];
    let (header, piece) = bytes.split_at_mut(range.header as usize);
    file.read_exact_at(header, 0).ok()?;
    file.read_exact_at(piece, range.offset).ok()?;
    if range.hash != Some(ContentHash::of(&bytes)) {
        return None;
    }
    let text = str::from_utf8(&bytes[range.header as usize..]).ok()?.trim();
    let line = text.lines().next()?;
    let shown: String = line.chars().take(CHARACTERS).collect();
    Some(if shown.len() < text.len() { format!("{shown} …") } else { shown })
}

fn text(record: &Record, found: &FoundRun, cx: &Invocation) -> Result<(), Failure> {
    let mut show = Show::new(found.run, Style::Colour);
    if record.replay(found.root, |event| show.apply(event))? {
        show.lose(found.root);
    }
    if let Some(node) = show.node() {
        let at_work = block_on(at_work::look(record, node, cx))?;
        show.at_work(at_work);
    }
    if let Some(piece) = show.input().and_then(piece) {
        show.piece(piece);
    }
    if let Some(value) = show.stored_answer()
        && !record.store().path(&value).is_ok_and(|path| path.exists())
    {
        show.lose_answer();
    }
    cx.output.painted(|out| writeln!(out, "{show}"))
}
