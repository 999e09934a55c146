//! The way through the time of a tree.

use std::time::Duration;

use insta::assert_snapshot;
use offshoot_test_support::scenario;
use offshoot_watch::Key;

use crate::stage::Stage;

#[test]
fn a_finished_tree_is_seen_as_it_was() {
    let [over, ..] = scenario::trees();
    let mut stage = Stage::of(over);
    let at_the_end = stage.picture(100, 40);
    stage.press([Key::Char('r')]);
    assert!(stage.line("replay ").contains("1 h 2 min of 1 h 2 min"));
    stage.press([Key::Char('{'); 10]);
    assert!(stage.line("replay ").contains(" 0 ms of 1 h 2 min"));
    stage.press([Key::Char('.'); 4]);
    assert_snapshot!("replay_100x30", stage.picture(100, 30));
    // An event back and forth leads to the same picture.
    let here = stage.picture(100, 30);
    stage.press([Key::Char('.')]);
    assert_ne!(stage.picture(100, 30), here);
    stage.press([Key::Char(',')]);
    assert_eq!(stage.picture(100, 30), here);
    stage.press([Key::Char('}'); 10]);
    assert!(stage.line("replay ").contains("1 h 2 min of 1 h 2 min"));
    stage.press([Key::Char('r')]);
    assert_eq!(stage.picture(100, 40), at_the_end);
}

#[test]
fn time_goes_on_by_itself() {
    let mut stage = Stage::map();
    let mut now = stage.last().plus(Duration::from_secs(90));
    stage.screen.tick(now);
    assert!(!stage.screen.is_playing());
    stage.press([Key::Char('r'), Key::Char(' ')]);
    assert!(stage.screen.is_playing(), "it begins anew");
    let mut speeds = 0;
    while stage.screen.is_playing() {
        now = now.plus(Duration::from_millis(100));
        stage.screen.tick(now);
        speeds += 1;
        assert!(speeds <= 400, "it takes half a minute or so");
    }
    assert!(speeds > 250, "{speeds}");
    // Faster, and stopped in the middle.
    stage.press([Key::Char(' '), Key::Char('+'), Key::Char('+')]);
    stage.screen.tick(now.plus(Duration::from_secs(2)));
    stage.press([Key::Char(' ')]);
    let here = stage.line("replay ");
    stage.screen.tick(now.plus(Duration::from_secs(4)));
    assert_eq!(stage.line("replay "), here);
}

#[test]
fn what_a_dead_supervisor_left_is_lost_at_the_end_alone() {
    let mut stage = Stage::map();
    let root = stage.events[0].root;
    stage.screen.lose(root);
    assert!(stage.line("part-226.txt").contains("lost"));
    stage.press([Key::Char('r')]);
    assert!(stage.line("part-226.txt").contains("lost"));
    stage.press([Key::Char('[')]);
    assert!(!stage.picture(100, 50).contains("lost"));
    stage.press([Key::Char('}')]);
    assert!(stage.line("part-226.txt").contains("lost"));
}
