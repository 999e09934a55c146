use std::sync::{Arc, Mutex};

use indicatif::{InMemoryTerm, TermLike};
use offshoot_model::{
    Admitted, CancelledBy, Cost, Ending, EventKind, MicroUsd, Node, Reason, RootId, RunId,
    TokenCount, Tree, Usage,
};
use offshoot_test_support::{Timed, scenario};

use super::*;

fn cancelled(tally: &Tally) -> u64 {
    tally.ended() - tally.completed() - tally.failed()
}

#[test]
fn the_bar_shows_the_tally_and_failures_stay_above_it() {
    let term = InMemoryTerm::new(40, 200);
    let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
    let mut progress = Progress::on_terminal(target, Some(9), 200, Style::Plain);
    let mut failures = 0;
    for event in scenario::everything() {
        progress.apply(&event);
        // One that ran again and completed does not count any more, and its line stays.
        failures = failures.max(progress.tally().failed() + cancelled(progress.tally()));
        let screen = term.contents();
        let bar = screen.lines().last().unwrap_or_default();
        assert!(bar.ends_with(&progress.tally().to_string()), "{bar}");
        let stopped = progress.tally().stopped().count() as u64;
        assert_eq!(screen.lines().count() as u64, failures - stopped + 1, "{screen}");
    }
    assert_eq!(failures, 5);
    let screen = term.contents();
    let stopped = screen.lines().any(|line| line.starts_with("cancelled"));
    assert!(!stopped, "what was stopped is said once, at the end: {screen}");
    assert!(screen.contains("failed  main: seven  exited with code 7: really␦"), "{screen}");
    progress.note("a note of another writer");
    assert!(term.contents().contains("\na note of another writer\n"), "{}", term.contents());
    progress.finish();
    let screen = term.contents();
    assert_eq!(screen.lines().count() as u64, failures + 1, "the bar is gone");
    assert!(screen.ends_with("cancelled  scout: red␛[31malert␇␦2J  by its parent"), "{screen}");
}

#[test]
fn what_is_written_beside_the_bar_stands_above_it() {
    let term = InMemoryTerm::new(10, 120);
    let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
    let mut progress = Progress::on_terminal(target, Some(9), 200, Style::Plain);
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
    let term = InMemoryTerm::new(12, 160);
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
    let failed = progress.tally().failed() + cancelled(progress.tally()) + 1;
    progress.finish();
    let left = term.contents().lines().count() as u64;
    assert_eq!(left, failed, "the tree is gone, failures stay, that of what ran again too");
}

