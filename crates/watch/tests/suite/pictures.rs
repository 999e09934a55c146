//! The pictures of screens.

use insta::assert_snapshot;
use offshoot_model::{Stream, Timestamp};
use offshoot_test_support::scenario;
use offshoot_watch::{Key, News, Screen, Theme, Words};
use ratatui::style::Color;

use crate::stage::{Stage, text};

fn words(at: Timestamp, stream: Stream, text: &str) -> Words {
    Words { at, stream: Some(stream), text: text.to_owned() }
}

#[test]
fn a_map_of_three_hundred_pieces() {
    let mut stage = Stage::map();
    assert_snapshot!("map_80x24", stage.picture(80, 24));
    assert_snapshot!("map_140x40", stage.picture(140, 40));
    stage.press([Key::Char('s')]);
    let silent = stage.run("part-229.txt");
    assert_eq!(stage.screen.wants_output().map(|(_, run)| run), None, "the root says nothing");
    stage.press([Key::Home]);
    assert_eq!(stage.screen.wants_output().map(|(_, run)| run), Some(silent));
    let at = stage.last();
    let lines = vec![
        words(at, Stream::Stdout, "reading part-229.txt"),
        words(at, Stream::Stderr, "\u{1b}[2Jwaiting for a lock of \u{202e}another\tprocess"),
        words(at, Stream::Stdout, &"a long line ".repeat(12)),
    ];
    stage.screen.said(silent, News { from_beginning: true, lines, open: Vec::new() });
    assert_snapshot!("silence_80x24", stage.picture(80, 24));
    stage.press([Key::Tab]);
    assert_snapshot!("itself_80x24", stage.picture(80, 24));
    stage.press([Key::Tab, Key::Enter]);
    assert_snapshot!("events_full_80x24", stage.picture(80, 24));
}

#[test]
fn everything() {
    let mut stage = Stage::of(scenario::everything());
    assert_snapshot!("everything_100x40", stage.picture(100, 40));
    let scout = stage.run("look around");
    assert!(stage.press([Key::Char('/')]).is_none());
    stage.typed("look around");
    stage.press([Key::Enter]);
    stage.picture(80, 24);
    assert_eq!(
        stage.press([Key::Char('y')]),
        Some(offshoot_watch::Intent::Copy(scout.to_string()))
    );
    stage.press([Key::Tab, Key::Enter]);
    assert_snapshot!("run_100x30", stage.picture(100, 30));
}

#[test]
fn the_keys() {
    let mut stage = Stage::map();
    stage.press([Key::Char('?')]);
    assert_snapshot!("keys_80x24", stage.picture(80, 24));
}

#[test]
fn a_screen_without_events_and_one_that_is_too_small() {
    let mut stage = Stage { screen: Screen::new(Timestamp::EPOCH), events: Vec::new() };
    assert!(stage.picture(80, 24).contains("reading the record"));
    stage.screen.is_read();
    assert!(stage.picture(80, 24).contains("nothing has run here yet"));
    for (width, height) in [(59, 40), (80, 11), (1, 1), (30, 3)] {
        assert!(
            text(&stage.buffer(Theme::Plain, width, height)).starts_with('t'),
            "{width}×{height}"
        );
    }
    let mut stage = Stage::map();
    for (width, height) in [(60, 12), (61, 13), (300, 100)] {
        for key in [Key::Enter, Key::Enter, Key::Tab, Key::Char('?'), Key::Escape, Key::Char('r')] {
            stage.press([key]);
            assert!(stage.picture(width, height).contains("count words"), "{width}×{height}");
        }
    }
}

/// The ground is that of the terminal, and a colour is none that vanishes on a light ground or on a dark one.
#[test]
fn colours_are_for_light_and_dark_and_add_nothing_else() {
    let with_colour = [
        Color::Reset,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
    ];
    for events in [scenario::everything(), scenario::many(60)] {
        let mut stage = Stage::of(events);
        for key in [Key::End, Key::Tab, Key::Tab, Key::Char('c'), Key::Char('n'), Key::Char('r')] {
            stage.press([key]);
            let plain = stage.buffer(Theme::Plain, 100, 40);
            let colour = stage.buffer(Theme::Colour, 100, 40);
            assert_eq!(text(&plain), text(&colour));
            assert!(plain.content.iter().all(|cell| (cell.fg, cell.bg) == Default::default()));
            assert!(colour.content.iter().all(|cell| cell.bg == Color::Reset));
            let found = colour.content.iter().find(|cell| !with_colour.contains(&cell.fg));
            assert!(found.is_none(), "{found:?}");
        }
        assert!(
            stage.buffer(Theme::Colour, 100, 40).content.iter().any(|cell| cell.fg != Color::Reset)
        );
    }
}

#[test]
fn nothing_an_agent_wrote_reaches_the_terminal_raw() {
    let mut stage = Stage::of(scenario::everything());
    stage.picture(100, 40);
    for _ in 0..40 {
        for key in [Key::Down, Key::Right, Key::Tab, Key::Tab, Key::Tab] {
            stage.press([key]);
            let picture = stage.picture(160, 60);
            let harmful = |char: char| (char.is_control() && char != '\n') || char == '\u{202e}';
            assert_eq!(picture.chars().find(|char| harmful(*char)), None);
        }
    }
}

#[test]
fn what_is_said_is_seen_once_and_a_line_that_has_not_ended_too() {
    let mut stage = Stage::map();
    let at = stage.last();
    stage.press([Key::Char('s')]);
    stage.picture(80, 24);
    let run = stage.run("part-229.txt");
    let line = |text| words(at, Stream::Stdout, text);
    let first = News { from_beginning: true, lines: vec![line("one")], open: vec![line("pass")] };
    let more = News { from_beginning: false, lines: vec![line("password: x")], open: Vec::new() };
    for _ in 0..2 {
        stage.screen.said(run, first.clone());
        assert!(stage.picture(80, 24).contains("  one\n  pass\n"));
        stage.screen.said(run, more.clone());
        assert!(stage.picture(80, 24).contains("  one\n  password: x\n\n"));
    }
}
