//! The table of runs. Only the lines that are seen are drawn.

use std::time::Duration;

use offshoot_display::{Hold, status_words, time, used};
use offshoot_model::{Cost, MicroUsd, Node, RunStatus, TokenCount, Usage, number};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::header::state;
use super::{cut, put, put_right, width};
use crate::detail::note;
use crate::order::Order;
use crate::rows::{Row, RowId};
use crate::screen::{Screen, name};
use crate::theme::Theme;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Status,
    Time,
    Silent,
    Tokens,
    Cost,
}

/// The columns, with their widths and headings. The last two stand there where usage is known.
const ALL: &[(Column, u16, &str)] = &[
    (Column::Status, 11, "STATUS"),
    (Column::Time, 11, "TIME"),
    (Column::Silent, 11, "SILENT"),
    (Column::Tokens, 8, "TOKENS"),
    (Column::Cost, 10, "COST"),
];

/// A run that was silent for longer is marked.
const LONG: Duration = Duration::from_secs(60);

/// So many columns a name has at least beside the time since which its run is held back.
const LEAST: u16 = 8;

impl Column {
    /// True if the lines are sorted by it.
    const fn is_sorted(self, order: Order) -> bool {
        matches!(
            (self, order),
            (Self::Time, Order::Age) | (Self::Silent, Order::Silence) | (Self::Cost, Order::Cost)
        )
    }
}

/// Draws the table, and notes how many lines it has room for.
pub(super) fn draw(screen: &mut Screen, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let seen = usize::from(area.height.saturating_sub(1));
    screen.page = seen;
    // The selected line stays in sight.
    screen.offset = screen.offset.clamp((screen.at + 1).saturating_sub(seen), screen.at);
    screen.offset = screen.offset.min(screen.rows.len().saturating_sub(seen));
    let columns = if screen.counts.has_usage { ALL } else { &ALL[..3] };
    let names = area.width - columns.iter().map(|(_, width, _)| width).sum::<u16>();
    put(buffer, area, 0, area.x, "RUN", theme.faint());
    let mut end = area.x + names;
    for (column, width, heading) in columns {
        end += width;
        let sorted = column.is_sorted(screen.order);
        let (mark, style) = if sorted { ("↓", theme.strong()) } else { ("", theme.faint()) };
        put_right(buffer, area, 0, end, &format!("{mark}{heading}"), style);
    }
    if screen.rows.is_empty() {
        let text = match screen.filter.is_empty() {
            true if !screen.is_read => "",
            true => "nothing has run here yet",
            false => "no run is like that: Esc shows all",
        };
        put(buffer, area, 1, area.x, text, theme.faint());
    }
    let screen = &*screen;
    let lines = screen.rows.iter().enumerate().skip(screen.offset).take(seen);
    for (row, (at, line)) in (1..).zip(lines) {
        let cells = Cells { screen, theme, line, columns };
        cells.draw(Rect { y: area.y + row, height: 1, ..area }, names, buffer);
        if at == screen.at {
            buffer.set_style(Rect { y: area.y + row, height: 1, ..area }, theme.selected());
        }
    }
}

/// One line.
struct Cells<'a> {
    screen: &'a Screen,
    theme: Theme,
    line: &'a Row,
    columns: &'a [(Column, u16, &'a str)],
}

