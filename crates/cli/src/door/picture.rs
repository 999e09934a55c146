//! Runs as the door tells of them, for people: what an agent sees of its own tree.

use std::time::Duration;

use offshoot_display::number::{count, milliseconds};
use offshoot_display::{Branch, RunLine, Style, neutral, reason_beside, used};
use offshoot_door::WireTreeNode;

/// A run with what is below it, one a line: the first with the sum of all, the others with what they used themselves.
pub(crate) fn pictured(top: &WireTreeNode) -> String {
    branch(top, used(&top.subtree_usage, &top.cost)).to_string()
}

/// The columns of a list: run, agent, status, depth, time, label.
pub(crate) fn listed(node: &WireTreeNode) -> [String; 6] {
    [
        node.run_id.to_string(),
        node.agent.to_string(),
        node.status.to_string(),
        node.depth.to_string(),
        time(node).unwrap_or_default(),
        node.label.as_deref().map(plain).unwrap_or_default(),
    ]
}

fn branch(node: &WireTreeNode, spent: Option<String>) -> Branch {
    let name = node.label.as_deref().map_or_else(|| node.agent.to_string(), plain);
    let status = node.status.known();
    let reason = node.reason.as_ref();
    let line = RunLine {
        status,
        time: node.execution_time_ms.map(Duration::from_millis),
        used: spent,
        reason: status.zip(reason).map(|(status, why)| reason_beside(status, &why.message)),
        not_removed: node.not_removed.as_deref(),
        ..RunLine::default()
    };
    let mut below: Vec<Branch> = node
        .children
        .iter()
        .map(|child| {
            // A supervisor of an earlier version does not tell what a run alone cost.
            branch(child, used(&child.own_usage, &child.own_cost.unwrap_or(child.cost)))
        })
        .collect();
    if node.deleted > 0 {
        below.push(leaf(format!("… {} deleted", count(node.deleted.into()))));
    }
    Branch { below, ..leaf(format!("{name} (depth {})  {line}", node.depth)) }
}

fn leaf(text: String) -> Branch {
    Branch { text, below: Vec::new(), style: Style::Plain }
}

fn time(node: &WireTreeNode) -> Option<String> {
    node.execution_time_ms.map(milliseconds)
}

/// Makes text of agents fit on one line.
fn plain(text: &str) -> String {
    neutral::line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(label: &str, depth: u32, status: &str, children: Vec<WireTreeNode>) -> WireTreeNode {
        let json = serde_json::json!({
            "runId": "01985e3a-0000-7000-8000-000000000001", "sessionKey": "agent:main:main",
            "agent": "main", "label": label, "status": status, "depth": depth,
            "reason": { "code": "exit_code", "message": "exit code 7" }, "executionTimeMs": 40,
            "ownUsage": { "input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0 },
            "ownCost": { "knownUsd": 0.25, "estimatedUsd": 0.0, "unknownRuns": 0 },
            "subtreeUsage": { "input": 1000, "output": 200, "cacheRead": 0, "cacheWrite": 0 },
            "cost": { "knownUsd": 1.5, "estimatedUsd": 0.0, "unknownRuns": 0 },
        });
        WireTreeNode { children, ..serde_json::from_value(json).expect("a node") }
    }

    #[test]
    fn a_tree_is_drawn_from_the_run_that_asks() {
        let deep = node("deep\n\u{1b}", 3, "running", Vec::new());
        let top = node(
            "top",
            1,
            "waiting",
            vec![node("a", 2, "failed", vec![deep]), node("b", 2, "completed", Vec::new())],
        );
        let top = WireTreeNode { deleted: 2, ..top };
        let expected = "\
top (depth 1)  waiting  40 ms  1,200 tokens  $1.50  exit code 7
├─ a (depth 2)  failed  40 ms  120 tokens  $0.25  exit code 7
│  └─ deep ␛ (depth 3)  running  40 ms  120 tokens  $0.25  exit code 7
├─ b (depth 2)  completed  40 ms  120 tokens  $0.25
└─ … 2 deleted";
        assert_eq!(pictured(&top), expected);
    }
}
