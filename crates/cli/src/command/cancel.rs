//! `offshoot cancel`.

use std::collections::HashSet;

use clap::Args;
use offshoot_display::number::count;
use offshoot_door::{Cancel, RunName};
use offshoot_model::{EventKind, Node, RootId, RunId, Tree};

use super::pause::no_tree_runs;
use crate::code::{FailureCode, NoteCode};
use crate::door::{LiveTree, live_trees, may_be_below, named, reach};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::cancel_abandoned::cancel_abandoned;
use crate::work::engine::block_on;

/// End a run with everything below it
///
/// Inside an agent: a run below it. With --all every tree of this user that runs, or of the data folder that --data-dir names.
/// A tree whose supervisor was killed is ended as a whole: nothing of it is started.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot cancel 0198c7a2-41f3
  offshoot cancel --all
    run=$(\"$OFFSHOOT\" spawn 'look for it' -- my-agent); \"$OFFSHOOT\" cancel $run")]
pub(crate) struct CancelArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub(crate) run: Option<String>,

    /// Every tree of this user that runs; with --data-dir those of that folder
    #[arg(long, conflicts_with_all = ["run", "only"])]
    pub(crate) all: bool,

    /// Spare what is below it
    #[arg(long)]
    pub(crate) only: bool,
}

/// Ends a run: inside an agent one below it, else any that is alive; says what that changes.
pub(crate) fn run(arguments: &CancelArguments, cx: &Invocation) -> Result<(), Failure> {
    let CancelArguments { run, only, all: _ } = arguments;
    let Some(run) = run else { return all(cx) };
    if may_be_below(cx) {
        return running(run, None, *only, cx);
    }
    let found = find(run, *only, cx)?;
    if found.alive.open == 0 {
        let text = "nothing changed: the run and all below it are over";
        cx.output.note(NoteCode::NothingToCancel, text);
        return Ok(());
    }
    let running = || running(&found.run.to_string(), Some(found.alive), *only, cx);
    let abandoned = || abandoned(&found, *only, cx);
    // Since it was looked at, its supervisor may have died, or another one may have taken it over.
    match found.is_abandoned {
        true => abandoned().or_else(|failure| running().map_err(|_| failure)),
        false => running().or_else(|failure| abandoned().map_err(|_| failure)),
    }
}

/// Has the supervisor of a run end it, and says what that changes where so much of it is not over.
fn running(run: &str, alive: Option<Alive>, only: bool, cx: &Invocation) -> Result<(), Failure> {
    block_on(async {
        let (supervisor, run) = reach(run, cx).await?;
        // Also where nothing is left to ask: the last attempt of a run whose time is over may not be its last.
        supervisor.call(Cancel { run: RunName(run), only }).await?;
        match alive {
            Some(Alive { open: 1, stopping: 1 }) => {
                let text = "nothing changed: the run is already asked to end";
                cx.output.note(NoteCode::AlreadyCancelled, text);
            }
            Some(Alive { open, stopping }) if open == stopping => cx.output.note(
                NoteCode::AlreadyCancelled,
                format_args!("nothing changed: {} runs are already asked to end", count(open)),
            ),
            Some(Alive { open, stopping }) => {
                cx.output.note(NoteCode::CancelAsked, asked(open - stopping));
            }
            None => {}
        }
        Ok(())
    })
}

/// Ends a tree that has lost its supervisor. It ends as a whole: nothing holds the rest of it while one run ends.
fn abandoned(found: &Found, only: bool, cx: &Invocation) -> Result<(), Failure> {
    let Found { root, run, alive, .. } = found;
    if only || *run != root.run() {
        let message = format_args!(
            "the tree of run {run} has lost its supervisor: no run of it can be ended alone"
        );
        return Err(Failure::input(FailureCode::SupervisorGone, message).hint(format_args!(
            "`offshoot cancel {root}` ends the whole tree; `offshoot resume {root}` goes on with it"
        )));
    }
    cancel_abandoned(*root, cx)?;
    let ended = match alive.open {
        1 => "1 run that was not over is cancelled".to_owned(),
        runs => format!("{} runs that were not over are cancelled", count(runs)),
    };
    cx.output.note(
        NoteCode::AbandonedCancelled,
        format_args!("the tree had lost its supervisor: {ended}, and nothing was started"),
    );
    Ok(())
}

