//! `offshoot cancel`.

use offshoot_display::number::count;
use offshoot_door::{Cancel, Client, RunName};
use offshoot_model::{Node, Tree};

use crate::arguments::CancelArguments;
use crate::code::NoteCode;
use crate::door::{LiveTree, live_trees, may_be_below, named, reach};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::engine::block_on;

/// Ends a run: inside an agent one below it, else any that is alive; says what that changes.
pub(crate) fn run(arguments: &CancelArguments, cx: &Invocation) -> Result<(), Failure> {
    let CancelArguments { run, only, all: _ } = arguments;
    let Some(run) = run else { return all(cx) };
    let alive = if may_be_below(cx) { None } else { Some(alive(run, *only, cx)?) };
    if alive == Some(0) {
        cx.output
            .note(NoteCode::NothingToCancel, "nothing changed: the run and all below it are over");
        return Ok(());
    }
    block_on(async {
        let (supervisor, run) = reach(run, cx).await?;
        end(&supervisor, RunName(run), *only).await?;
        alive.into_iter().for_each(|alive| cx.output.note(NoteCode::CancelAsked, asked(alive)));
        Ok(())
    })
}

/// Asks a supervisor to end a run, and what is below it unless it is to be spared.
pub(super) async fn end(supervisor: &Client, run: RunName, only: bool) -> Result<(), Failure> {
    supervisor.call(Cancel { run, only }).await?;
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
    block_on(async {
        let (trees, _) = live_trees(cx).await?;
        for LiveTree { supervisor, root, .. } in &trees {
            end(supervisor, RunName::from(root.run_id), false).await?;
            cx.output.note(NoteCode::TreeCancelled, format_args!("asked to end: {}", named(root)));
        }
        if trees.is_empty() {
            cx.output.note(NoteCode::NoTreeRuns, "nothing changed: no tree of this user runs");
        }
        Ok(())
    })
}

/// Counts the runs that are not over: the run, and with `only` no other, else all below it too.
fn alive(run: &str, only: bool, cx: &Invocation) -> Result<u64, Failure> {
    fn below(tree: &Tree, node: &Node) -> u64 {
        let itself = u64::from(!node.status.is_terminal());
        tree.children(node).fold(itself, |sum, child| sum + below(tree, child))
    }
    let (record, found) = Record::open_with(cx, run)?;
    let tree = record.tree(found.root)?;
    let node = tree.get(found.run);
    Ok(node.map_or(0, |node| match only {
        true => u64::from(!node.status.is_terminal()),
        false => below(&tree, node),
    }))
}
