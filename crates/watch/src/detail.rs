//! The selected run: its output, itself, its events.

use offshoot_display::{self as display, Story, Style as Painting, changed, neutral, used};
use offshoot_model::{Event, EventKind, Node, RunStatus, Stream, Tree, number};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::sync::Arc;

use crate::budget;
use crate::order::turned;
use crate::screen::Screen;
use crate::theme::Theme;

/// The part of the screen for the selected run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detail {
    pub(crate) size: Size,
    pub(crate) page: Page,
    /// Lines from the end of the output and of events, and from the beginning of the run itself.
    scroll: usize,
}

/// The room that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    None,
    #[default]
    Half,
    Full,
}

/// One of the things to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Page {
    #[default]
    Output,
    Itself,
    Events,
}

impl Page {
    pub(crate) const ALL: [Self; 3] = [Self::Output, Self::Itself, Self::Events];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Itself => "itself",
            Self::Events => "events",
        }
    }
}

impl Detail {
    pub(crate) fn is_full(&self) -> bool {
        self.size == Size::Full
    }

    pub(crate) fn wants_output(&self) -> bool {
        self.size != Size::None && self.page == Page::Output
    }

    pub(crate) fn more(&mut self) {
        self.size = if self.size == Size::None { Size::Half } else { Size::Full };
    }

    pub(crate) fn less(&mut self) {
        self.size = if self.size == Size::Full { Size::Half } else { Size::None };
        self.scroll = 0;
    }

    pub(crate) fn turn(&mut self, forward: bool) {
        self.page = turned(&Page::ALL, self.page, forward);
        (self.size, self.scroll) = (self.size.max(Size::Half), 0);
    }

    pub(crate) fn follow(&mut self) {
        self.scroll = 0;
    }

    /// Scrolls so many lines up or down.
    pub(crate) fn scroll(&mut self, lines: usize, up: bool) {
        // The run itself is read from its beginning.
        let away = up != (self.page == Page::Itself);
        self.scroll = match away {
            true => self.scroll.saturating_add(lines),
            false => self.scroll.saturating_sub(lines),
        };
    }
}

/// The lines that are seen.
pub(crate) fn lines(
    screen: &mut Screen,
    theme: Theme,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let remark = |text: &str| vec![Line::styled(text.to_owned(), theme.faint())];
    let Some(node) = screen.node() else {
        return remark(if screen.rows.is_empty() { "" } else { "→ unfolds these runs" });
    };
    let Detail { page, scroll, .. } = screen.detail;
    let page = if page == Page::Output && node.runs_nothing() { Page::Itself } else { page };
    let (lines, scroll) = match page {
        Page::Output => match screen.said.of(node.run, screen.until()) {
            None => return remark("…"),
            Some(said) => {
                let texts = said.rev().map(|line| match line.stream {
                    Some(Stream::Stdout) => ("  ", line.text.as_str(), Style::new()),
                    Some(Stream::Stderr) => ("! ", line.text.as_str(), theme.warning()),
                    None => ("  ", line.text.as_str(), theme.faint()),
                });
                let found = last(texts, width, height, scroll);
                if found.0.is_empty() {
                    return remark(match node.started_at {
                        Some(_) => "it has said nothing",
                        None => "it has not started",
                    });
                }
                found
            }
        },
        Page::Itself => {
            let all = itself(screen, node, theme, width);
            let scroll = scroll.min(all.len().saturating_sub(height));
            (all.into_iter().skip(scroll).take(height).collect(), scroll)
        }
        Page::Events => {
            let events: Vec<&Event> = screen.history.of(node.run, screen.until()).collect();
            let texts: Vec<String> = events.iter().rev().map(|event| event_line(event)).collect();
            let texts = texts.iter().map(|text| ("", text.as_str(), Style::new()));
            last(texts, width, height, scroll)
        }
    };
    screen.detail.scroll = scroll;
    lines
}

/// The last lines but so many, of texts from the last to the first, each with a mark before it; and how many lines were left out.
fn last<'a>(
    texts: impl Iterator<Item = (&'a str, &'a str, Style)>,
    width: usize,
    height: usize,
    scroll: usize,
) -> (Vec<Line<'static>>, usize) {
    let mut lines = Vec::new();
    for (mark, text, style) in texts {
        let room = width.saturating_sub(mark.len()).max(1);
        let parts = wrap(text, room);
        lines.extend(
            parts.into_iter().rev().map(|part| Line::styled(format!("{mark}{part}"), style)),
        );
        if lines.len() >= height.saturating_add(scroll) {
            break;
        }
    }
    let scroll = scroll.min(lines.len().saturating_sub(height));
    let mut seen: Vec<Line<'_>> = lines.into_iter().skip(scroll).take(height).collect();
    seen.reverse();
    (seen, scroll)
}

