//! The lines above the table: what is shown, how many runs there are of each status, what they have used.

use offshoot_display::{Hold, neutral, status_words};
use offshoot_model::{EventKind, Node, RunStatus, number};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{put, put_right, width};
use crate::budget;
use crate::detail::bar;
use crate::filter::Filter;
use crate::rows;
use crate::screen::{Screen, name};
use crate::theme::Theme;

/// The statuses that are counted, the most important first.
const COUNTED: [RunStatus; 10] = [
    RunStatus::Failed,
    RunStatus::TimedOut,
    RunStatus::Lost,
    RunStatus::Cancelled,
    RunStatus::ClientGone,
    RunStatus::Starting,
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::Queued,
    RunStatus::Completed,
];

/// Draws them, and returns how many lines they took.
pub(super) fn draw(screen: &Screen, theme: Theme, area: Rect, buffer: &mut Buffer) -> u16 {
    title(screen, theme, area, buffer);
    counts(screen, theme, area, buffer);
    spent(screen, theme, area, buffer);
    match &screen.replay {
        None => 3,
        Some(_) => {
            slider(screen, theme, area, buffer);
            4
        }
    }
}

fn title(screen: &Screen, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Filter { states, text } = &screen.filter;
    let mut beside = screen.order.words().to_owned();
    if !screen.filter.is_empty() {
        beside.push_str(&format!(", {} runs", states.words()));
        if !text.is_empty() {
            beside.push_str(&format!(" with \"{text}\""));
        }
    }
    if !screen.is_read {
        beside.push_str(", reading the record");
    }
    let end = area.right().saturating_sub(width(&beside) + 2);
    let room = Rect { width: end.saturating_sub(area.x), ..area };
    put_right(buffer, area, 0, area.right(), &beside, theme.faint());
    let mut column = put(buffer, room, 0, area.x, "offshoot watch  ", theme.faint());
    let tops = rows::tops(screen.tree(), screen.top);
    match tops.as_slice() {
        [] => drop(put(buffer, room, 0, column, "nothing runs", theme.strong())),
        [top] => {
            column = put(buffer, room, 0, column, &name(top), theme.strong()) + 2;
            let (status, style) = state(screen, theme, top);
            column = put(buffer, room, 0, column, &status, style) + 2;
            let age = top.ended_at.unwrap_or(screen.moment()).since(top.admitted_at);
            put(buffer, room, 0, column, &number::duration(age), Style::new());
        }
        tops => {
            let open = tops.iter().filter(|top| !top.status.is_terminal());
            let words: Vec<&str> =
                open.map(|top| screen.state(top).map_or("running", Hold::word)).collect();
            let mut text = format!("{} trees", tops.len());
            for word in ["running", "paused", "parked", "held"] {
                let count = words.iter().filter(|it| **it == word).count();
                if count > 0 || word == "running" {
                    text.push_str(&format!(", {count} {word}"));
                }
            }
            put(buffer, room, 0, column, &text, theme.strong());
        }
    }
}

fn counts(screen: &Screen, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut column = area.x;
    for status in COUNTED {
        let Some(count) = screen.counts.by_status.get(&status) else { continue };
        let text = format!("{} {}", number::count(*count), status_words(status));
        column = put(buffer, area, 1, column, &text, theme.status(status)) + 2;
    }
}

/// Draws the numbers of the selected tree, and in the room that they leave what holds it back.
fn spent(screen: &Screen, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let tops = rows::tops(screen.tree(), screen.top);
    // Where all are one tree, that one.
    let first = || screen.tree().get(tops.first()?.root.run());
    let Some(root) = screen.root().or_else(first) else { return };
    let top = if let [top] = tops.as_slice() { *top } else { root };
    let numbers = numbers(screen, theme, root, top);
    let taken: u16 = numbers.iter().map(|(text, _)| width(text) + 2).sum();
    let held = held(screen, root, area.width.saturating_sub(taken));
    let mut column = area.x;
    for (text, style) in held.map(|text| (text, theme.alarm())).into_iter().chain(numbers) {
        column = put(buffer, area, 2, column, &text, style) + 2;
    }
}

