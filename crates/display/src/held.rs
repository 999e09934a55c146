//! The reasons why a tree or a run is held back, in words.

use offshoot_model::{Node, OpenBreaker, Timestamp, Tree};

use crate::{neutral, number};

/// Returns why nothing more of a tree starts, beside its root, and why a run in line does not; one text for each reason.
pub fn held(tree: &Tree, node: &Node) -> Vec<String> {
    let parked = node.parked.as_ref().filter(|_| !node.status.is_terminal());
    let parked =
        parked.map(|it| self::parked(it.since, it.until, it.attempt, &it.after.to_string()));
    if node.parent.is_some() {
        return parked.into_iter().chain(tree.held_back_by(node).map(breaker)).collect();
    }
    let paused = tree.paused(node.root).map(paused);
    let open = tree.open_breakers(node.root).map(breaker);
    paused.into_iter().chain(parked).chain(open).collect()
}

/// Says that a run waits for another attempt, after the reason of the one before.
pub fn parked(since: Timestamp, until: Timestamp, attempt: u32, after: &str) -> String {
    format!(
        "parked since {}, attempt {attempt} from {} on, after: {}",
        number::moment(since),
        number::moment(until),
        neutral::line(after)
    )
}

/// Says that a tree is paused.
pub fn paused(since: Timestamp) -> String {
    format!("paused by the operator since {}", number::moment(since))
}

/// Says that runs of an agent are held back.
pub fn breaker(open: &OpenBreaker) -> String {
    format!(
        "held back by the breaker of the agent `{}` since {}: {}, one run is tried from {} on",
        open.agent,
        number::moment(open.since),
        number::faults(open.faults),
        number::moment(open.until)
    )
}
