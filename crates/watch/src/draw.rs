//! The picture of the screen.

mod header;
mod table;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::detail::{self, Page, Size};
use crate::keys::KEYS;
use crate::mode::Mode;
use crate::screen::{Screen, name};
use crate::theme::Theme;

/// The smallest terminal in which something can be told.
const SMALLEST: (u16, u16) = (60, 12);

/// Draws the screen. A picture takes as long as it has lines; where something has changed, the lines are put in order first.
pub fn draw(screen: &mut Screen, theme: Theme, frame: &mut Frame<'_>) {
    screen.refresh();
    let area = frame.area();
    if (area.width, area.height) < SMALLEST || area.height < SMALLEST.1 {
        let (width, height) = SMALLEST;
        let text = format!("too small: {width} columns and {height} lines are needed");
        put(frame.buffer_mut(), area, 0, area.x, &text, theme.error());
        return;
    }
    let buffer = frame.buffer_mut();
    let heading = header::draw(screen, theme, rows(area, 0, area.height), buffer);
    let below = area.height - heading - 1;
    let of_detail = match screen.detail.size {
        _ if screen.mode == Mode::Help => 0,
        Size::None => 0,
        Size::Half => below / 2,
        Size::Full => below - 5,
    };
    let of_table = below - of_detail;
    if screen.mode == Mode::Help {
        help(theme, rows(area, heading, of_table), buffer);
    } else {
        table::draw(screen, theme, rows(area, heading, of_table), buffer);
    }
    if of_detail > 0 {
        draw_detail(screen, theme, rows(area, heading + of_table, of_detail), buffer);
        if screen.detail.is_full() {
            screen.page = usize::from(of_detail - 1);
        }
    }
    let cursor = footer(screen, theme, rows(area, area.height - 1, 1), buffer);
    if let Some(column) = cursor {
        frame.set_cursor_position((column.min(area.right() - 1), area.bottom() - 1));
    }
}

fn rows(area: Rect, from: u16, height: u16) -> Rect {
    Rect { y: area.y + from, height, ..area }
}

/// Writes a text into a line of an area, from a column on; the column behind it.
fn put(buffer: &mut Buffer, area: Rect, row: u16, column: u16, text: &str, style: Style) -> u16 {
    let room = area.right().saturating_sub(column);
    if row >= area.height || room == 0 {
        return column;
    }
    buffer.set_stringn(column, area.y + row, text, usize::from(room), style).0
}

/// Writes a text so that it ends before a column.
fn put_right(buffer: &mut Buffer, area: Rect, row: u16, end: u16, text: &str, style: Style) {
    let column = end.saturating_sub(width(text)).max(area.x);
    put(buffer, area, row, column, text, style);
}

/// A text that takes no more columns, with a sign where it is cut off.
fn cut(text: &str, room: u16) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for char in text.chars() {
        used += width(char.encode_utf8(&mut [0; 4]));
        if used > room {
            break;
        }
        short.push(char);
    }
    short.push('…');
    short
}

fn width(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}

fn draw_detail(screen: &mut Screen, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let rule = "─".repeat(usize::from(area.width));
    put(buffer, area, 0, area.x, &rule, theme.faint());
    let mut column = area.x + 1;
    if let Some(node) = screen.node() {
        let only_itself = node.runs_nothing();
        for page in Page::ALL {
            let is_here = match page {
                Page::Output if only_itself => continue,
                Page::Itself if only_itself => screen.detail.page != Page::Events,
                page => screen.detail.page == page,
            };
            let style = if is_here { theme.selected() } else { theme.faint() };
            column = put(buffer, area, 0, column, &format!(" {} ", page.word()), style);
        }
        let id = format!(" {} ", node.run);
        let name = format!(" {} ", name(node));
        column = put(buffer, area, 0, column + 1, &name, theme.strong());
        if area.right().saturating_sub(column) > width(&id) {
            put_right(buffer, area, 0, area.right() - 1, &id, theme.faint());
        }
    }
    let (width, height) = (usize::from(area.width), usize::from(area.height - 1));
    let lines = detail::lines(screen, theme, width, height);
    for (row, line) in (1..).zip(&lines) {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}

/// The last line: what is typed or asked, what was answered, or keys. Returns the column of the cursor.
fn footer(screen: &Screen, theme: Theme, area: Rect, buffer: &mut Buffer) -> Option<u16> {
    let mut say = |column, text: &str, style| put(buffer, area, 0, column, text, style);
    match &screen.mode {
        Mode::Filter => {
            let column = say(area.x, "/", theme.strong());
            let end = say(column, &screen.filter.text, Style::new());
            say(end, "   Enter keeps it, Esc ends it", theme.faint());
            return Some(end);
        }
        Mode::Typing(typing) => {
            let column = say(area.x, &typing.label(), theme.strong());
            // The end of a long text is what is typed.
            let room = usize::from(area.right().saturating_sub(column + 1));
            let long = typing.text.chars().count().saturating_sub(room);
            let seen: String = typing.text.chars().skip(long).collect();
            let end = say(column, &seen, Style::new());
            if let Some(mistake) = typing.mistake {
                say(end, &format!("   {mistake}"), theme.error());
            }
            return Some(end);
        }
        Mode::Asked(question) => {
            let column = say(area.x, &question.text, theme.alarm());
            say(column, " y: yes, any other key: no", Style::new());
        }
        Mode::Refused(why) => {
            let column = say(area.x, why, theme.error());
            say(column, "   Enter goes back", theme.faint());
        }
        Mode::Help => {
            say(area.x, "any key goes back", theme.faint());
        }
        Mode::Browse => match (&screen.message, &screen.replay) {
            (Some(Ok(text)), _) => drop(say(area.x, text, theme.strong())),
            (Some(Err(text)), _) => drop(say(area.x, text, theme.error())),
            (None, Some(_)) => {
                let keys = "[ ] time  , . event  Space play  + - speed  r now  ? keys  q quit";
                say(area.x, keys, theme.faint());
            }
            (None, None) => {
                let keys = "? keys  Enter details  / f filter  s sort  c cancel  p pause  r replay  q quit";
                say(area.x, keys, theme.faint());
            }
        },
    }
    None
}

fn help(theme: Theme, area: Rect, buffer: &mut Buffer) {
    let column = KEYS.iter().map(|(keys, _)| width(keys)).max().unwrap_or(0) + 2;
    for (row, (keys, what)) in (0..).zip(KEYS) {
        put(buffer, area, row, area.x, keys, theme.strong());
        put(buffer, area, row, area.x + column, what, Style::new());
    }
}