impl Cells<'_> {
    fn draw(&self, area: Rect, names: u16, buffer: &mut Buffer) {
        let Row { level, open, .. } = self.line;
        // Deep runs keep some room for their names.
        let indent = (level * 2).min(names / 2);
        let mark = match open {
            Some(true) => "▾ ",
            Some(false) => "▸ ",
            None => "  ",
        };
        let room = Rect { width: names.saturating_sub(1), ..area };
        let column = put(buffer, room, 0, area.x + indent, mark, self.theme.faint());
        let node = match self.line.id {
            RowId::Run(run) => self.screen.tree().get(run),
            RowId::Group(_, status) => {
                let text = format!("{} {}", number::count(self.line.runs), status_words(status));
                put(buffer, room, 0, column, &text, self.theme.status(status));
                None
            }
        };
        if let Some(node) = node {
            self.named(node, room, column, buffer);
        }
        let mut end = area.x + names;
        for (column, width, _) in self.columns {
            end += width;
            if let Some((text, style)) = self.cell(*column, node) {
                put_right(buffer, area, 0, end, &text, style);
            }
        }
    }

    /// Draws the name of a run and what there is to say about it. First it is said since when the run is held back: the name is cut
    /// off where there is no room for both.
    fn named(&self, node: &Node, room: Rect, column: u16, buffer: &mut Buffer) {
        let (screen, theme, now) = (self.screen, self.theme, self.screen.moment());
        let is_state = screen.state(node).is_some();
        let say = |(at, hold): (usize, Hold<'_>)| match at == 0 && is_state {
            true => hold.beside(now),
            false => hold.brief(now),
        };
        let held: Vec<String> = screen.holds(node).into_iter().enumerate().map(say).collect();
        let mut name = name(node);
        if let Some(state) = screen.state(node) {
            let since = format!("for {}", number::duration(now.since(state.since())));
            let left = room.right().saturating_sub(column + width(&since) + 2);
            name = cut(&name, left.max(LEAST));
        }
        let mut column = put(buffer, room, 0, column, &name, Style::new()) + 2;
        let mut say = |text: &str, style| column = put(buffer, room, 0, column, text, style) + 2;
        if !held.is_empty() {
            say(&held.join(", "), theme.warning());
        }
        let folder = screen.folders.get(&node.root).filter(|_| node.parent.is_none());
        folder.into_iter().for_each(|folder| say(folder, theme.faint()));
        note(screen.tree(), node).into_iter().for_each(|note| say(&note, theme.faint()));
    }

    fn cell(&self, column: Column, node: Option<&Node>) -> Option<(String, Style)> {
        let Row { usage, cost, .. } = self.line;
        let theme = self.theme;
        match column {
            Column::Status => Some(state(self.screen, theme, node?)),
            Column::Time => Some((time(node?, self.screen.moment())?, Style::new())),
            Column::Silent => {
                let silence = self.screen.silence(node?.run)?;
                let style = if silence >= LONG { theme.alarm() } else { Style::new() };
                Some((number::duration(silence), style))
            }
            // What has not begun has used nothing that could be unknown.
            _ if node.is_some_and(|node| node.status == RunStatus::Queued) => None,
            _ if used(usage, cost).is_none() => None,
            Column::Tokens => Some((tokens(usage), Style::new())),
            Column::Cost => Some((dollars(cost), Style::new())),
        }
    }
}

/// `12.3k`, in at most seven characters; `?` where nothing is known.
fn tokens(usage: &Usage) -> String {
    let short = |count: u64| match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    };
    match usage.total() {
        TokenCount::Known(count) => short(count),
        TokenCount::AtLeast(bound) => format!("≥{}", short(bound)),
        TokenCount::Estimated(most) => format!("~{}", short(most)),
        TokenCount::Unknown => "?".to_owned(),
    }
}

/// The money in a few characters, without the words for its source; `?` where nothing is known.
fn dollars(cost: &Cost) -> String {
    let sum: MicroUsd = cost.dollars();
    if cost.unknown_runs > 0 && sum == MicroUsd::default() {
        return "?".to_owned();
    }
    let known_usd = cost.known_usd + cost.metered_usd;
    number::cost(&Cost { metered_usd: MicroUsd::default(), known_usd, ..*cost }).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        let check = |count: TokenCount, expected: &str| {
            let usage = Usage { input: count, ..Usage::default() };
            assert_eq!(tokens(&usage), expected);
        };
        check(TokenCount::Known(999), "999");
        check(TokenCount::Known(12_340), "12.3k");
        check(TokenCount::Known(1_999_999), "1.9M");
        check(TokenCount::AtLeast(1_000), "≥1.0k");
        check(TokenCount::Estimated(1_000), "~1.0k");
        check(TokenCount::Unknown, "?");
    }

    /// No cell reaches into the one before it.
    #[test]
    fn money_is_short_wherever_it_is_known_from() {
        let usd = MicroUsd::from_micros;
        let metered = Cost { metered_usd: usd(170_000), ..Cost::NONE };
        let mixed = Cost { estimated_usd: usd(70_000), metered_usd: usd(20_000), ..Cost::NONE };
        let unknown = Cost { unknown_runs: 1, ..metered };
        for (cost, expected) in [
            (metered, "$0.17"),
            (mixed, "≈$0.09"),
            (unknown, "≥$0.17"),
            (Cost { unknown_runs: 1, ..Cost::NONE }, "?"),
            (Cost { known_usd: usd(1_234_560_000), ..Cost::NONE }, "$1,234.56"),
        ] {
            assert_eq!(dollars(&cost), expected);
        }
    }
}