/// The text of an event of one run: its time of day, its word, its text.
fn event_line(event: &Event) -> String {
    let moment = number::moment(event.at);
    let time = moment.split_once('T').map_or(moment.as_str(), |(_, time)| time);
    let text = match &event.kind {
        EventKind::Ended(ending) => {
            let spent = used(&ending.usage, &ending.cost).map(|used| format!("  {used}"));
            format!("{}  {}{}", ending.status(), ending.why(), spent.unwrap_or_default())
        }
        kind => format!("{}  {}", kind.name(), kind.text()),
    };
    format!("{time}  {}", neutral::line(&text))
}

/// The explanation of a run, with its budget and what changed against its parent.
fn itself(screen: &Screen, node: &Node, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let mut story = Story::default();
    screen.history.of(node.run, screen.until()).for_each(|event| story.apply(event));
    let mut rows = story.rows(screen.tree(), node, Painting::Plain);
    let grant = |run| {
        let mut events = screen.history.of(run, screen.until());
        events.find_map(|event| match &event.kind {
            EventKind::Admitted(admitted) => Some(Arc::clone(&admitted.grant)),
            _ => None,
        })
    };
    let grants = node.parent.and_then(|parent| grant(parent).zip(grant(node.run)));
    let place =
        rows.iter().position(|(word, _)| *word == "granted").map_or(rows.len(), |at| at + 1);
    if let Some((parent, own)) = grants {
        let changes = changed(&parent, &own);
        let text = match changes.is_empty() {
            true => "the same as its parent".to_owned(),
            false => changes.join("\n"),
        };
        rows.insert(place, ("against parent", text));
    }
    let granted = budget::granted(screen.history.of(node.run, screen.until()));
    let (usage, cost) = screen.tree().subtree(node);
    for budget in budget::used(granted, &usage, &cost) {
        rows.insert(place, ("budget", format!("{} of {}", bar(budget.part, 20), budget.of)));
    }
    let words = rows.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    let room = width.saturating_sub(words + 2).max(1);
    let mut lines = Vec::new();
    for (word, text) in rows {
        let style = match word {
            "status" => theme.status(node.status),
            _ => Style::new(),
        };
        let parts = text.trim_end().lines().flat_map(|line| wrap(line, room));
        for (number, part) in parts.enumerate() {
            let word = if number == 0 { word } else { "" };
            lines.push(Line::from(vec![
                Span::styled(format!("{word:words$}  "), theme.faint()),
                Span::styled(part, style),
            ]));
        }
    }
    lines
}

/// `██████░░░░ 62 %`, of a part from 0 to 1.
pub(crate) fn bar(part: f64, width: usize) -> String {
    // Never rounded up: a bar is full when all is used.
    let full = (part * width as f64) as usize;
    format!("{}{} {} %", "█".repeat(full), "░".repeat(width - full), (part * 100.0) as u64)
}

/// The reason why a run is no success or does not start, or how it says it goes.
pub(crate) fn note(tree: &Tree, node: &Node) -> Option<String> {
    let reported = || Some(format!("\"{}\"", neutral::line(node.reported.as_deref()?)));
    let needs = || display::needs(tree, node).filter(|_| node.status == RunStatus::Queued);
    display::why(node).or_else(needs).or_else(reported)
}

/// A text in lines of this width; at least one.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for char in text.chars() {
        let mut bytes = [0; 4];
        let takes = Span::raw(&*char.encode_utf8(&mut bytes)).width();
        if used + takes > width && used > 0 {
            lines.push(String::new());
            used = 0;
        }
        lines.last_mut().expect("there is a line").push(char);
        used += takes;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_full_when_all_is_used() {
        let check = |part: f64, expected: &str| assert_eq!(bar(part, 10), expected);
        check(0.0, "░░░░░░░░░░ 0 %");
        check(0.62, "██████░░░░ 62 %");
        check(0.999, "█████████░ 99 %");
        check(1.0, "██████████ 100 %");
    }

    #[test]
    fn lines_are_as_wide_as_they_look() {
        let check = |text: &str, expected: &[&str]| assert_eq!(wrap(text, 4), expected, "{text:?}");
        check("", &[""]);
        check("abcd", &["abcd"]);
        check("abcdef", &["abcd", "ef"]);
        check("日本語", &["日本", "語"]);
        check("e\u{301}e\u{301}e\u{301}e\u{301}", &["e\u{301}e\u{301}e\u{301}e\u{301}"]);
    }
}
