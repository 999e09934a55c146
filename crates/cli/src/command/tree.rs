//! `offshoot tree`.

use offshoot_display::{Style, TreeText};
use offshoot_door::{RunName, Tree as AskedTree, WireTreeNode};
use offshoot_model::{Node, Tree, TreeNode};
use serde_json::Value;

use super::spawn::call;
use crate::arguments::TreeArguments;
use crate::door::{above, may_be_below, pictured};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{Archived, Record};
use crate::work::engine::block_on;

/// Shows one run with what is below it, or all trees; inside an agent, what is its own.
pub(crate) fn run(arguments: &TreeArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if may_be_below(cx)
        && let Some(nodes) = block_on(inside(arguments, cx))?
    {
        if cx.output.wants_json() {
            cx.output.json(&nodes.iter().map(json).collect::<Vec<_>>())?;
        } else {
            nodes.iter().try_for_each(|node| cx.output.line(pictured(node)))?;
        }
        return Ok(Exit::Done);
    }
    if let Some(text) = &arguments.run {
        let record = Record::open_for(cx, text)?;
        let found = record.find(text)?;
        let tree = record.tree(found.root)?;
        let node = tree.get(found.run);
        return show(&tree, node.into_iter().collect(), arguments, cx);
    }
    let mut tree = Tree::new();
    let exit = match Record::open(cx)? {
        Some(record) => record.read_all(Archived::of(arguments.all), &mut tree, cx)?,
        None => Exit::Done,
    };
    show(&tree, tree.roots().collect(), arguments, cx)?;
    Ok(exit)
}

fn show(
    tree: &Tree,
    tops: Vec<&Node>,
    arguments: &TreeArguments,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    if cx.output.wants_json() {
        let mut views: Vec<TreeNode> = tops.iter().map(|top| tree.view(top)).collect();
        if !arguments.all {
            views.iter_mut().for_each(|view| hide_deleted(tree, view));
        }
        cx.output.json(&views)?;
        return Ok(Exit::Done);
    }
    match (tops.as_slice(), &arguments.run) {
        ([], _) => cx.output.note("nothing has run here yet"),
        ([top], Some(_)) => print(TreeText::of(tree, top), arguments, cx)?,
        _ => print(TreeText::new(tree), arguments, cx)?,
    }
    Ok(Exit::Done)
}

/// Leaves out what is below a run and deleted. What it used stays in the sums.
fn hide_deleted(tree: &Tree, view: &mut TreeNode) {
    view.children.retain(|child| !tree.get(child.run_id).is_some_and(|node| tree.is_deleted(node)));
    view.children.iter_mut().for_each(|child| hide_deleted(tree, child));
}

fn print(text: TreeText<'_>, arguments: &TreeArguments, cx: &Invocation) -> Result<(), Failure> {
    let text = text.style(Style::Colour).all(arguments.all);
    cx.output.painted(|out| writeln!(out, "{text}"))
}

/// Returns the tree that the door shows, where there is one.
async fn inside(
    arguments: &TreeArguments,
    cx: &Invocation,
) -> Result<Option<Vec<WireTreeNode>>, Failure> {
    let Some(supervisor) = above(cx).await? else { return Ok(None) };
    let asked = AskedTree { run: arguments.run.clone().map(RunName), all: arguments.all };
    Ok(Some(call(&supervisor, asked).await?.roots))
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
