//! `offshoot list`.

use std::sync::Arc;

use offshoot_display::{List, Style};
use offshoot_door::{List as AskedList, WireTreeNode};
use offshoot_model::{AgentId, Cost, Node, RunId, RunStatus, SessionKey, Timestamp, Tree, Usage};
use serde::Serialize;

use super::spawn::call;
use crate::arguments::ListArguments;
use crate::door::{above, listed, may_be_below};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{Archived, Record};
use crate::work::engine::block_on;

/// One run, in a line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    run_id: RunId,
    session_key: SessionKey,
    agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Arc<str>>,
    status: RunStatus,
    depth: u32,
    parent: Option<RunId>,
    /// Directly below.
    children: usize,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    admitted_at: Timestamp,
    execution_time_ms: Option<u64>,
    subtree_usage: Usage,
    cost: Cost,
}

/// Lists runs, the oldest first.
pub(crate) fn run(arguments: &ListArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if may_be_below(cx)
        && let Some(runs) = block_on(inside(arguments, cx))?
    {
        return print_inside(&runs, cx);
    }
    let mut tree = Tree::new();
    let exit = match Record::open(cx)? {
        Some(record) => record.read_all(Archived::of(arguments.all), &mut tree, cx)?,
        None => Exit::Done,
    };
    let wanted = |node: &&Node| arguments.all || node.parent.is_none();
    let nodes: Vec<&Node> = tree.nodes().filter(wanted).collect();
    if cx.output.wants_json() {
        let listed: Vec<Listed> = nodes.iter().map(|node| list(&tree, node)).collect();
        cx.output.json(&listed)?;
    } else if nodes.is_empty() {
        cx.output.note("nothing has run here yet");
    } else {
        let list = List::new(nodes).style(Style::Colour);
        cx.output.painted(|out| writeln!(out, "{list}"))?;
    }
    Ok(exit)
}

fn list(tree: &Tree, node: &Node) -> Listed {
    let (subtree_usage, cost) = tree.subtree(node);
    Listed {
        run_id: node.run,
        session_key: node.key.clone(),
        agent: node.agent.clone(),
        label: node.label.clone(),
        status: node.status,
        depth: node.depth,
        parent: node.parent,
        children: tree.children(node).len(),
        admitted_at: node.admitted_at,
        execution_time_ms: node.execution_time().map(|time| time.as_millis() as u64),
        subtree_usage,
        cost,
    }
}

/// The session that asks and all that is below it, as the door tells, where there is one.
async fn inside(
    arguments: &ListArguments,
    cx: &Invocation,
) -> Result<Option<Vec<WireTreeNode>>, Failure> {
    let Some(supervisor) = above(cx).await? else { return Ok(None) };
    let asked = AskedList { all: arguments.all, limit: None };
    Ok(Some(call(&supervisor, asked).await?.runs))
}

fn print_inside(runs: &[WireTreeNode], cx: &Invocation) -> Result<Exit, Failure> {
    if cx.output.wants_json() {
        let with_count = |node: &WireTreeNode| {
            let children = runs.iter().filter(|run| run.parent == Some(node.run_id)).count();
            let mut value = serde_json::to_value(node).expect("a node is plain data");
            value["children"] = children.into();
            value
        };
        cx.output.json(&runs.iter().map(with_count).collect::<Vec<_>>())?;
    } else {
        cx.output.table(&runs.iter().map(listed).collect::<Vec<_>>())?;
    }
    Ok(Exit::Done)
}
