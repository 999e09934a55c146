//! Trees and runs that are held back.

use std::time::Duration;

use insta::assert_snapshot;
use offshoot_model::{Account, AgentId, Event, EventKind, Reason, RunId, Timestamp};
use offshoot_test_support::scenario;
use offshoot_watch::Key;

use crate::stage::Stage;

/// A map of three hundred pieces, with one more event of its root.
fn a_map_with(kind: EventKind) -> Stage {
    let mut events = scenario::many(300);
    say(&mut events, scenario::run(0), kind);
    Stage::of(events)
}

/// Adds an event of a run, after all that happened before in its tree.
fn say(events: &mut Vec<Event>, run: RunId, kind: EventKind) {
    let of_run = |event: &&Event| event.run == run;
    let root = events.iter().find(of_run).expect("the run is there").root;
    let of_tree = |event: &&Event| event.root == root;
    let seq = events.iter().rev().find(of_tree).expect("the tree is there").seq + 1;
    let at = events.last().expect("there are events").at.plus(Duration::from_millis(500));
    events.push(Event { root, seq, at, run, kind });
}

fn breaker() -> EventKind {
    let agent = AgentId::parse("translator-of-manuals").expect("an agent");
    EventKind::BreakerOpened { agent, faults: 5, wait_ms: 240_000 }
}

#[test]
fn each_of_two_trees_says_that_it_is_paused() {
    let mut stage = Stage::of(scenario::two_maps());
    assert_snapshot!("two_trees_80x24", stage.picture(80, 24));
    stage.press([Key::End]);
    assert_snapshot!("two_trees_second_140x30", stage.picture(140, 30));
    let root = stage.line("▾ count words");
    assert!(root.contains("  paused ") && root.contains("for 1 min 42 s"), "{root}");
    let root = stage.line("▾ translate the handbook");
    assert!(root.contains(" running ") && !root.contains("paused"), "{root}");
    assert!(stage.line("offshoot watch").contains("2 trees, 1 running, 1 paused"));
}

#[test]
fn slots_are_those_of_the_tree_that_is_selected() {
    let mut stage = Stage::of(scenario::two_maps());
    for keys in [vec![], vec![Key::End], vec![Key::Home, Key::Down], vec![Key::Home]] {
        stage.press(keys);
        let line = stage.line("slots ");
        assert!(line.contains("slots 4 of 4"), "{line}");
    }
}

#[test]
fn what_holds_a_tree_back_takes_no_room_from_its_numbers() {
    for (kind, words) in [(EventKind::Paused, "PAUSED"), (breaker(), "HELD")] {
        let mut stage = a_map_with(kind);
        for width in [60, 80, 100, 140, 220] {
            let picture = stage.picture(width, 24);
            let line = picture.lines().nth(2).expect("there are lines");
            assert!(line.contains("slots 4 of 4  289,125 tokens  $2.25"), "{width}: {line}");
            if width >= 80 {
                assert!(line.contains("45 % of $5.00"), "{width}: {line}");
                assert!(line.contains(words), "{width}: {line}");
            }
        }
        let long = stage.picture(220, 24);
        assert!(long.contains(" since 2025-08-01T12:0"), "{long}");
    }
}

/// Beside the budget stands what is used of each window, with the same bar.
#[test]
fn windows_of_quotas_have_bars() {
    let left = |left| EventKind::QuotaSeen {
        account: Account::of_runtime("claude"),
        window: "five_hour".into(),
        left,
        until: Timestamp::from_micros(u64::MAX / 4),
    };
    for (part, bar) in
        [(900_000, "five_hour █░░░░░░░░░ 10 %"), (70_000, "five_hour █████████░ 93 %")]
    {
        let mut stage = a_map_with(left(part));
        let picture = stage.picture(140, 24);
        assert!(picture.contains(bar), "{picture}");
    }
}

#[test]
fn a_tree_that_a_breaker_holds_back_says_so_in_its_line() {
    let mut stage = a_map_with(breaker());
    let root = stage.line("▾ count words");
    assert!(root.contains(" held "), "{root}");
    assert!(root.contains("for 1 min 30 s by the breaker of translator-of-m"), "{root}");
}

#[test]
fn a_root_that_waits_for_another_attempt_says_so_in_its_line() {
    let mut events = scenario::everything();
    let root = events.iter().find_map(|event| match &event.kind {
        EventKind::Admitted(admitted) if admitted.label.as_deref() == Some("look around") => {
            Some(event.run)
        }
        _ => None,
    });
    let root = root.expect("it is there");
    let message = "overloaded".to_owned();
    let after = Some(Box::new(Reason::RuntimeError { message, retryable: true }));
    let resumed = EventKind::Resumed {
        attempt: 2,
        continues: false,
        after,
        wait_ms: Some(120_000),
        changes: None,
    };
    say(&mut events, root, resumed);
    let mut stage = Stage::of(events);
    let line = stage.line("look around");
    assert!(line.contains(" parked "), "{line}");
    assert!(line.contains("for 1 min 30 s, attempt 2 in 30.0 s"), "{line}");
    // A pause of the tree is told beside it.
    say(&mut stage.events, root, EventKind::Paused);
    let events = stage.events.clone();
    let line = Stage::of(events).line("look around");
    assert!(line.contains(" paused "), "{line}");
}
