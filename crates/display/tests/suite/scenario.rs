//! The scenario in which everything happens, in every picture there is.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use offshoot_display::{List, Progress, Show, Style, TreeText, beginnings, json, line};
use offshoot_model::{Event, EventClass, Timestamp, Tree};
use offshoot_test_support::scenario;

/// A stream that stays readable after it was given away.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no holder panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("no holder panics").clone();
        String::from_utf8(bytes).expect("text")
    }
}

fn lines(events: &[Event], style: Style) -> String {
    events.iter().map(|event| format!("{}\n", line(event).style(style))).collect()
}

fn progress(events: &[Event], style: Style) -> String {
    let out = Shared::default();
    let mut progress = Progress::in_lines(Box::new(out.clone()), None, style);
    events.iter().for_each(|event| progress.apply(event));
    let tally = progress.finish();
    format!("{}{tally}", out.text())
}

fn roots(tree: &Tree) -> String {
    let roots: Vec<_> = tree.roots().map(|root| tree.view(root)).collect();
    serde_json::to_string_pretty(&roots).expect("plain data does not serialise")
        + "
"
}

fn list(tree: &Tree, style: Style) -> String {
    let (subtrees, ids) = (tree.subtrees(), beginnings(tree.nodes().map(|node| node.run)));
    let silences = HashMap::new();
    let mut list = List::new(style, &silences);
    for node in tree.nodes() {
        let a_minute = Timestamp::EPOCH.plus(Duration::from_secs(60));
        list.add(tree, &subtrees, node, &ids[&node.run], a_minute);
    }
    list.to_string()
}

fn show(events: &[Event], run: u8, style: Style) -> String {
    let mut show = Show::new(scenario::run(run), style);
    events.iter().for_each(|event| show.apply(event));
    show.to_string()
}

fn pictures(events: &[Event], style: Style) -> Vec<(&'static str, String)> {
    let tree = Tree::of(events);
    let shown: Vec<String> = (0..tree.nodes().count())
        .map(|run| show(events, u8::try_from(run).expect("a small scenario"), style))
        .collect();
    vec![
        ("tree", TreeText { style, ..TreeText::new(&tree) }.to_string()),
        ("list", list(&tree, style)),
        ("show", shown.join("\n\n")),
        ("json", roots(&tree)),
    ]
}

#[test]
fn everything() {
    let events = scenario::everything();
    for (name, picture) in pictures(&events, Style::Plain) {
        assert_snapshot!(name, picture);
    }
    assert_snapshot!("lines", lines(&events, Style::Plain));
    assert_snapshot!("progress", progress(&events, Style::Plain));
}

/// Live, event by event and with all that is thinned later, against a replay of what was kept, read back from JSON.
#[test]
fn same_events_same_picture() {
    let events = scenario::everything();
    let mut live = Tree::new();
    for end in 0..=events.len() {
        if let Some(event) = end.checked_sub(1).map(|last| &events[last]) {
            live.apply(event);
        }
        let record: Vec<Event> = events[..end]
            .iter()
            .filter(|event| event.kind.class() == EventClass::Kept)
            .map(|event| {
                let mut line = Vec::new();
                json::write_event(event, json::Format::V1, &mut line)
                    .expect("writing to memory failed");
                serde_json::from_slice(&line).expect("what was written")
            })
            .collect();
        let replayed = Tree::of(&record);
        assert_eq!(TreeText::new(&live).to_string(), TreeText::new(&replayed).to_string());
        assert_eq!(roots(&live), roots(&replayed));
        assert_eq!(list(&live, Style::Plain), list(&replayed, Style::Plain));
        for run in 0..u8::try_from(live.nodes().count()).expect("a small scenario") {
            assert_eq!(show(&events[..end], run, Style::Plain), show(&record, run, Style::Plain));
        }
        assert_eq!(
            progress(&events[..end], Style::Plain),
            progress(&record, Style::Plain),
            "after {end} events"
        );
    }
}

#[test]
fn nothing_an_agent_wrote_reaches_the_terminal_raw() {
    let events = scenario::everything();
    let mut all = pictures(&events, Style::Plain);
    all.push(("lines", lines(&events, Style::Plain)));
    all.push(("progress", progress(&events, Style::Plain)));
    for (name, picture) in all {
        let harmful = |char: char| (char.is_control() && char != '\n') || char == '\u{202e}';
        // JSON escapes what is below a space by itself, and is for programs.
        if name != "json" {
            assert_eq!(picture.chars().find(|char| harmful(*char)), None, "{name}");
        }
    }
}

#[test]
fn colours_add_nothing_but_colours() {
    let events = scenario::everything();
    let plain = pictures(&events, Style::Plain);
    for ((name, coloured), (_, plain)) in pictures(&events, Style::Colour).into_iter().zip(plain) {
        assert_eq!(name != "json", coloured.contains("\u{1b}["), "{name}");
        assert_eq!(without_colours(&coloured), plain, "{name}");
    }
    assert_eq!(without_colours(&lines(&events, Style::Colour)), lines(&events, Style::Plain));
    assert_eq!(without_colours(&progress(&events, Style::Colour)), progress(&events, Style::Plain));
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let (_, rest) = part.split_once('m').expect("only colours are written");
        plain + rest
    })
}