#[test]
fn the_tally_agrees_with_the_tree_after_every_event() {
    let mut tally = Tally::new(None);
    let mut tree = Tree::new();
    for event in scenario::everything() {
        tally.apply(&event);
        tree.apply(&event);
        let is_root_of_pieces =
            |node: &Node| node.parent.is_none() && node.agent.as_str() == "main";
        let counts = |node: &&Node| !is_root_of_pieces(node) && node.replaced_by.is_none();
        let counted = || tree.nodes().filter(counts);
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

/// The tree of a run that was admitted as a child, and its admission.
fn a_child() -> (RootId, Box<Admitted>) {
    let events = scenario::everything();
    let child = events.iter().find_map(|event| match &event.kind {
        EventKind::Admitted(admitted) if admitted.parent.is_some() => {
            Some((event.root, admitted.clone()))
        }
        _ => None,
    });
    child.expect("a child was admitted")
}

/// Two pieces have an answer, six never started, and after an hour these run again.
#[test]
fn what_runs_again_after_a_stop_counts_once_and_without_the_hour() {
    let (root, mut admitted) = a_child();
    let hour = 3_600_000;
    let mut tally = Tally::new(Some(8)).since(Timestamp::EPOCH.plus(Duration::from_millis(hour)));
    let run = |number: u8| RunId::from_bytes([number; 16]);
    let say = |tally: &mut Tally, number: u8, ms: u64, kind: EventKind| {
        let at = Timestamp::EPOCH.plus(Duration::from_millis(ms));
        assert!(tally.apply(&Event { root, seq: 1, at, run: run(number), kind }).is_none());
    };
    let ended = |reason| EventKind::Ended(Box::new(Ending::of(reason)));
    let stopped = || ended(Reason::Cancelled { by: CancelledBy::Operator });
    (1..=8).for_each(|number| say(&mut tally, number, 0, EventKind::Admitted(admitted.clone())));
    for number in [1, 2] {
        say(&mut tally, number, 0, EventKind::Starting);
        say(&mut tally, number, 1000, ended(Reason::Completed { exit_code: None }));
    }
    (3..=8).for_each(|number| say(&mut tally, number, 1000, stopped()));
    tally.at(Timestamp::EPOCH.plus(Duration::from_millis(hour)));
    say(&mut tally, 0, hour, EventKind::Reopened);
    for number in 3..=8 {
        admitted.instead = Some(run(number));
        say(&mut tally, number + 10, hour, EventKind::Admitted(admitted.clone()));
    }
    assert_eq!(tally.to_string(), "2 of 8 done  6 queued  in 1.0 s  3.0 s left  2.0/s");
    assert_eq!(tally.failures_before(Style::Plain), [""; 0]);
    assert_eq!(tally.stopped().count(), 0, "what was stopped in an earlier life is not told again");
}

/// A piece that hung is ended, and runs again.
#[test]
fn what_runs_again_is_no_second_piece_and_promises_nothing() {
    let mut written = Written::new(4);
    (1..=4).for_each(|number| written.start(number, 0));
    (1..=3).for_each(|number| written.end(number, 10_000));
    let cancelled = Reason::Cancelled { by: CancelledBy::Operator };
    written.say(4, 20_000, EventKind::Ended(Box::new(Ending::of(cancelled))));
    assert_eq!(written.now(20_000), "3 of 4 done  1 cancelled  in 20.0 s  12.0/min");
    written.say(0, 20_000, EventKind::Reopened);
    written.admitted.instead = Some(RunId::from_bytes([4; 16]));
    written.start(5, 20_000);
    // Three in 22 s; how long the fourth takes is not known: it is none of those that took 10 s.
    assert_eq!(written.now(22_000), "3 of 4 done  1 running  in 22.0 s  8.2/min");
    written.end(5, 24_000);
    assert_eq!(written.now(24_000), "4 of 4 done  in 24.0 s  10.0/min");
}

/// On a narrow terminal what matters least is left out, and nothing is cut in its middle.
#[test]
fn a_narrow_line_leaves_out_what_matters_least() {
    let mut written = Written::new(40);
    for number in 1..=4 {
        written.start(number, 0);
        written.end(number, 1000);
    }
    written.start(5, 1000);
    let usage = Usage { input: TokenCount::Known(12_340), ..Usage::default() };
    let cost = Cost { known_usd: MicroUsd::from_micros(40_000), ..Cost::NONE };
    written.say(5, 2000, EventKind::Used { usage, cost });
    let line = |columns| written.progress.tally().within(columns);
    let counts = "4 of 40 done  1 running  35 queued";
    assert_eq!(line(200), format!("{counts}  in 2.0 s  18.0 s left  2.0/s  12,340 tokens  $0.04"));
    assert_eq!(line(75), format!("{counts}  18.0 s left  12,340 tokens  $0.04"));
    assert_eq!(line(62), format!("{counts}  12,340 tokens  $0.04"));
    assert_eq!(line(10), counts);
    // Those in line start once one of the slow ones ends.
    let slow = written.now(60_000);
    assert!(slow.contains("slowest: main: README.md") && !slow.contains(" left"), "{slow}");
    let line = written.progress.tally().within(105);
    assert!(
        line.ends_with("  slowest: main: README.md for 59.0 s  12,340 tokens  $0.04"),
        "{line}"
    );
}

/// Another attempt, after one that ended so, or with its supervisor.
fn again(after: Option<Reason>) -> EventKind {
    EventKind::Resumed {
        attempt: 2,
        continues: false,
        wait_ms: after.as_ref().map(|_| 12_000),
        after: after.map(Box::new),
        changes: None,
    }
}

/// A run that waits for another attempt does not run, and an attempt after a kill begins anew.
#[test]
fn parked_runs_do_not_run() {
    let mut written = Written::new(2);
    (1..=2).for_each(|number| written.start(number, 0));
    written.say(1, 1000, again(Some(Reason::ExitCode { code: 9 })));
    assert_eq!(written.now(2000), "0 of 2 done  1 running  1 parked  in 2.0 s");
    written.say(1, 13_000, EventKind::Starting);
    assert_eq!(written.now(13_000), "0 of 2 done  2 running  in 13.0 s");
    written.say(0, 100_000, EventKind::Reopened);
    written.say(2, 100_000, again(None));
    assert_eq!(written.now(100_000), "0 of 2 done  1 running  1 queued  in 13.0 s");
}

/// Of a run that was cut off, more may have been used than it has told; of a program that tells nothing, nothing is said.
#[test]
fn the_use_of_a_run_that_was_cut_off_is_a_lower_bound() {
    let (mut timed, root) = Timed::tree(9, None);
    let [told, asks, program] =
        ["told", "asks", "program"].map(|agent| timed.child(0, root, agent));
    [told, asks, program].into_iter().for_each(|run| timed.start(0, run));
    let usage = Usage { output: TokenCount::Known(7), ..Usage::default() };
    let cost = Cost::known(MicroUsd::from_micros(40_000));
    timed.say(1, told, EventKind::Used { usage, cost });
    let model = "m".into();
    timed.say(
        1,
        asks,
        EventKind::RequestReserved { request: 1, model, tokens: 9, micro_usd: None },
    );
    let mut tree = Tree::of(&timed.events);
    let used = |tree: &Tree, run: RunId| {
        let node = tree.get(run).expect("it was admitted");
        offshoot_model::number::used(&node.usage, &node.cost)
    };
    assert_eq!(used(&tree, told).as_deref(), Some("7 tokens  $0.04"));
    tree.lose(timed.events[0].root);
    assert_eq!(used(&tree, told).as_deref(), Some("≥ 7 tokens  ≥ $0.04"));
    assert_eq!(used(&tree, asks).as_deref(), Some("usage not reported"));
    assert_eq!(used(&tree, program), None);
}

/// Of a tree that has no supervisor, or had none for a while.
#[test]
fn a_run_has_no_time_where_there_is_no_supervisor() {
    let (root, admitted) = a_child();
    let run = RunId::from_bytes([1; 16]);
    let say = |tree: &mut Tree, run: RunId, ms: u64, kind: EventKind| {
        tree.apply(&Event { root, seq: 1, at: at(ms), run, kind });
    };
    let mut tree = Tree::new();
    say(&mut tree, run, 0, EventKind::Admitted(admitted));
    say(&mut tree, run, 1000, EventKind::Starting);
    say(&mut tree, run, 2000, EventKind::Started { process: None });
    let lost = |tree: &Tree| {
        let mut tree = tree.clone();
        tree.lose(root);
        tree
    };
    let age = |tree: &Tree, ms| tree.get(run).and_then(|node| node.age(at(ms)));
    assert_eq!(age(&lost(&tree), 100_000), Some(Duration::from_secs(1)));
    // One that waits for another attempt is lost no more than one that stands in line, and its time ends all the same.
    let mut parked = tree.clone();
    say(&mut parked, run, 2500, again(Some(Reason::ExitCode { code: 9 })));
    say(&mut parked, root.run(), 4000, EventKind::Alive);
    assert_eq!(age(&lost(&parked), 100_000), Some(Duration::from_secs(3)));
    assert_eq!(
        lost(&parked).get(run).map(|node| node.status),
        Some(offshoot_model::RunStatus::Queued)
    );
    say(&mut tree, root.run(), 102_000, EventKind::Reopened);
    assert_eq!(age(&tree, 102_500), Some(Duration::from_millis(1500)));
    say(&mut tree, run, 104_000, EventKind::Ended(Box::new(Ending::of(Reason::TurnLimit))));
    let time = tree.get(run).and_then(Node::execution_time);
    assert_eq!(time, Some(Duration::from_secs(3)));
}

/// Pieces that take a second each, and one that hangs.
#[test]
fn a_piece_that_hangs_is_named_and_no_time_left_is_promised() {
    let (root, mut admitted) = a_child();
    let mut tally = Tally::new(Some(10));
    let run = |number: u8| RunId::from_bytes([number; 16]);
    let say = |tally: &mut Tally, number: u8, ms: u64, kind: EventKind| {
        let at = Timestamp::EPOCH.plus(Duration::from_millis(ms));
        drop(tally.apply(&Event { root, seq: 1, at, run: run(number), kind }));
    };
    for number in 1..=10 {
        admitted.label = Some(format!("host-{number}").into());
        say(&mut tally, number, 0, EventKind::Admitted(admitted.clone()));
        say(&mut tally, number, 0, EventKind::Starting);
    }
    let done = || EventKind::Ended(Box::new(Ending::of(Reason::Completed { exit_code: None })));
    for number in 1..=9 {
        say(&mut tally, number, 1000, done());
    }
    let before = tally.to_string();
    assert!(before.starts_with("9 of 10 done  1 running  in 1.0 s"), "{before}");
    assert!(!before.contains("left") && !before.contains("slowest"), "{before}");
    say(&mut tally, 10, 4000, EventKind::Progress { text: "still here".into() });
    tally.at(Timestamp::EPOCH.plus(Duration::from_secs(20)));
    let hangs = tally.to_string();
    assert!(
        hangs.contains("in 20.0 s  slowest: main: host-10 for 20.0 s, silent for 16.0 s"),
        "{hangs}"
    );
    assert!(!hangs.contains("left"), "{hangs}");
    // The hour in which no supervisor held the tree does not count; its last sign is its last event.
    say(&mut tally, 10, 3_604_000, EventKind::Reopened);
    assert!(tally.to_string().contains("in 4.0 s"), "{tally}");
}

/// Two that have completed say too little of how long one takes.
#[test]
fn where_too_few_have_completed_a_run_is_named_as_slow_after_a_minute() {
    let mut written = Written::new(4);
    (1..=4).for_each(|number| written.start(number, 0));
    (1..=2).for_each(|number| written.end(number, 1000));
    let early = written.now(59_000);
    assert!(!early.contains("slowest"), "{early}");
    let late = written.now(60_000);
    assert!(late.contains("slowest: main: README.md for 1 min, silent for 1 min"), "{late}");
}

/// A piece that failed is not done, and the last line is told all the same.
#[test]
fn what_failed_is_no_part_of_the_percentage() {
    let mut written = Written::new(4);
    (1..=4).for_each(|number| written.start(number, 0));
    (1..=3).for_each(|number| written.end(number, 1000 * u64::from(number)));
    let failed = EventKind::Ended(Box::new(Ending::of(Reason::ExitCode { code: 1 })));
    written.say(4, 4000, failed);
    let lines = written.text();
    let last = lines.lines().last().expect("lines were written");
    assert!(last.starts_with(" 75 %  3 of 4 done  1 failed"), "{lines}");
}

/// Progress in lines about runs of one tree, and what it wrote.
struct Written {
    progress: Progress,
    out: Arc<Mutex<Vec<u8>>>,
    root: RootId,
    admitted: Box<Admitted>,
}

struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer has panicked").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Duration::from_millis(ms))
}

impl Written {
    fn new(expected: u64) -> Self {
        let out = Arc::new(Mutex::new(Vec::new()));
        let screen = Box::new(Shared(Arc::clone(&out)));
        let progress = Progress::in_lines(screen, Some(expected), Style::Plain);
        let (root, admitted) = a_child();
        Self { progress, out, root, admitted }
    }

    fn say(&mut self, number: u8, ms: u64, kind: EventKind) {
        let run = match number {
            0 => self.root.run(),
            number => RunId::from_bytes([number; 16]),
        };
        self.progress.apply(&Event { root: self.root, seq: 1, at: at(ms), run, kind });
    }

    /// Admits and starts a run.
    fn start(&mut self, number: u8, ms: u64) {
        let admitted = self.admitted.clone();
        self.say(number, ms, EventKind::Admitted(admitted));
        self.say(number, ms, EventKind::Starting);
    }

    fn end(&mut self, number: u8, ms: u64) {
        let ending = Ending::of(Reason::Completed { exit_code: None });
        self.say(number, ms, EventKind::Ended(Box::new(ending)));
    }

    fn open_breaker(&mut self, ms: u64, wait_ms: u64) {
        let agent = self.admitted.agent.clone();
        self.say(0, ms, EventKind::BreakerOpened { agent, faults: 5, wait_ms });
    }

    fn now(&mut self, ms: u64) -> String {
        self.progress.tick(at(ms));
        self.progress.tally().to_string()
    }

    fn text(&self) -> String {
        let bytes = self.out.lock().expect("no writer has panicked").clone();
        String::from_utf8(bytes).expect("text")
    }
}

#[test]
fn nothing_is_held_back_once_all_is_over() {
    let mut written = Written::new(2);
    (1..=2).for_each(|number| written.start(number, 0));
    (1..=2).for_each(|number| written.end(number, 1000));
    written.open_breaker(1000, 60_000);
    assert!(!written.text().contains("held"), "{}", written.text());
    let line = written.now(5000);
    assert!(!line.contains("held") && !line.contains("breaker"), "{line}");
    // More is to be done.
    written.start(3, 6000);
    assert_eq!(written.text().matches("held back by the breaker").count(), 1);
}

#[test]
fn a_breaker_whose_time_is_over_waits_for_the_run_that_is_tried() {
    let mut written = Written::new(9);
    (1..=4).for_each(|number| written.start(number, 0));
    (1..=3).for_each(|number| written.end(number, 1000));
    written.open_breaker(1000, 5_000);
    let line = written.now(3000);
    assert!(
        line.contains("  held for 2.0 s by the breaker of main, next try in 3.0 s  "),
        "{line}"
    );
    assert!(!line.contains(" left"), "no time left is promised while it holds: {line}");
    for ms in [6000, 60_000] {
        let line = written.now(ms);
        assert!(line.contains("by the breaker of main, one run is tried now"), "{line}");
        assert!(!line.contains(" left"), "{line}");
    }
    let agent = written.admitted.agent.clone();
    written.say(0, 61_000, EventKind::BreakerClosed { agent });
    written.start(5, 61_000);
    let line = written.now(61_000);
    assert!(line.contains(" left") && !line.contains("breaker"), "{line}");
}

#[test]
fn a_pause_is_no_working_time() {
    let mut written = Written::new(9);
    for number in 1..=4 {
        written.start(number, 0);
        written.end(number, 2000);
    }
    let line = written.now(2000);
    assert!(line.ends_with("  in 2.0 s  2.5 s left  2.0/s"), "{line}");
    written.say(0, 2000, EventKind::Paused);
    let line = written.now(12_000);
    assert!(line.ends_with("  paused for 10.0 s  in 12.0 s  2.0/s"), "{line}");
    written.say(0, 22_000, EventKind::Unpaused);
    let line = written.now(22_000);
    assert!(line.ends_with("  in 22.0 s  2.5 s left  2.0/s"), "{line}");
    // A pause that ends with its supervisor counts up to its last event, and then no supervisor is there.
    written.say(0, 22_000, EventKind::Paused);
    written.say(0, 23_000, EventKind::StallLent);
    written.say(0, 90_000, EventKind::Reopened);
    let line = written.now(90_000);
    assert!(line.ends_with("  in 23.0 s  2.5 s left  2.0/s"), "{line}");
}

#[test]
fn what_was_over_before_is_not_told_again_and_again() {
    // Six answers are asked about after all pieces were over, in an earlier life.
    let mut written = Written::new(6);
    written.progress = written.progress.since(at(10_000));
    for number in 1..=6 {
        written.start(number, 0);
        written.end(number, 1000);
    }
    written.say(0, 10_000, EventKind::Reopened);
    for second in 10..200 {
        written.now(second * 1000);
    }
    assert_eq!(written.text(), "");
    for number in 11..=16 {
        written.start(number, 200_000 + u64::from(number));
        written.end(number, 200_000 + u64::from(number));
    }
    let text = written.text();
    assert_eq!(text.lines().filter(|line| line.starts_with("100 %")).count(), 1, "{text}");
}

#[test]
fn half_a_minute_without_a_word_is_a_line() {
    let mut written = Written::new(9);
    for second in 0..=125 {
        written.progress.tick(at(second * 1000));
    }
    assert_eq!(written.text(), "  0 %  0 of 9 done  9 queued\n".repeat(4));
}

/// Runs that a killed supervisor had begun are read from the record before it is told that they go on.
#[test]
fn no_time_without_a_supervisor_is_told_while_the_record_is_read() {
    let mut written = Written::new(2);
    written.progress = written.progress.since(at(500_000));
    (1..=2).for_each(|number| written.start(number, 0));
    written.say(1, 5_000, EventKind::Used { usage: Usage::default(), cost: Cost::NONE });
    written.progress.tick(at(500_100));
    assert_eq!(written.text(), "");
    written.say(0, 500_200, EventKind::Reopened);
    assert_eq!(written.now(500_200), "0 of 2 done  2 running  in 5.0 s");
}

/// A slot that is free for a moment is not one that nothing uses.
#[test]
fn an_end_is_told_with_what_starts_in_its_place() {
    let mut written = Written::new(4);
    (1..=2).for_each(|number| written.start(number, 0));
    written.end(1, 5_000);
    assert_eq!(written.text(), "");
    written.start(3, 5_000);
    assert!(
        written.text().starts_with(" 25 %  1 of 4 done  2 running  1 queued"),
        "{}",
        written.text()
    );
}

/// One that hangs beside others that take a second each.
#[test]
fn no_time_is_left_that_is_shorter_than_what_the_slowest_has_taken() {
    let mut written = Written::new(40);
    written.start(9, 0);
    for number in 1..=4 {
        written.start(number, u64::from(number) * 1000);
        written.end(number, u64::from(number) * 1000 + 1000);
    }
    written.start(8, 4_900);
    let early = written.now(5_000);
    assert!(early.contains("slowest") && early.contains(" left"), "34 in line: {early}");
    (10..=38).for_each(|number| {
        written.start(number, 200_000);
        written.end(number, 201_000);
    });
    written.start(39, 201_000);
    let almost = written.now(201_000);
    assert!(almost.contains("slowest") && !almost.contains(" left"), "{almost}");
}

/// Two ends within a second, and nothing in line.
#[test]
fn no_line_is_told_twice() {
    let mut written = Written::new(4);
    (1..=4).for_each(|number| written.start(number, 0));
    written.end(1, 5_000);
    written.end(2, 5_300);
    (6..9).for_each(|second| drop(written.now(second * 1000)));
    assert_eq!(written.text(), " 50 %  2 of 4 done  2 running  in 6.0 s  20.0/min\n");
}
