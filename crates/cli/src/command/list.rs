//! `offshoot list`.

use offshoot_model::{AgentId, Cost, Node, RunId, RunStatus, SessionKey, Timestamp, Tree, Usage};
use serde::Serialize;

use crate::arguments::ListArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::wording;

/// One run, in a line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    run_id: RunId,
    session_key: SessionKey,
    agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<std::sync::Arc<str>>,
    status: RunStatus,
    depth: u32,
    parent: Option<RunId>,
    /// Directly below.
    children: usize,
    #[serde(serialize_with = "wording::rfc3339")]
    admitted_at: Timestamp,
    execution_time_ms: Option<u64>,
    subtree_usage: Usage,
    cost: Cost,
}

/// Lists runs, the oldest first.
pub(crate) fn run(arguments: &ListArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let mut listed = Vec::new();
    if let Some(record) = Record::open(cx)? {
        for root in record.roots()? {
            let tree = record.tree(root)?;
            if arguments.all {
                listed.extend(tree.nodes().map(|node| list(&tree, node)));
            } else {
                listed.extend(tree.roots().map(|node| list(&tree, node)));
            }
        }
    }
    if cx.output.wants_json() {
        cx.output.json(&listed)?;
    } else if listed.is_empty() {
        cx.output.note("nothing has run here yet");
    } else {
        cx.output.table(&listed.iter().map(row).collect::<Vec<_>>())?;
    }
    Ok(Exit::Done)
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

fn row(run: &Listed) -> [String; 6] {
    let name = run.label.as_deref().unwrap_or(run.agent.as_str());
    let children = match run.children {
        0 => String::new(),
        1 => "1 child".to_owned(),
        many => format!("{many} children"),
    };
    let time = run.execution_time_ms.map(wording::milliseconds).unwrap_or_default();
    [
        run.run_id.to_string(),
        run.status.to_string(),
        wording::second(run.admitted_at),
        time,
        children,
        name.to_owned(),
    ]
}
