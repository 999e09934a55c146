//! `offshoot prune`.

use std::time::Duration;

use clap::Args;
use offshoot_display::number::{bytes, count};
use offshoot_host::{end_orphans, prune_folders};
use offshoot_model::{Node, RootId, RunId, SessionKey, Timestamp, Tree};
use offshoot_spawner::{Clock, SystemClock};
use offshoot_store::{FoundRun, RootSummary, StoreError, Swept};
use serde::Serialize;

use crate::arguments::value::duration_with_unit;
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Delete old trees from the record, and whatever nothing names any more
///
/// With RUN: one run that is over, and everything below it. Of a root the whole tree goes. Of a run below a root its values, its folder and
/// what it said go, and so do those of the runs below it; their events stay, for they prove the rest of the tree, and short tasks
/// and answers stand in them.
///
/// A tree is as old as its last event. Trees that run are never touched. Values, folders of runs and unfinished files
/// go when no record names them, when nothing has used them for an hour, and only while no tree runs here. What the agents of a tree said goes with the tree.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot prune --older-than 30d --dry-run
  offshoot prune --older-than 12h
  offshoot prune --older-than 0s
  offshoot prune last --dry-run")]
pub(crate) struct PruneArguments {
    /// The run that goes with everything below it, in place of old trees: a run id, its unique beginning, a session key, a label, `last`,
    /// `main` or `@N`
    #[arg(conflicts_with = "older_than")]
    pub(crate) run: Option<String>,

    /// Trees in which nothing has happened for this long, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = duration_with_unit, required_unless_present = "run")]
    pub(crate) older_than: Option<Duration>,

    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The trees that were deleted, or would be.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pruned {
    dry_run: bool,
    /// The runs below a root whose data went while their events stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunId>,
    trees: Vec<PrunedTree>,
    values: u64,
    run_folders: u64,
    files: u64,
    bytes: u64,
    /// True if a tree runs here, so that files stay that it may still use.
    busy: bool,
}

/// One tree of them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrunedTree {
    root: RootId,
    session_key: Option<SessionKey>,
    events: u64,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    last_at: Timestamp,
    /// True if the tree has ended; false if its supervisor left it.
    ended: bool,
}

/// Deletes old trees, or one run with everything below it.
pub(crate) fn run(arguments: &PruneArguments, cx: &Invocation) -> Result<(), Failure> {
    if let Some(run) = &arguments.run {
        return one(run, arguments.dry_run, cx);
    }
    let older_than = arguments.older_than.expect("clap asks for an age where no run is named");
    let mut pruned = Pruned { dry_run: arguments.dry_run, ..Pruned::default() };
    if let Some(record) = Record::open(cx)? {
        if !arguments.dry_run {
            // A tree that was left by its supervisor may have processes, and only its record names them.
            end_orphans(record.folder(), &**record.store(), &cx.output.reporter())?;
        }
        prune(&record, older_than, &mut pruned)?;
    }
    cx.output.result(&pruned, || print(&pruned, cx))
}

fn prune(record: &Record, older_than: Duration, pruned: &mut Pruned) -> Result<(), Failure> {
    let now = SystemClock.now();
    for summary in record.summaries()? {
        // One whose last event is from the future, by a clock that was set back since, is not old.
        if now.since(summary.last_at) < older_than || summary.last_at > now {
            continue;
        }
        remove(record, summary, pruned)?;
    }
    sweep(record, now, pruned)
}

/// Removes a tree from the record, unless it is run by now.
fn remove(record: &Record, summary: RootSummary, pruned: &mut Pruned) -> Result<(), Failure> {
    let root = summary.root;
    if !prune_folders(record.folder(), root, pruned.dry_run)? {
        // Its changes are nowhere else. The next tree that is opened here brings them back.
        pruned.busy = true;
        return Ok(());
    }
    let is_taken = if pruned.dry_run {
        !record.is_abandoned(root)?
    } else {
        match record.sqlite().remove_tree(root) {
            Ok(_) => false,
            Err(StoreError::Held { .. }) => true,
            Err(error) => return Err(error.into()),
        }
    };
    if !is_taken {
        let RootSummary { key: session_key, last_seq: events, last_at, ended, .. } = summary;
        pruned.trees.push(PrunedTree { root, session_key, events, last_at, ended });
    }
    Ok(())
}

/// Removes what no record names once these trees are gone.
fn sweep(record: &Record, now: Timestamp, pruned: &mut Pruned) -> Result<(), Failure> {
    let gone: Vec<RootId> = pruned.trees.iter().map(|tree| tree.root).collect();
    let swept = record.sqlite().sweep(&gone, now, pruned.dry_run)?;
    pruned.count(swept);
    Ok(())
}

