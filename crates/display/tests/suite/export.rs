//! Pages and graphs: what they hold, what they leave out, and that text of agents stays text.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use insta::assert_snapshot;
use offshoot_display::{Excerpt, Export, SaidEnd, Stats, StatsPage};
use offshoot_model::{Event, EventKind, Node, RunId, Stream, Timestamp, Tree};
use offshoot_test_support::{Timed, scenario};

/// Text that ends what it stands in, in HTML, in Mermaid and in DOT, and moves a cursor.
const HOSTILE: &str =
    "</pre></script><script>alert(1)</script>\x1b[2J\u{202e}\"'`&amp;]\\\"%%{init: {}}%%\n-->\u{0}";

fn numbers(events: &[Event]) -> StatsPage {
    let mut stats = Stats::default();
    events.iter().for_each(|event| stats.apply(event));
    stats.page(Timestamp::EPOCH)
}

static NONE_SILENT: LazyLock<HashMap<RunId, Duration>> = LazyLock::new(HashMap::new);

fn export<'a>(tree: &'a Tree, top: &'a Node, stats: &'a StatsPage) -> Export<'a> {
    let said = Export::speakers(tree, top, stats, 2).into_iter().map(|run| SaidEnd {
        run,
        lines: vec![
            (Some(Stream::Stdout), "begins".to_owned()),
            (Some(Stream::Stderr), HOSTILE.to_owned()),
            (None, "[1.0 KiB are missing here: more than is kept]".to_owned()),
        ],
        left_out: 7,
    });
    Export {
        tree,
        top,
        stats,
        task: Some(Excerpt { text: HOSTILE.to_owned(), left_out: 0 }),
        answer: Some(Excerpt { text: "an answer\n".to_owned(), left_out: 2048 }),
        said: said.collect(),
        silences: &NONE_SILENT,
        now: Timestamp::from_micros(1_754_049_660_000_000),
        limit: 1000,
    }
}

/// The events of the first tree, in which all runs have this label.
fn labelled(label: &str) -> Vec<Event> {
    let mut events = scenario::everything();
    let first = events[0].root;
    events.retain(|event| event.root == first);
    for event in &mut events {
        if let EventKind::Admitted(admitted) = &mut event.kind {
            admitted.label = Some(label.into());
        }
    }
    events
}

#[test]
fn the_scenario_in_every_form() {
    let mut events = scenario::everything();
    let first = events[0].root;
    events.retain(|event| event.root == first);
    let (tree, stats) = (Tree::of(&events), numbers(&events));
    let top = tree.roots().next().expect("a root");
    let export = export(&tree, top, &stats);
    let page = export.html();
    let (head, body) = page.split_once("<body>").expect("a body");
    assert!(head.contains("default-src 'none'"), "{head}");
    assert_snapshot!("page", body.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    assert_snapshot!("mermaid", export.mermaid());
    assert_snapshot!("dot", export.dot());
}

#[test]
fn text_of_agents_stays_text() {
    let events = labelled(HOSTILE);
    let (tree, stats) = (Tree::of(&events), numbers(&events));
    let export = export(&tree, tree.roots().next().expect("a root"), &stats);
    let page = export.html();
    let tags = page.split('<').skip(1).map(|rest| {
        rest.trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric()).next()
    });
    let mut tags: Vec<&str> = tags.flatten().collect();
    tags.sort_unstable();
    tags.dedup();
    let ours = [
        "", "a", "body", "br", "caption", "code", "dd", "details", "div", "dl", "dt", "footer",
        "h1", "h2", "head", "html", "i", "li", "meta", "ol", "p", "pre", "span", "style",
        "summary", "table", "td", "th", "title", "tr", "ul",
    ];
    let foreign: Vec<_> = tags.iter().filter(|tag| !ours.contains(tag)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert_eq!(page.matches("<!").count(), 1, "no comment begins");
    for text in [&page, &export.mermaid(), &export.dot()] {
        assert!(!text.chars().any(|char| char.is_control() && char != '\n'), "{text}");
        assert!(!text.contains('\u{202e}'));
    }
    for line in export.mermaid().lines().filter(|line| line.contains('[')) {
        let (_, label) = line.split_once("[\"").expect("a label begins");
        let (label, _) = label.split_once("\"]").expect("a label ends");
        let plain = label.replace("<br/>", "");
        assert!(!plain.contains(['"', '<', '>', '`', '%', '{', '[', '(', '&']), "{line}");
    }
    for line in export.dot().lines().filter(|line| line.contains("[label")) {
        let unescaped = line.replace("\\\\", "").replace("\\\"", "");
        let (_, rest) = unescaped.split_once("[label=\"").expect("a label begins");
        let (_, rest) = rest.split_once('"').expect("a label ends");
        assert!(rest == "]" || rest.starts_with(" fillcolor=\"#"), "{line}");
    }
}

#[test]
fn causes_that_all_differ_are_counted_too() {
    let mut events = scenario::many(20_000);
    for (number, event) in events.iter_mut().enumerate() {
        if let EventKind::Ended(ending) = &mut event.kind
            && ending.diagnostics.is_some()
        {
            let word: String =
                number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
            ending.diagnostics = Some(format!("no table {word}"));
        }
    }
    let (tree, stats) = (Tree::of(&events), numbers(&events));
    assert!(stats.causes.len() > 100, "{}", stats.causes.len());
    let page = export(&tree, tree.roots().next().expect("a root"), &stats).html();
    assert_eq!(page.matches("e.g. ").count(), 50);
    let left = stats.causes.len() - 50;
    assert!(page.contains(&format!("… {left} more causes, of {left} runs")));
}

#[test]
fn a_large_tree_is_counted_where_it_has_no_row() {
    let events = scenario::many(100_000);
    let (tree, stats) = (Tree::of(&events), numbers(&events));
    let top = tree.roots().next().expect("a root");
    let export = Export { limit: 50, ..export(&tree, top, &stats) };
    let page = export.html();
    assert!(page.len() < 100_000, "{} bytes", page.len());
    let runs = tree.subtrees().of(top).runs;
    assert!(runs > 10_000, "{runs}");
    assert_eq!(page.matches("<li id=").count(), 51);
    assert!(page.contains(" have a row: those with something to tell"), "it says so");
    assert!(page.contains("<div class=\"faint\">… "), "the others are counted");
    assert_eq!(export.mermaid().matches(":::").count(), 51);
    assert_eq!(
        export.dot().matches(" -> ").count(),
        50 + export.dot().matches("label=\"… ").count()
    );
}

/// The page is made an hour after the supervisor was killed.
#[test]
fn the_times_of_a_tree_without_a_supervisor_end_with_its_last_event() {
    let (mut timed, root) = Timed::tree(4, None);
    let child = timed.child(0, root, "a");
    timed.start(1000, child);
    timed.child(1000, root, "later");
    timed.say(4000, root, EventKind::Alive);
    let mut tree = Tree::of(&timed.events);
    tree.lose(timed.events[0].root);
    let stats = numbers(&timed.events);
    let top = tree.roots().next().expect("a root");
    let page = Export { now: Timestamp::from_micros(3_600_000_000), ..export(&tree, top, &stats) };
    let html = page.html();
    assert!(html.contains("<i class=\"lost\" style=\"left:25.00%;width:75.00%\">"), "{html}");
}
