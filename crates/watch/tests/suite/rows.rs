//! The runs that are shown, their order, and the one that stays selected.

use std::time::Duration;

use offshoot_model::{Ending, Event, EventKind, Need, Payload};
use offshoot_test_support::{Timed, scenario};
use offshoot_watch::{Intent, Key};

use crate::stage::Stage;

/// The names of the runs in the table.
fn names(stage: &mut Stage) -> Vec<String> {
    let picture = stage.picture(100, 60);
    let table = picture.lines().skip_while(|line| !line.starts_with("RUN")).skip(1);
    let table = table.take_while(|line| !line.is_empty() && !line.starts_with("─"));
    let name =
        |line: &str| line.trim_start_matches([' ', '▾', '▸']).split("  ").next().map(str::to_owned);
    table.filter_map(name).collect()
}

#[test]
fn what_runs_has_a_line_and_what_is_over_or_waits_is_counted() {
    let mut stage = Stage::map();
    let shown = names(&mut stage);
    assert_eq!(shown[0], "count words");
    assert_eq!(shown.iter().filter(|name| name.starts_with("part-")).count(), 4 + 4);
    assert_eq!(shown[9..], ["221 completed", "71 queued"]);
    // Unfolded, each has its line; a folded parent hides all.
    stage.press([Key::End, Key::Right, Key::End]);
    assert!(names(&mut stage).contains(&"part-300.txt".to_owned()));
    stage.press([Key::Left, Key::Left, Key::Home, Key::Left]);
    assert_eq!(names(&mut stage), ["count words"]);
    stage.press([Key::Right]);
    assert_eq!(names(&mut stage), shown);
}

#[test]
fn a_piece_that_stands_in_no_line_says_what_it_waits_for() {
    let (mut events, stage) = (scenario::many(300), Stage::map());
    let (needs, running, over) =
        (stage.run("part-300.txt"), stage.run("part-228.txt"), stage.run("part-001.txt"));
    for event in events.iter_mut().filter(|event| event.run == needs) {
        if let EventKind::Admitted(admitted) = &mut event.kind {
            let need = |name: &str, run| Need { name: name.into(), run: Some(run) };
            admitted.needs = vec![need("left", over), need("right", running)];
        }
    }
    let mut stage = Stage::of(events);
    stage.press([Key::Char('/')]);
    stage.typed("part-300");
    stage.press([Key::Enter]);
    assert!(stage.line("part-300.txt").contains("waits for right"), "and no more for the other");
    let Event { root, seq, at, .. } = stage.events.last().expect("an event").clone();
    let kind = EventKind::Ended(Box::new(Ending::completed(Payload::text("12"))));
    stage.screen.event(Event { root, seq: seq + 1, at, run: running, kind });
    assert!(stage.line("part-300.txt").contains("needs left, right"));
}

#[test]
fn a_selected_run_stays_selected_when_it_ends() {
    let mut stage = Stage::map();
    stage.press([Key::Char('/')]);
    stage.typed("PART-228");
    stage.press([Key::Enter, Key::Down, Key::Down]);
    let run = stage.run("part-228.txt");
    assert_eq!(stage.press([Key::Char('y')]), Some(Intent::Copy(run.to_string())));
    stage.press([Key::Escape]);
    let Event { root, seq, at, .. } = stage.events.last().expect("an event").clone();
    let kind = EventKind::Ended(Box::new(Ending::completed(Payload::text("12"))));
    stage.screen.event(Event { root, seq: seq + 1, at, run, kind });
    assert_eq!(stage.line("part-228.txt").matches("completed").count(), 1);
    assert_eq!(stage.press([Key::Char('y')]), Some(Intent::Copy(run.to_string())));
    // Only then it is counted with the others.
    stage.press([Key::Up]);
    assert!(names(&mut stage).contains(&"222 completed".to_owned()));
}

#[test]
fn runs_are_chosen_by_status_and_by_text() {
    let mut stage = Stage::map();
    stage.picture(80, 24);
    let failed = ["part-050.txt", "part-100.txt", "part-150.txt", "part-200.txt"];
    let running: Vec<String> = (226..=229).map(|n| format!("part-{n}.txt")).collect();
    stage.press([Key::Char('f')]);
    assert_eq!(names(&mut stage)[1..], running);
    stage.press([Key::Char('f')]);
    assert_eq!(names(&mut stage)[1..], failed);
    stage.press([Key::Char('/')]);
    stage.typed("FileNotFoundError: part-1");
    stage.press([Key::Enter]);
    assert_eq!(names(&mut stage)[1..], failed[1..3]);
    stage.press([Key::Char('/'), Key::Control('u')]);
    stage.typed("no such run");
    assert!(stage.picture(80, 24).contains("Esc shows all"));
    stage.press([Key::Enter, Key::Escape]);
    assert_eq!(names(&mut stage)[0], "count words");
    stage.press([Key::Char('F')]);
    let seen = names(&mut stage);
    assert_eq!(seen[1], "part-001.txt");
    stage.press([Key::Char('/')]);
    stage.typed("x");
    stage.press([Key::Escape]);
    assert_eq!(names(&mut stage), seen, "Esc ends the text alone");
}

#[test]
fn a_table_is_sorted_by_a_column() {
    let mut stage = Stage::map();
    stage.press([Key::Char('s')]);
    assert_eq!(names(&mut stage)[0], "part-229.txt", "it has been silent for the longest time");
    stage.press([Key::Char('s')]);
    assert_eq!(names(&mut stage)[0], "part-226.txt", "it has run for the longest time");
    stage.press([Key::Char('s')]);
    assert_eq!(names(&mut stage)[0], "part-001.txt", "all have cost the same");
    stage.press([Key::Char('s'), Key::Home]);
    assert_eq!(names(&mut stage)[0], "count words");
}

#[test]
fn a_silence_grows_and_ends_with_its_run() {
    let mut stage = Stage::map();
    assert!(
        stage.line("part-229.txt").ends_with("1 min 25 s    1.2k")
            || stage.line("part-229.txt").contains("1 min 25 s")
    );
    let later = stage.last().plus(Duration::from_secs(100));
    stage.screen.tick(later);
    assert!(stage.line("part-229.txt").contains("1 min 35 s"));
    let run = stage.run("part-229.txt");
    let Event { root, seq, at, .. } = stage.events.last().expect("an event").clone();
    stage.screen.event(Event { root, seq: seq + 1, at, run, kind: EventKind::Waiting });
    assert!(!stage.line("part-229.txt").contains("1 min 35 s"));
}

#[test]
fn a_run_is_shown_with_what_is_below_it_alone() {
    let events = scenario::everything();
    let mut stage = Stage::of(events.clone());
    let run = stage.run("naïve/日本.txt");
    stage.screen = offshoot_watch::Screen::new(stage.last()).top(run);
    events.into_iter().for_each(|event| stage.screen.event(event));
    let shown = names(&mut stage);
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert_eq!(shown[0], "naïve/日本.txt");
}

/// Ticks come once a second: what happens between two of them is later than the first.
#[test]
fn an_event_moves_the_time() {
    let (mut timed, root) = Timed::tree(4, None);
    let slow = timed.child(0, root, "slow");
    timed.start(0, slow);
    let mut stage = Stage::of(timed.events.clone());
    timed.child(97_000, root, "later");
    let event = timed.events.last().expect("there are events").clone();
    stage.screen.event(event);
    let line = stage.line("slow");
    assert!(line.contains(" 1 min 37 s"), "{line}");
}
