//! A picture of the live screen, of a tree with ten thousand runs.

use std::hint::black_box;
use std::time::Duration;

use offshoot_model::{Event, EventKind, Timestamp};
use offshoot_test_support::scenario;
use offshoot_watch::{Key, Screen, Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "watch",
    what: "a picture of `offshoot watch`, 10,000 runs, 200 columns and 60 lines",
    measure,
};

fn measure(setting: &Setting) -> Result<Outcome> {
    let pieces = setting.pick(10_000, 1_000);
    let events = scenario::many(pieces);
    let views: [(&str, &[Key]); 4] = [
        ("the tree", &[]),
        ("all of it unfolded", &[Key::End, Key::Right, Key::Up, Key::Right]),
        ("sorted by silence", &[Key::Char('s')]),
        ("searched", &[Key::Char('/'), Key::Char('7')]),
    ];
    let sides = views.map(|(name, keys)| Side::new(name, || pictures(&events, keys)));
    let samples = compare(setting, setting.rounds(), sides.into_iter().collect())?;
    let outcome = Outcome::new(Unit::Seconds("picture"), samples);
    let note = "each after another event, so that all lines are put in order anew";
    Ok(views.iter().fold(outcome, |outcome, (name, _)| outcome.at_most(name, 0.030)).note(note))
}

fn pictures(events: &[Event], keys: &[Key]) -> Result<f64> {
    const PICTURES: u64 = 20;
    let last = events.last().ok_or("there are no events")?.clone();
    let mut screen = Screen::new(last.at);
    events.iter().cloned().for_each(|event| screen.event(event));
    let mut terminal = Terminal::new(TestBackend::new(200, 60))?;
    terminal.draw(|frame| draw(&mut screen, Theme::Colour, frame))?;
    keys.iter().for_each(|key| drop(screen.key(*key)));
    let mut now: Timestamp = last.at;
    per(PICTURES, || {
        for number in 0..PICTURES {
            now = now.plus(Duration::from_millis(33));
            let kind = EventKind::Reported { text: format!("{number} lines are read").into() };
            screen.event(Event { at: now, kind, ..last.clone() });
            screen.tick(now);
            terminal.draw(|frame| draw(&mut screen, Theme::Colour, frame))?;
        }
        black_box(terminal.backend());
        Ok(())
    })
}
