//! Runs as the door tells of them, for people: what an agent sees of its own tree.

use offshoot_display::neutral;
use offshoot_display::number::{count, duration};
use offshoot_display::used;
use offshoot_door::{RunNode, RunState};
use std::time::Duration;

/// A run with what is below it, one a line: the first with the sum of all, the others with what they used themselves.
pub(crate) fn pictured(top: &RunNode) -> String {
    let mut lines = Vec::new();
    let all = used(&top.subtree_usage, &top.cost);
    draw(top, all, "", "", &mut lines);
    lines.join("\n")
}

/// The columns of a list: run, agent, status, depth, time, label.
pub(crate) fn listed(node: &RunNode) -> [String; 6] {
    [
        node.run_id.to_string(),
        node.agent.to_string(),
        word(node.status).to_owned(),
        node.depth.to_string(),
        time(node).unwrap_or_default(),
        node.label.as_deref().map(plain).unwrap_or_default(),
    ]
}

fn draw(node: &RunNode, spent: Option<String>, before: &str, below: &str, lines: &mut Vec<String>) {
    let name = node.label.as_deref().map_or_else(|| node.agent.to_string(), plain);
    let mut line = format!("{before}{name} (depth {})  {}", node.depth, word(node.status));
    let reason = node.reason.as_ref().filter(|_| !node.status.is_success());
    let reason = reason.map(|reason| plain(&reason.message));
    let left = node.not_removed.as_deref().map(|why| format!("not removed: {}", plain(why)));
    for part in [time(node), spent, reason, left].into_iter().flatten() {
        line.push_str("  ");
        line.push_str(&part);
    }
    lines.push(line);
    let rows = node.children.len() + usize::from(node.deleted > 0);
    let last = rows.saturating_sub(1);
    for (place, child) in node.children.iter().enumerate() {
        let (branch, rest) = if place == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        // A supervisor of an earlier version does not tell what a run alone cost.
        let own = used(&child.own_usage, &child.own_cost.unwrap_or(child.cost));
        draw(child, own, &format!("{below}{branch}"), &format!("{below}{rest}"), lines);
    }
    if node.deleted > 0 {
        lines.push(format!("{below}└─ … {} deleted", count(node.deleted.into())));
    }
}

fn time(node: &RunNode) -> Option<String> {
    node.execution_time_ms.map(|time| duration(Duration::from_millis(time)))
}

/// What agents have written stays on its line.
fn plain(text: &str) -> String {
    neutral::line(text).into_owned()
}

fn word(status: RunState) -> &'static str {
    match status {
        RunState::Idle => "idle",
        RunState::Queued => "queued",
        RunState::Starting => "starting",
        RunState::Running => "running",
        RunState::Waiting => "waiting",
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::TimedOut => "timed out",
        RunState::Cancelled => "cancelled",
        RunState::Lost => "lost",
        RunState::ClientGone => "client gone",
        RunState::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(label: &str, depth: u32, status: &str, children: Vec<RunNode>) -> RunNode {
        let json = serde_json::json!({
            "runId": "01985e3a-0000-7000-8000-000000000001", "sessionKey": "agent:main:main",
            "agent": "main", "label": label, "status": status, "depth": depth,
            "reason": { "code": "exit_code", "message": "exit code 7" }, "executionTimeMs": 40,
            "ownUsage": { "input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0 },
            "ownCost": { "knownUsd": 0.25, "estimatedUsd": 0.0, "unknownRuns": 0 },
            "subtreeUsage": { "input": 1000, "output": 200, "cacheRead": 0, "cacheWrite": 0 },
            "cost": { "knownUsd": 1.5, "estimatedUsd": 0.0, "unknownRuns": 0 },
        });
        RunNode { children, ..serde_json::from_value(json).expect("a node") }
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
        let top = RunNode { deleted: 2, ..top };
        let expected = "\
top (depth 1)  waiting  40 ms  1,200 tokens  $1.50  exit code 7
├─ a (depth 2)  failed  40 ms  120 tokens  $0.25  exit code 7
│  └─ deep ␛ (depth 3)  running  40 ms  120 tokens  $0.25  exit code 7
├─ b (depth 2)  completed  40 ms  120 tokens  $0.25
└─ … 2 deleted";
        assert_eq!(pictured(&top), expected);
    }
}
