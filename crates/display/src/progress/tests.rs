use indicatif::{InMemoryTerm, TermLike};
use offshoot_model::Tree;
use offshoot_test_support::scenario;

use super::*;

#[test]
fn the_bar_shows_the_tally_and_failures_stay_above_it() {
    let term = InMemoryTerm::new(40, 120);
    let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
    let mut progress = Progress::on_terminal(target, Some(9), Style::Plain);
    let mut failures = 0;
    for event in scenario::everything() {
        progress.apply(&event);
        failures = progress.tally().failed();
        let screen = term.contents();
        let bar = screen.lines().last().unwrap_or_default();
        assert!(bar.ends_with(&progress.tally().to_string()), "{bar}");
        assert_eq!(screen.lines().count() as u64, failures + 1, "{screen}");
    }
    assert_eq!(failures, 4);
    let screen = term.contents();
    assert!(screen.starts_with("cancelled  scout: red␛[31malert␇␦2J  by its parent\n"), "{screen}");
    assert!(
        screen.contains(
            "\nfailed  main: seven  exited with code 7: ␛[2J␛[1;1Hnothing happened really"
        ),
        "{screen}"
    );
    progress.note("a note of another writer");
    assert!(term.contents().contains("\na note of another writer\n"), "{}", term.contents());
    let tally = progress.finish();
    assert_eq!(term.contents().lines().count() as u64, tally.failed() + 1, "the bar is gone");
}

#[test]
fn what_is_written_beside_the_bar_stands_above_it() {
    let term = InMemoryTerm::new(10, 120);
    let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
    let mut progress = Progress::on_terminal(target, Some(9), Style::Plain);
    let redrawn = progress.redrawn().expect("it is drawn over");
    let write = |line: &str| redrawn.suspend(|| term.write_line(line).expect("it has room"));
    let events = scenario::everything();
    events.iter().take(3).for_each(|event| progress.apply(event));
    write("first");
    write("second");
    let bar = progress.tally().to_string();
    let screen = term.contents();
    assert!(screen.starts_with("first\nsecond\n") && screen.ends_with(&bar), "{screen}");
    progress.finish();
    write("third");
    assert_eq!(term.contents(), "first\nsecond\nthird");
    let lines = Progress::in_lines(Box::new(std::io::sink()), None, Style::Plain);
    assert!(lines.redrawn().is_none());
}

#[test]
fn the_tree_is_drawn_while_it_grows_and_no_higher_than_the_screen() {
    let term = InMemoryTerm::new(12, 120);
    let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
    let mut progress = Progress::growing(target, 3, Style::Plain);
    let mut seen = (false, false);
    for event in scenario::everything() {
        progress.apply(&event);
        let screen = term.contents();
        let tree: Vec<&str> = screen.lines().skip_while(|line| !line.starts_with("main")).collect();
        assert!(tree.len() <= 3, "{screen}");
        seen.0 |= screen.contains("└─ … ");
        seen.1 |= screen.contains(" more lines");
    }
    assert!(seen.0, "what is over is counted");
    assert!(seen.1, "what does not fit is counted too");
    let failed = progress.tally().failed();
    progress.finish();
    assert_eq!(term.contents().lines().count() as u64, failed, "the tree is gone, failures stay");
}

#[test]
fn the_tally_agrees_with_the_tree_after_every_event() {
    let mut tally = Tally::new(None);
    let mut tree = Tree::new();
    for event in scenario::everything() {
        tally.apply(&event);
        tree.apply(&event);
        let counted =
            || tree.nodes().filter(|node| node.parent.is_some() || node.agent.as_str() == "scout");
        let count = |wanted: fn(offshoot_model::RunStatus) -> bool| {
            counted().filter(|node| wanted(node.status)).count() as u64
        };
        assert_eq!(tally.total(), counted().count() as u64);
        assert_eq!(tally.ended(), count(|status| status.is_terminal()));
        assert_eq!(tally.completed(), count(|status| status.is_success()));
    }
}

#[test]
fn nothing_to_do_is_no_division_by_zero() {
    let tally = Tally::new(Some(0));
    assert_eq!((tally.percent(), tally.total()), (0, 0));
    assert_eq!(tally.to_string(), "0 of 0 done");
    assert_eq!(Tally::new(Some(1200)).to_string(), "0 of 1,200 done  1,200 queued");
}
