//! The name of a run on a screen.

use std::collections::HashMap;

use offshoot_model::{AgentId, Node, RunId};

use crate::neutral;

/// `agent`, or `agent: label` where it has a label.
pub fn name(agent: &AgentId, label: Option<&str>) -> String {
    match label.map(neutral::line) {
        Some(label) if !label.is_empty() => format!("{agent}: {label}"),
        _ => agent.to_string(),
    }
}

pub(crate) fn of(node: &Node) -> String {
    name(&node.agent, node.label.as_deref())
}

/// The fewest characters of an id: its moment, to the millisecond. Runs of a later moment begin otherwise, so a beginning that was
/// printed stays unique.
const SHORTEST: usize = 13;

/// The shortest beginning of each id that is no beginning of another.
pub fn beginnings(runs: impl Iterator<Item = RunId>) -> HashMap<RunId, String> {
    let mut ids: Vec<(String, RunId)> = runs.map(|run| (run.to_string(), run)).collect();
    ids.sort_unstable();
    ids.dedup();
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let mut beginnings = HashMap::with_capacity(ids.len());
    for (at, (id, run)) in ids.iter().enumerate() {
        let before = at.checked_sub(1).map_or(0, |before| shared(&ids[before].0, id));
        let after = ids.get(at + 1).map_or(0, |(after, _)| shared(id, after));
        // A hyphen at the end looks like a slip.
        let mut length = (before.max(after) + 1).max(SHORTEST);
        if id.as_bytes().get(length - 1) == Some(&b'-') {
            length += 1;
        }
        beginnings.insert(*run, id[..length.min(id.len())].to_owned());
    }
    beginnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_apart() {
        let check = |ids: &[&str], expected: &[&str]| {
            let runs: Vec<RunId> = ids.iter().map(|id| id.parse().expect("a UUID")).collect();
            let beginnings = beginnings(runs.iter().copied());
            let found: Vec<&str> = runs.iter().map(|run| beginnings[run].as_str()).collect();
            assert_eq!(found, expected);
        };
        check(&["01985e3a-0000-7000-8000-000000000000"], &["01985e3a-0000"]);
        check(
            &[
                "01985e3b-0000-7000-8000-000000000000",
                "01985e3a-0000-7000-8000-000000000000",
                "01985e3a-1000-7000-8000-000000000000",
            ],
            &["01985e3b-0000", "01985e3a-0000", "01985e3a-1000"],
        );
    }
}
