//! `offshoot tree`.

use offshoot_display::{Style, TreeText};
use offshoot_model::{Node, Tree, TreeNode};

use crate::arguments::TreeArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{Archived, Record};

/// Shows one run with what is below it, or all trees.
pub(crate) fn run(arguments: &TreeArguments, cx: &Invocation) -> Result<Exit, Failure> {
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
        let views: Vec<TreeNode> = tops.iter().map(|top| tree.view(top)).collect();
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

fn print(text: TreeText<'_>, arguments: &TreeArguments, cx: &Invocation) -> Result<(), Failure> {
    let text = text.style(Style::Colour).all(arguments.all);
    cx.output.painted(|out| writeln!(out, "{text}"))
}
