//! `offshoot tree`.

use clap::Args;
use offshoot_display::json::Document;
use offshoot_display::{FAILURES, Shows, Style, TreeText, beginnings};
use offshoot_door::{RunName, Tree as AskedTree, WireTreeNode};
use offshoot_model::{Node, RootId, Tree, TreeNode};
use offshoot_spawner::{Clock, SystemClock};
use serde_json::Value;

use crate::arguments::FormatArgument;
use crate::arguments::value::whole;
use crate::code::NoteCode;
use crate::door::{inside, pictured, silences};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::wording;
use crate::work::engine::block_on;

/// Show runs as a tree
///
/// Of children that are done, or have not begun, only the first ones have a line; the others are counted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot tree
  What failed in the newest tree, and below which run:
    offshoot tree last --failed
  offshoot tree 0198c7a2-41f3 --json")]
pub(crate) struct TreeArguments {
    /// A run with what is below it [default: all trees]; a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Show every run, also where many are alike or deleted, and trees that are archived
    #[arg(long)]
    pub(crate) all: bool,

    /// Show what did not complete, with its line of parents
    #[arg(long, conflicts_with = "all")]
    pub(crate) failed: bool,

    /// Show N levels below the top
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX, "2"))]
    pub(crate) depth: Option<u32>,

    /// Show at most N runs below the tops, first those that did not complete or still run [default: 200; with --all no limit]
    #[arg(long, value_name = "N", value_parser = whole(0_usize.., "100"), conflicts_with = "all")]
    pub(crate) limit: Option<usize>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// The runs below the tops that are shown unless more are asked for.
const LIMIT: usize = 200;

/// Shows one run with what is below it, or all trees; inside an agent, what is its own.
pub(crate) fn run(arguments: &TreeArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let asked = AskedTree { run: arguments.run.clone().map(RunName), all: arguments.all };
    if let Some(found) = inside(cx, async |supervisor| Ok(supervisor.call(asked).await?))? {
        cx.output.result(&found.roots.iter().map(json).collect::<Vec<_>>(), || {
            found.roots.iter().try_for_each(|node| cx.output.line(pictured(node)))
        })?;
        return Ok(Exit::Done);
    }
    if let Some(text) = &arguments.run {
        let (record, found) = Record::open_to_look(cx, text)?;
        let tree = record.tree(found.root)?;
        let node = tree.get(found.run);
        show(&tree, node.into_iter().collect(), arguments, Some(&record), cx)?;
        return Ok(Exit::Done);
    }
    let mut tree = Tree::new();
    let record = Record::open(cx)?;
    let exit = match &record {
        Some(record) => record.read_all(arguments.all, &mut tree, cx)?,
        None => Exit::Done,
    };
    let subtrees = tree.subtrees();
    let has_failures = |root: &&Node| subtrees.of(root).statuses.has_any(&FAILURES);
    let tops = tree.roots().filter(|root| !arguments.failed || has_failures(root)).collect();
    show(&tree, tops, arguments, record.as_ref(), cx)?;
    Ok(exit)
}

/// Prints the trees that are on record.
fn show(
    tree: &Tree,
    tops: Vec<&Node>,
    arguments: &TreeArguments,
    record: Option<&Record>,
    cx: &Invocation,
) -> Result<(), Failure> {
    if cx.output.wants_json() {
        let mut views: Vec<TreeNode> = tops.iter().map(|top| tree.view(top)).collect();
        if !arguments.all {
            views.iter_mut().for_each(|view| hide_deleted(tree, view));
        }
        if arguments.failed {
            views.iter_mut().for_each(keep_failed);
        }
        if let Some(depth) = arguments.depth {
            views.iter_mut().for_each(|view| cut(view, depth));
        }
        return cx.output.document(&views, Document::Trees);
    }
    match (tops.as_slice(), &arguments.run) {
        ([], _) if tree.roots().next().is_some() => {
            cx.output.note(NoteCode::NothingToShow, "no run matches");
            Ok(())
        }
        ([], _) => {
            cx.output.note(NoteCode::NothingToShow, wording::nothing_yet(cx));
            Ok(())
        }
        ([top], Some(_)) => print(TreeText::of(tree, top), arguments, record, cx),
        _ => print(TreeText { tops, ..TreeText::new(tree) }, arguments, record, cx),
    }
}

/// Leaves out what is below a run and deleted. What it used stays in the sums.
fn hide_deleted(tree: &Tree, view: &mut TreeNode) {
    view.children.retain(|child| !tree.get(child.run_id).is_some_and(|node| tree.is_deleted(node)));
    view.children.iter_mut().for_each(|child| hide_deleted(tree, child));
}

/// Leaves out what completed, and has nothing below it that did not. What it used stays in the sums.
fn keep_failed(view: &mut TreeNode) {
    view.children.iter_mut().for_each(keep_failed);
    let failed = |node: &TreeNode| node.status.is_terminal() && !node.status.is_success();
    view.children.retain(|child| failed(child) || !child.children.is_empty());
}

/// Leaves out what is more than so many levels below.
fn cut(view: &mut TreeNode, depth: u32) {
    match depth.checked_sub(1) {
        Some(depth) => view.children.iter_mut().for_each(|child| cut(child, depth)),
        None => view.children.clear(),
    }
}

fn print(
    text: TreeText<'_>,
    arguments: &TreeArguments,
    record: Option<&Record>,
    cx: &Invocation,
) -> Result<(), Failure> {
    let &TreeArguments { run: _, all, failed, depth, limit, .. } = arguments;
    let ids = record.map(|record| record.sqlite().runs()).transpose()?.unwrap_or_default();
    let ids = beginnings(ids.into_iter());
    let open: Vec<RootId> = text.tree.open().map(|root| root.root).collect();
    let silences = block_on(silences(&open, cx))?;
    let text = TreeText {
        style: Style::Colour,
        shows: match (all, failed) {
            (true, _) => Shows::All,
            (false, true) => Shows::Failed,
            (false, false) => Shows::Usual,
        },
        ids: Some(&ids),
        now: Some(SystemClock.now()),
        silences: Some(&silences),
        depth,
        limit: (!all).then(|| limit.unwrap_or(LIMIT)),
        ..text
    };
    let (tree, tops) = (text.tree, text.tops.clone());
    cx.output.painted(|out| writeln!(out, "{text}"))?;
    if let Some(record) = record {
        let roots = tops.into_iter().filter_map(|top| tree.get(top.root.run()));
        wording::point_to_lost_trees(record, roots, cx)?;
    }
    Ok(())
}

/// A node as it is shown outside: with the names that older readers know.
fn json(node: &WireTreeNode) -> Value {
    let bare = WireTreeNode { children: Vec::new(), ..node.clone() };
    let mut value = serde_json::to_value(&bare).expect("a node is plain data");
    value["id"] = value["runId"].clone();
    value["tokenUsage"] = value["ownUsage"].clone();
    value["children"] = node.children.iter().map(json).collect();
    value
}
