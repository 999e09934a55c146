//! Runs as the door tells of them, for people: what an agent sees of its own tree.

use std::time::Duration;

use offshoot_display::number::{self, count, milliseconds};
use offshoot_display::{
    Branch, Hold, RunLine, Style, back_off, cap, name, neutral, parked, reason_beside, used,
};
use offshoot_door::WireTreeNode;

/// A run with what is below it, one a line: the first with the sum of all, the others with what they used themselves.
pub(crate) fn pictured(top: &WireTreeNode) -> String {
    branch(top, used(&top.subtree_usage, &top.cost)).to_string()
}

/// The headings of [`listed`], as outside of agents.
pub(crate) const LISTED: [&str; 9] =
    ["RUN", "AGENT", "STATUS", "DEPTH", "AGE", "TIME", "SILENT", "LABEL", "REASON"];

/// The columns of a list: run, agent, status, depth, age, time, silence, label, and why it is no success or is held back.
pub(crate) fn listed(node: &WireTreeNode) -> [String; 9] {
    let reasons = why(node).into_iter().chain(held(node));
    let reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
    [
        node.run_id.to_string(),
        node.agent.to_string(),
        node.status.to_string(),
        node.depth.to_string(),
        node.age_ms.map(milliseconds).unwrap_or_default(),
        time(node).map(number::duration).unwrap_or_default(),
        node.silent_ms.map(milliseconds).unwrap_or_default(),
        node.label.as_deref().map(neutral::line).unwrap_or_default().into_owned(),
        reasons.join("; "),
    ]
}

/// The run in a few words: its name and its id.
pub(crate) fn named(node: &WireTreeNode) -> String {
    format!("{} {}", name(&node.agent, node.label.as_deref()), node.run_id)
}

fn branch(node: &WireTreeNode, spent: Option<String>) -> Branch {
    let line = RunLine {
        status: node.status.known(),
        time: time(node),
        silence: node.silent_ms.map(Duration::from_millis),
        used: spent,
        reported: node.reported.as_deref(),
        reason: why(node),
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
    let held = held(node).map(|held| format!("  {held}")).collect::<String>();
    Branch { below, ..leaf(format!("{} (depth {})  {line}{held}", named(node), node.depth)) }
}

/// The reasons why nothing more of the tree starts, beside the topmost run, and why a run waits.
fn held(node: &WireTreeNode) -> impl Iterator<Item = String> {
    let parked = node.parked.iter().map(|it| parked(it.since, it.until, it.attempt, &it.after));
    Hold::of_tree(&node.holds)
        .map(Hold::text)
        .chain(node.at_cap_since.map(cap))
        .chain(parked)
        .chain(node.backs_off.iter().map(back_off))
}

fn leaf(text: String) -> Branch {
    Branch { text, below: Vec::new(), style: Style::Plain }
}

fn why(node: &WireTreeNode) -> Option<String> {
    let status = node.status.known().filter(|status| !status.is_success())?;
    Some(reason_beside(status, &node.reason.as_ref()?.message))
}

/// From its start to its end, or up to now.
fn time(node: &WireTreeNode) -> Option<Duration> {
    node.execution_time_ms.or(node.running_ms).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use offshoot_model::Timestamp;

    use super::*;

    const RUN: &str = "01985e3a-0000-7000-8000-000000000001";

    fn node(label: &str, depth: u32, status: &str, children: Vec<WireTreeNode>) -> WireTreeNode {
        let json = serde_json::json!({
            "runId": RUN, "sessionKey": "agent:main:main",
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
        let mut deep = node("deep\n\u{1b}", 3, "running", Vec::new());
        (deep.reason, deep.execution_time_ms) = (None, None);
        (deep.age_ms, deep.running_ms, deep.silent_ms) = (Some(95_000), Some(90_000), Some(1200));
        let columns = listed(&deep);
        assert_eq!(columns[4..7], ["1 min 35 s", "1 min 30 s", "1.2 s"]);
        let top = node(
            "top",
            1,
            "waiting",
            vec![node("a", 2, "failed", vec![deep]), node("b", 2, "completed", Vec::new())],
        );
        let top = WireTreeNode { deleted: 2, ..top };
        let expected = "\
main: top ID (depth 1)  waiting  40 ms  1,200 tokens  $1.50  exit code 7
├─ main: a ID (depth 2)  failed  40 ms  120 tokens  $0.25  exit code 7
│  └─ main: deep ␛ ID (depth 3)  running  1 min 30 s  silent 1.2 s  120 tokens  $0.25
├─ main: b ID (depth 2)  completed  40 ms  120 tokens  $0.25
└─ … 2 deleted";
        assert_eq!(pictured(&top), expected.replace("ID", RUN));
    }

    #[test]
    fn a_tree_that_is_held_back_says_so() {
        let mut top = node("top", 1, "waiting", vec![node("a", 2, "queued", Vec::new())]);
        let json = serde_json::json!({
            "since": "2026-01-01T12:00:00.25Z", "until": "2026-01-01T12:01:00Z", "agent": "scout",
            "faults": 5, "attempt": 2, "after": "exit code 75",
        });
        top.holds.paused_since = Some(Timestamp::from_micros(1_767_268_800_000_000));
        top.holds.open_breakers = vec![serde_json::from_value(json.clone()).expect("a breaker")];
        top.children[0].reason = None;
        top.children[0].parked = Some(serde_json::from_value(json).expect("a wait"));
        let json = serde_json::json!({"since": "2026-01-01T12:00:00Z", "until": "2026-01-01T12:00:04Z", "why": "429"});
        top.backs_off = Some(serde_json::from_value(json).expect("a wait"));
        top.at_cap_since = top.holds.paused_since;
        let expected = "\
main: top ID (depth 1)  waiting  40 ms  1,200 tokens  $1.50  exit code 7  paused by the operator since 2026-01-01T12:00:00.000Z  held back by the breaker of the agent `scout` since 2026-01-01T12:00:00.250Z: 5 faults in a row, one run is tried from 2026-01-01T12:01:00.000Z on  held since 2026-01-01T12:00:00.000Z: a request to a model waits for room in the budget (`offshoot budget RUN --add`)  held by its service since 2026-01-01T12:00:00.000Z, asked again at 2026-01-01T12:00:04.000Z, after: 429
└─ main: a ID (depth 2)  queued  40 ms  120 tokens  $0.25  parked since 2026-01-01T12:00:00.250Z, attempt 2 from 2026-01-01T12:01:00.000Z on, after: exit code 75";
        assert_eq!(pictured(&top), expected.replace("ID", RUN));
        assert!(
            listed(&top)[8].contains("paused by the operator since 2026"),
            "{:?}",
            listed(&top)
        );
        let again: WireTreeNode =
            serde_json::from_value(serde_json::to_value(&top).expect("plain data"))
                .expect("a node");
        assert_eq!(again, top);
    }
}