/// Deletes a run that is over, and everything below it.
fn one(text: &str, dry_run: bool, cx: &Invocation) -> Result<(), Failure> {
    let (record, FoundRun { root, run, .. }) = Record::open_with(cx, text)?;
    let tree = record.tree(root)?;
    let runs = subtree(&tree, run);
    let open = [root.run()].into_iter().chain(runs.iter().copied());
    if let Some(open) = open.filter_map(|run| tree.get(run)).find(|node| node.ended_at.is_none()) {
        let abandoned = record.is_abandoned(root)?.then_some(root);
        return Err(not_over(open, run, abandoned));
    }
    let now = SystemClock.now();
    let mut pruned = Pruned { dry_run, ..Pruned::default() };
    if run == root.run() {
        let summary = record.summaries()?.into_iter().find(|summary| summary.root == root);
        remove(&record, summary.expect("a tree on record has a root"), &mut pruned)?;
        sweep(&record, now, &mut pruned)?;
    } else {
        let of = runs.iter().copied().collect();
        let swept = record.sqlite().remove_left_by(root, &of, now, dry_run)?;
        pruned.count(swept);
        pruned.runs = runs;
    }
    cx.output.result(&pruned, || print(&pruned, cx))
}

/// Returns a run and all below it, from the top.
fn subtree(tree: &Tree, run: RunId) -> Vec<RunId> {
    let mut runs = vec![run];
    let mut at = 0;
    while let Some(node) = runs.get(at).and_then(|run| tree.get(*run)) {
        runs.extend(tree.children(node).map(|child| child.run));
        at += 1;
    }
    runs
}

/// Refuses to delete where this run is not over. `abandoned` is its tree where that has lost its supervisor.
fn not_over(open: &Node, asked: RunId, abandoned: Option<RootId>) -> Failure {
    let open = open.run;
    let of = match open == asked {
        true => "",
        false => ", and its tree is deleted whole or by runs that are over",
    };
    let hint = match abandoned {
        Some(root) => format!(
            "its tree has lost its supervisor: `offshoot cancel {root}` ends the tree, and `offshoot resume {root}` goes on with it; `offshoot prune --older-than 1d` deletes such trees as well, a day after their last event"
        ),
        None => format!("`offshoot cancel {open}` ends it"),
    };
    Failure::new(
        FailureCode::RunNotOver,
        Exit::Refused,
        format_args!("the run {open} is not over{of}"),
    )
    .hint(hint)
}

impl Pruned {
    fn count(&mut self, swept: Swept) {
        let Swept { values, folders, files, bytes, busy } = swept;
        (self.values, self.run_folders, self.files) = (values, folders, files);
        (self.bytes, self.busy) = (bytes, busy);
    }
}

/// Prints what was deleted, or would be.
fn print(pruned: &Pruned, cx: &Invocation) -> Result<(), Failure> {
    let row = |tree: &PrunedTree| {
        let ended = if tree.ended { "" } else { "without an end" };
        let key = tree.session_key.as_ref().map(ToString::to_string).unwrap_or_default();
        let when = tree.last_at.to_string();
        [
            tree.root.to_string(),
            when,
            format!("{} events", count(tree.events)),
            key,
            ended.to_owned(),
        ]
    };
    cx.output.table(&pruned.trees.iter().map(row).collect::<Vec<_>>())?;
    let verb = if pruned.dry_run { "would delete" } else { "deleted" };
    let many = |number: u64, one: &str, more: &str| {
        format!("{} {}", count(number), if number == 1 { one } else { more })
    };
    let trees = many(pruned.trees.len() as u64, "tree", "trees");
    if pruned.busy {
        cx.output.note(
            NoteCode::FilesStay,
            "a tree runs here, so files that it may still use stay until the next time",
        );
    }
    let values = many(pruned.values, "value", "values");
    let folders = many(pruned.run_folders, "folder of a run", "folders of runs");
    let files = many(pruned.files, "other file", "other files");
    let size = bytes(pruned.bytes);
    let trees = match pruned.runs.len() as u64 {
        0 => trees,
        runs => format!("what {} left", many(runs, "run", "runs")),
    };
    if !pruned.runs.is_empty() {
        cx.output.note(
            NoteCode::EventsStay,
            "events stay, with the short texts in them: they prove the rest of the tree",
        );
    }
    cx.output.line(format_args!("{verb} {trees}, {values}, {folders} and {files}: {size}"))
}