/// Says what that changes, where so many runs are not over.
pub(super) fn asked(alive: u64) -> String {
    match alive {
        1 => "1 run is asked to end".to_owned(),
        runs => format!("{} runs are asked to end", count(runs)),
    }
}

/// Ends every tree of this user.
fn all(cx: &Invocation) -> Result<(), Failure> {
    let answered = block_on(async {
        let live = live_trees(cx).await?;
        for LiveTree { supervisor, root, .. } in &live.trees {
            supervisor.call(Cancel { run: root.run_id.into(), only: false }).await?;
            cx.output.note(NoteCode::TreeCancelled, format_args!("asked to end: {}", named(root)));
        }
        let answered = live.all_answered();
        if live.trees.is_empty() && answered.is_ok() {
            no_tree_runs(cx);
        }
        Ok(answered)
    })?;
    // What was asked for is done, whatever can be read of the record here.
    let abandoned = Record::open(cx).ok().flatten().and_then(|record| record.abandoned().ok());
    let abandoned = abandoned.unwrap_or_default();
    if let Some(first) = abandoned.first() {
        let trees = match abandoned.len() {
            1 => "1 tree has lost its supervisor, and is not over".to_owned(),
            trees => format!("{trees} trees have lost their supervisor, and are not over"),
        };
        let text = format_args!("{trees}: `offshoot cancel {first}` ends one");
        cx.output.hint(NoteCode::AbandonedLeft, text);
    }
    answered
}

/// Runs that are not over.
#[derive(Clone, Copy, Debug, Default)]
struct Alive {
    /// The number of all of them.
    open: u64,
    /// The number of those that are asked to end.
    stopping: u64,
}

/// The run that is to end.
struct Found {
    root: RootId,
    run: RunId,
    /// True if no supervisor holds its tree.
    is_abandoned: bool,
    alive: Alive,
}

/// Finds a run, and counts the runs that are not over: the run, and with `only` no other, else all below it too.
fn find(run: &str, only: bool, cx: &Invocation) -> Result<Found, Failure> {
    let (record, found) = Record::open_to_act(cx, run)?;
    let (mut tree, mut stopping) = (Tree::new(), HashSet::new());
    let is_abandoned = record.replay(found.root, |event| {
        match event.kind {
            EventKind::Stopping { .. } => drop(stopping.insert(event.run)),
            // Another attempt begins.
            EventKind::Resumed { .. } => drop(stopping.remove(&event.run)),
            _ => {}
        }
        tree.apply(event);
    })?;
    let alive = tree.get(found.run).map_or_else(Alive::default, |node| match only {
        true => itself(node, Alive::default(), &stopping),
        false => below(&tree, node, &stopping),
    });
    Ok(Found { root: found.root, run: found.run, is_abandoned, alive })
}

fn below(tree: &Tree, node: &Node, stopping: &HashSet<RunId>) -> Alive {
    let children = tree.children(node).map(|child| below(tree, child, stopping));
    let sum = children.fold(Alive::default(), |sum, child| Alive {
        open: sum.open + child.open,
        stopping: sum.stopping + child.stopping,
    });
    itself(node, sum, stopping)
}

/// Counts a run with what was counted below it. One that runs nothing itself is asked nothing: it ends with what is below it.
fn itself(node: &Node, below: Alive, stopping: &HashSet<RunId>) -> Alive {
    let is_open = !node.status.is_terminal();
    let ends = match node.runs_nothing() {
        true => below.open > 0 && below.open == below.stopping,
        false => stopping.contains(&node.run),
    };
    Alive {
        open: below.open + u64::from(is_open),
        stopping: below.stopping + u64::from(is_open && ends),
    }
}
