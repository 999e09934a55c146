//! A screen with a terminal in memory.

use std::collections::HashMap;
use std::time::Duration;

use offshoot_model::{Event, RunId, Timestamp};
use offshoot_test_support::scenario;
use offshoot_watch::{Intent, Key, Screen, Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

pub(crate) struct Stage {
    pub(crate) screen: Screen,
    pub(crate) events: Vec<Event>,
}

impl Stage {
    /// A screen that was told these events, a minute and a half after the last one.
    pub(crate) fn of(events: Vec<Event>) -> Self {
        let last = events.last().map_or(Timestamp::EPOCH, |event| event.at);
        let mut screen = Screen::new(last);
        events.iter().cloned().for_each(|event| screen.event(event));
        screen.is_read();
        screen.tick(last.plus(Duration::from_secs(90)));
        Self { screen, events }
    }

    /// A map of three hundred pieces, of which one says nothing.
    pub(crate) fn map() -> Self {
        let mut stage = Self::of(scenario::many(300));
        let silence = |n: u8| (scenario_run(226 + u32::from(n)), Duration::from_millis(700));
        let mut silences: HashMap<RunId, Duration> = (0..4).map(silence).collect();
        silences.insert(scenario_run(229), Duration::from_secs(85));
        let now = stage.last().plus(Duration::from_secs(90));
        stage.screen.silences(silences, now);
        stage
    }

    pub(crate) fn last(&self) -> Timestamp {
        self.events.last().expect("there are events").at
    }

    /// The id of the run with this label.
    pub(crate) fn run(&self, label: &str) -> RunId {
        let tree = offshoot_model::Tree::of(&self.events);
        let found = tree.nodes().find(|node| node.label.as_deref() == Some(label));
        found.expect("there is no run of that label").run
    }

    /// Presses keys, and returns what was wanted by the last one.
    pub(crate) fn press(&mut self, keys: impl IntoIterator<Item = Key>) -> Option<Intent> {
        keys.into_iter().map(|key| self.screen.key(key)).last().flatten()
    }

    /// Types a text.
    pub(crate) fn typed(&mut self, text: &str) -> Option<Intent> {
        self.press(text.chars().map(Key::Char))
    }

    pub(crate) fn buffer(&mut self, theme: Theme, width: u16, height: u16) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is in memory");
        terminal.draw(|frame| draw(&mut self.screen, theme, frame)).expect("it is in memory");
        terminal.backend().buffer().clone()
    }

    /// The picture as text.
    pub(crate) fn picture(&mut self, width: u16, height: u16) -> String {
        text(&self.buffer(Theme::Plain, width, height))
    }

    /// The line that holds this text.
    #[track_caller]
    pub(crate) fn line(&mut self, text: &str) -> String {
        let picture = self.picture(120, 40);
        let found = picture.lines().find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("`{text}` is not in\n{picture}")).to_owned()
    }
}

/// The n-th run of a map of many.
fn scenario_run(number: u32) -> RunId {
    let events = scenario::many(300);
    let tree = offshoot_model::Tree::of(&events);
    tree.nodes().nth(number as usize).expect("there are so many").run
}

pub(crate) fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut text = String::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character stands in two cells.
            x += u16::try_from(ratatui::text::Span::raw(symbol).width().max(1)).expect("a cell");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
