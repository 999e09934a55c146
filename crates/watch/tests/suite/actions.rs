//! The wishes of the operator, and the questions that come first.

use offshoot_model::{BudgetRequest, Event, EventKind, MicroUsd, RootId};
use offshoot_test_support::scenario;
use offshoot_watch::{Intent, Key};

use crate::stage::Stage;

const Y: Key = Key::Char('y');
const N: Key = Key::Char('n');

#[test]
fn a_cancel_and_a_budget_are_asked_for_twice() {
    let mut stage = Stage::map();
    let root = RootId::new(scenario::run(0));
    stage.picture(80, 24);
    assert_eq!(stage.press([Key::Char('c')]), None);
    assert!(stage.picture(80, 24).contains("cancel count words and what is below it, 76 runs?"));
    assert_eq!(stage.press([N]), None);
    assert_eq!(stage.press([Key::Char('c'), Key::Enter]), None, "only `y` is yes");
    assert_eq!(
        stage.press([Key::Char('c'), Y]),
        Some(Intent::Cancel { root, run: root.run(), alive: 76 })
    );
    let piece = stage.run("part-226.txt");
    stage.press([Key::Char('f'), Key::Down]);
    assert_eq!(
        stage.press([Key::Char('c'), Y]),
        Some(Intent::Cancel { root, run: piece, alive: 1 })
    );
    stage.press([Key::Char('b')]);
    assert_eq!(stage.typed("two"), None);
    stage.press([Key::Enter]);
    assert!(stage.picture(80, 24).contains("that is no amount"));
    stage.press([Key::Control('u')]);
    stage.typed("2.50");
    stage.press([Key::Enter]);
    assert!(
        stage.picture(80, 24).contains("add $2.50 to the budget of part-226.txt and all above it?")
    );
    let add = BudgetRequest { tokens: None, usd: MicroUsd::from_f64(2.5) };
    assert_eq!(stage.press([Y]), Some(Intent::Budget { root, run: piece, add }));
}

#[test]
fn a_letter_is_typed_and_sent() {
    let mut stage = Stage::map();
    let root = RootId::new(scenario::run(0));
    stage.picture(80, 24);
    stage.press([Key::Char('w')]);
    stage.typed("leave the tests alonee");
    assert!(stage.picture(80, 24).contains("letter to count words: leave the tests alonee"));
    let text = "leave the tests alone".to_owned();
    assert_eq!(
        stage.press([Key::Backspace, Key::Enter]),
        Some(Intent::Send { root, run: root.run(), text })
    );
    assert_eq!(stage.press([Key::Char('w'), Key::Enter]), None, "an empty one is not sent");
    assert_eq!(stage.press([Key::Char('w'), Key::Char('q'), Key::Escape]), None);
    assert_eq!(stage.press([Key::Char('q')]), Some(Intent::Quit));
}

#[test]
fn a_pause_shows_and_ends() {
    let mut stage = Stage::map();
    let root = RootId::new(scenario::run(0));
    stage.picture(80, 24);
    assert_eq!(stage.press([Key::Char('p')]), Some(Intent::Pause { root, paused: true }));
    let Event { seq, at, .. } = stage.events.last().expect("an event").clone();
    let kind = EventKind::Paused;
    stage.screen.event(Event { root, seq: seq + 1, at, run: root.run(), kind });
    assert!(stage.picture(80, 24).contains("PAUSED  slots 4 of 4"));
    assert!(stage.picture(130, 24).contains("PAUSED by the operator since 2025-08-01T12:0"));
    assert_eq!(stage.press([Key::Char('p')]), Some(Intent::Pause { root, paused: false }));
}

#[test]
fn what_is_over_cannot_be_changed() {
    let [over, ..] = scenario::trees();
    let mut stage = Stage::of(over);
    stage.picture(80, 24);
    for key in ['c', 'b', 'w', 'p'] {
        assert_eq!(stage.press([Key::Char(key)]), None, "{key}");
        // What is typed then is no command.
        assert_eq!(stage.typed("qcy"), None, "{key}");
        assert!(stage.picture(80, 24).contains(" is over"), "{key}");
        stage.press([Key::Enter]);
    }
    let mut stage = Stage::map();
    stage.picture(80, 24);
    stage.press([Key::Char('r')]);
    for key in ['c', 'b', 'w', 'p'] {
        assert_eq!(stage.press([Key::Char(key)]), None, "{key}");
        assert!(stage.picture(80, 24).contains("this is a replay"), "{key}");
        stage.press([Key::Escape]);
    }
}

#[test]
fn an_answer_stands_in_the_last_line_until_the_next_key() {
    let mut stage = Stage::map();
    stage.screen.told(Err("no supervisor\u{1b}[2J runs it".to_owned()));
    assert!(stage.picture(80, 24).ends_with("no supervisor␛[2J runs it\n"));
    stage.press([Key::Down]);
    assert!(!stage.picture(80, 24).contains("no supervisor"));
    for (key, intent) in [('c', Intent::Quit), ('z', Intent::Suspend), ('l', Intent::Redraw)] {
        stage.press([Key::Char('/')]);
        assert_eq!(stage.press([Key::Control(key)]), Some(intent), "also while something is typed");
    }
}

#[test]
fn nothing_is_asked_of_a_tree_without_a_supervisor() {
    let mut stage = Stage::map();
    stage.screen.lose(RootId::new(scenario::run(0)));
    stage.picture(80, 24);
    // One that stood in line is not over, and no supervisor could do anything about it.
    stage.press([Key::Char('/')]);
    stage.typed("part-299");
    stage.press([Key::Enter, Key::End]);
    for key in "cpbw".chars().map(Key::Char) {
        assert_eq!(stage.press([key]), None);
        let picture = stage.picture(80, 24);
        assert!(picture.contains("its tree has no supervisor"), "{key:?}: {picture}");
        assert_eq!(stage.press([Key::Char('y')]), None);
        stage.press([Key::Escape]);
    }
}