/// The slots of a tree, and what the run at the top and all below it have used.
fn numbers(screen: &Screen, theme: Theme, root: &Node, top: &Node) -> Vec<(String, Style)> {
    let mut numbers = Vec::new();
    if !root.status.is_terminal() {
        let busy = screen.counts.slots.get(&root.root).copied().unwrap_or(0);
        let text = format!("slots {} of {}", number::count(busy), slots(screen, root));
        numbers.push((text, Style::new()));
    }
    let (usage, cost) = screen.tree().subtree(top);
    let used = offshoot_display::used(&usage, &cost).filter(|_| screen.counts.has_usage);
    numbers.extend(used.map(|used| (used, Style::new())));
    let granted = budget::granted(screen.history.of(top.run, screen.until()));
    for budget in budget::used(granted, &usage, &cost) {
        let style = if budget.part >= 0.8 { theme.alarm() } else { Style::new() };
        numbers.push((format!("budget {} of {}", bar(budget.part, 10), budget.of), style));
    }
    for window in screen.tree().windows(root.root, screen.moment()) {
        let style = if window.used() >= 0.8 { theme.alarm() } else { Style::new() };
        let name = neutral::line(&window.window);
        numbers.push((format!("{name} {}", bar(window.used(), 10)), style));
    }
    numbers
}

/// Says what holds a tree back, as long as there is room for it: with its moments, in few words, or in one.
fn held(screen: &Screen, root: &Node, room: u16) -> Option<String> {
    let holds = Hold::of(screen.tree(), root);
    let first = holds.first()?.word().to_uppercase();
    let all = |text: &dyn Fn(&Hold<'_>) -> String| -> String {
        holds.iter().map(text).collect::<Vec<_>>().join("; ")
    };
    let loud = |text: String| match text.split_once(' ') {
        Some((_, rest)) => format!("{first} {rest}"),
        None => first.clone(),
    };
    let (long, brief) = (all(&|hold| hold.text()), all(&|hold| hold.brief(screen.moment())));
    let texts = [loud(long), loud(brief), first.clone()];
    texts.into_iter().find(|text| width(text) <= room)
}

/// The number of slots of a tree, as its admission says.
fn slots(screen: &Screen, root: &Node) -> String {
    let mut events = screen.history.of(root.run, screen.until());
    let rules = events.find_map(|event| match &event.kind {
        EventKind::Admitted(admitted) => admitted.rules.clone(),
        _ => None,
    });
    rules.map_or_else(|| "?".to_owned(), |rules| number::count(rules.max_concurrent.into()))
}

/// The time of a replay, and the place in it.
fn slider(screen: &Screen, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(replay) = &screen.replay else { return };
    let (gone, whole) = (replay.at.since(replay.first()), replay.length());
    let state = if replay.is_playing { "▶" } else { "‖" };
    let before = format!("replay {}  ", number::moment(replay.at));
    let after = format!(
        "  {} of {}  {state} {}×",
        number::duration(gone),
        number::duration(whole),
        number::count(replay.speed.into())
    );
    let column = put(buffer, area, 3, area.x, &before, theme.alarm());
    let room = area.right().saturating_sub(column + width(&after)).max(1);
    let part = match whole.as_micros() {
        0 => 1.0,
        whole => gone.as_micros() as f64 / whole as f64,
    };
    let place = (f64::from(room - 1) * part) as usize;
    let line = format!("{}●{}", "━".repeat(place), "─".repeat(usize::from(room - 1) - place));
    let column = put(buffer, area, 3, column, &line, theme.alarm());
    put(buffer, area, 3, column, &after, Style::new());
}

/// The word for the state of a run, and its style.
pub(super) fn state(screen: &Screen, theme: Theme, node: &Node) -> (String, Style) {
    match screen.state(node) {
        Some(hold) => (hold.word().to_owned(), theme.warning()),
        None => (status_words(node.status), theme.status(node.status)),
    }
}
