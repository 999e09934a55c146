//! `offshoot pause` and `offshoot unpause`.

use clap::Args;
use offshoot_display::number;
use offshoot_door::{Client, Pause};
use offshoot_model::Timestamp;

use crate::code::NoteCode;
use crate::door::{LiveTree, live_trees, may_be_below, named, reach};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::engine::block_on;

/// The tree that is meant, or all; of `pause` and of `unpause`.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Any run of the tree: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub(crate) run: Option<String>,

    /// Every tree of this user; with --data-dir those of that folder
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
}

/// Stops admission and starts in the tree of a run, or in every tree where none is named, or lets them go on; says what that
/// changed.
pub(crate) fn run(run: Option<&str>, paused: bool, cx: &Invocation) -> Result<(), Failure> {
    match run {
        Some(run) => one(run, paused, cx),
        None => all(paused, cx),
    }
}

/// `pause --all` and `unpause --all`: every tree of this user.
fn all(paused: bool, cx: &Invocation) -> Result<(), Failure> {
    block_on(async {
        let live = live_trees(cx).await?;
        for LiveTree { supervisor, root, .. } in &live.trees {
            supervisor.call(Pause { paused }).await?;
            let name = named(root);
            let text = match (root.holds.paused_since.map(number::moment), paused) {
                (None, true) => format!("paused: {name}"),
                (Some(since), true) => format!("nothing changed: {name} is paused since {since}"),
                (Some(since), false) => format!("goes on: {name}, which was paused since {since}"),
                (None, false) => format!("nothing changed: {name} was not paused"),
            };
            cx.output.note(NoteCode::TreePaused, text);
        }
        live.all_answered()?;
        if live.trees.is_empty() {
            no_tree_runs(cx);
        }
        Ok(())
    })
}

/// Says that a command about all trees has found none.
pub(super) fn no_tree_runs(cx: &Invocation) {
    let whose = match cx.global.data_dir {
        Some(_) => "in this data folder",
        None => "of this user",
    };
    cx.output.note(NoteCode::NoTreeRuns, format_args!("nothing changed: no tree {whose} runs"));
}

/// `pause RUN` and `unpause RUN`: the tree of one run.
fn one(run: &str, paused: bool, cx: &Invocation) -> Result<(), Failure> {
    let found = if may_be_below(cx) { None } else { Some(Record::open_to_act(cx, run)?) };
    let (run, before) = match &found {
        Some((record, found)) => {
            (found.run.to_string(), record.tree(found.root)?.holds(found.root).paused_since)
        }
        None => (run.to_owned(), None),
    };
    block_on(async {
        let (supervisor, run) = reach(&run, cx).await?;
        let changed = set(&supervisor, paused, before).await?;
        match (before, paused) {
            (None, true) => cx.output.note(
                NoteCode::TreePaused,
                format_args!("{changed}; `offshoot unpause {run}` ends that"),
            ),
            _ => cx.output.note(NoteCode::TreePaused, changed),
        }
        Ok(())
    })
}

/// Pauses the tree of a supervisor, or lets it go on, and says what that changed of one that was paused since `before`.
pub(super) async fn set(
    supervisor: &Client,
    paused: bool,
    before: Option<Timestamp>,
) -> Result<String, Failure> {
    supervisor.call(Pause { paused }).await?;
    Ok(match (before.map(number::moment), paused) {
        (Some(since), true) => format!("nothing changed: the tree is paused since {since}"),
        (None, true) => {
            "paused: nothing more is started in this tree, and what runs goes on".to_owned()
        }
        (Some(since), false) => format!("the tree goes on; it was paused since {since}"),
        (None, false) => "nothing changed: the tree was not paused".to_owned(),
    })
}
