//! `offshoot prune`.

use offshoot_display::number::{bytes, count};
use offshoot_model::{RootId, SessionKey, Timestamp};
use offshoot_spawner::{Clock, SystemClock};
use offshoot_store::{RootSummary, StoreError, Swept};
use serde::Serialize;

use crate::arguments::PruneArguments;
use crate::code::NoteCode;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use offshoot_host::{end_orphans, prune_folders};

/// The trees that were deleted, or would be.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pruned {
    dry_run: bool,
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

/// Deletes old trees.
pub(crate) fn run(arguments: &PruneArguments, cx: &Invocation) -> Result<(), Failure> {
    let mut pruned = Pruned { dry_run: arguments.dry_run, ..Pruned::default() };
    if let Some(record) = Record::open(cx)? {
        if !arguments.dry_run {
            // A tree that was left by its supervisor may have processes, and only its record names them.
            end_orphans(record.folder(), &**record.store(), &cx.output.reporter())?;
        }
        prune(&record, arguments, &mut pruned)?;
    }
    cx.output.result(&pruned, || print(&pruned, cx))
}

fn prune(record: &Record, arguments: &PruneArguments, pruned: &mut Pruned) -> Result<(), Failure> {
    let now = SystemClock.now();
    for summary in record.summaries()? {
        let root = summary.root;
        // One whose last event is from the future, by a clock that was set back since, is not old.
        if now.since(summary.last_at) < arguments.older_than || summary.last_at > now {
            continue;
        }
        if !prune_folders(record.folder(), root, arguments.dry_run)? {
            // Its changes are nowhere else. The next tree that is opened here brings them back.
            pruned.busy = true;
            continue;
        }
        let is_taken = if arguments.dry_run {
            !record.is_abandoned(root)?
        } else {
            match record.sqlite().remove_tree(root) {
                Ok(_) => false,
                Err(StoreError::Held { .. }) => true,
                Err(error) => return Err(error.into()),
            }
        };
        if !is_taken {
            pruned.trees.push(PrunedTree::of(summary));
        }
    }
    let gone: Vec<RootId> = pruned.trees.iter().map(|tree| tree.root).collect();
    let swept = record.sqlite().sweep(&gone, now, arguments.dry_run);
    let Swept { values, folders, files, bytes, busy } = swept?;
    (pruned.values, pruned.run_folders, pruned.files) = (values, folders, files);
    (pruned.bytes, pruned.busy) = (bytes, busy);
    Ok(())
}

impl PrunedTree {
    fn of(summary: RootSummary) -> Self {
        let RootSummary { root, key: session_key, last_seq: events, last_at, ended, .. } = summary;
        Self { root, session_key, events, last_at, ended }
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
    cx.output.line(format_args!("{verb} {trees}, {values}, {folders} and {files}: {size}"))
}
