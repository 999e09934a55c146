//! Needs of a run, in words.

use offshoot_model::{Need, Node, RunStatus, Tree};

use crate::{neutral, status_words};

/// As many needs are named.
const NAMED: usize = 5;

/// Returns what a run needs, in a few words; what it still waits for, where it stands in line for that. None where it needs
/// nothing.
pub fn needs(tree: &Tree, node: &Node) -> Option<String> {
    if node.needs.is_empty() {
        return None;
    }
    let is_open = |need: &&Need| {
        let needed = need.run.and_then(|run| tree.get(run));
        needed.is_some_and(|needed| !needed.status.is_terminal())
    };
    let is_queued = node.status == RunStatus::Queued;
    let open: Vec<&Need> = node.needs.iter().filter(|need| is_queued && is_open(need)).collect();
    Some(match open.is_empty() {
        true => format!("needs {}", names(&node.needs.iter().collect::<Vec<_>>())),
        false => format!("waits for {}", names(&open)),
    })
}

/// Returns the runs that a run needs, a line each: the name, the status and the id.
pub(crate) fn lines(tree: &Tree, needs: &[Need]) -> String {
    let line = |need: &Need| {
        let name = neutral::line(&need.name).into_owned();
        match need.run {
            None => format!("{name}  refused"),
            Some(run) => {
                let status = tree.get(run).map(|node| status_words(node.status));
                format!("{name}  {}  {run}", status.unwrap_or_default())
            }
        }
    };
    let mut lines: Vec<String> = needs.iter().take(NAMED).map(line).collect();
    if let more @ 1.. = needs.len().saturating_sub(NAMED) {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

fn names(needs: &[&Need]) -> String {
    let name = |need: &&Need| neutral::line(&need.name).into_owned();
    let named: Vec<String> = needs.iter().take(NAMED).map(name).collect();
    match needs.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
