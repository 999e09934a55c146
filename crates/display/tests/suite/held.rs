//! Runs of a tree that is held back, in each view.

use std::collections::HashMap;
use std::time::Duration;

use offshoot_display::{Export, List, Show, Stats, Style, TreeText};
use offshoot_model::{Event, EventKind, Node, RunStatus, Timestamp, Tree};
use offshoot_test_support::scenario;

/// A map that is paused, with a breaker that is open.
fn a_held_map() -> Vec<Event> {
    let mut events = scenario::many(24);
    let Event { root, seq, at, .. } = events.last().expect("there are events").clone();
    let agent = offshoot_model::AgentId::main();
    let kinds = [EventKind::Paused, EventKind::BreakerOpened { agent, faults: 5, wait_ms: 60_000 }];
    for (more, kind) in (1..).zip(kinds) {
        let at = at.plus(Duration::from_millis(more));
        events.push(Event { root, seq: seq + more, at, run: root.run(), kind });
    }
    events
}

fn queued(tree: &Tree) -> &Node {
    tree.nodes().find(|node| node.status == RunStatus::Queued).expect("one waits")
}

const PAUSED: &str = "paused by the operator since 2025-08-01T12:00:0";
const HELD: &str = "held back by the breaker of the agent `main` since 2025-08-01T12:00:0";

#[test]
fn a_run_in_line_says_that_its_tree_is_paused() {
    let events = a_held_map();
    let tree = Tree::of(&events);
    let (node, subtrees, silences) = (queued(&tree), tree.subtrees(), HashMap::new());
    let mut list = List::new(Style::Plain, &silences);
    list.add(&tree, &subtrees, node, "0198", events.last().expect("events").at);
    let mut show = Show::new(node.run, Style::Plain);
    events.iter().for_each(|event| show.apply(event));
    for text in [list.to_string(), show.to_string()] {
        assert!(text.contains(PAUSED) && text.contains(HELD), "{text}");
    }
}

/// In a picture of the whole tree the root says it for all.
#[test]
fn a_tree_says_once_that_it_is_paused() {
    let tree = Tree::of(&a_held_map());
    let text = TreeText::new(&tree).to_string();
    assert_eq!(text.matches(PAUSED).count(), 1, "{text}");
    let root = tree.roots().next().expect("a root");
    assert!(text.lines().next().is_some_and(|line| line.contains(PAUSED)), "{text}");
    // A part of it says so at its top.
    let running = tree.children(root).find(|node| node.status == RunStatus::Running);
    for top in [queued(&tree), running.expect("one runs")] {
        let text = TreeText::of(&tree, top).to_string();
        assert_eq!(text.matches(PAUSED).count(), 1, "{text}");
    }
}

#[test]
fn numbers_say_which_trees_are_held_back() {
    let mut stats = Stats::default();
    a_held_map().iter().for_each(|event| stats.apply(event));
    let page = stats.clone().page(Timestamp::EPOCH);
    let text = page.to_string();
    assert!(text.contains(&format!("\nheld         main: count words: {PAUSED}")), "{text}");
    assert!(text.contains(&format!("\n             main: count words: {HELD}")), "{text}");
    let json = serde_json::to_value(&page).expect("plain data");
    assert_eq!(json["held"][0]["runId"], scenario::run(0).to_string());
    assert!(json["held"][0]["pausedSince"].as_str().is_some_and(|at| at.starts_with("2025-08-01")));
    assert_eq!(json["held"][0]["openBreakers"][0]["agent"], "main");
    // No supervisor holds it: nothing of it goes on anyway.
    stats.lose(a_held_map()[0].root);
    assert!(!stats.page(Timestamp::EPOCH).to_string().contains("held"));
}

#[test]
fn graphs_say_what_is_held_back() {
    let events = a_held_map();
    let tree = Tree::of(&events);
    let mut stats = Stats::default();
    events.iter().for_each(|event| stats.apply(event));
    let stats = stats.page(Timestamp::EPOCH);
    let runs = tree.nodes().find(|node| node.started_at.is_some() && !node.runs_nothing());
    let run = runs.expect("one has started").run;
    let silences = HashMap::from([(run, Duration::from_millis(61_000))]);
    let export = Export {
        tree: &tree,
        top: tree.roots().next().expect("a root"),
        stats: &stats,
        task: None,
        answer: None,
        said: Vec::new(),
        silences: &silences,
        now: events.last().expect("events").at,
        limit: 100,
    };
    let dot = export.dot();
    assert_eq!(dot.matches(PAUSED).count(), 1, "{dot}");
    let queued = tree.nodes().filter(|node| node.status == RunStatus::Queued).count();
    assert_eq!(dot.matches(HELD).count(), 1 + queued, "the root, and each run in line: {dot}");
    let mermaid = export.mermaid();
    assert_eq!(mermaid.matches("paused by the operator since 2025-08-01T12:00:0").count(), 1);
    assert_eq!(mermaid.matches("held back by the breaker").count(), 1 + queued, "{mermaid}");
    for text in [&dot, &mermaid, &export.html()] {
        assert_eq!(text.matches("silent 1 min 1 s").count(), 1, "{text}");
    }
    let page = export.html();
    assert_eq!(page.matches(PAUSED).count(), 1, "{page}");
    assert_eq!(page.matches("held back by the breaker").count(), 1 + queued, "{page}");
}
