//! The progress of the runs while they run.
//!
//! ```text
//!  events ──▶ Tally ──▶ on a terminal   one line with a bar, redrawn; failures in lines above it, what was stopped in one at the end
//!             (pure)    │               or the tree as it grows, where the number of runs is not known
//!                       elsewhere       a line whenever the percentage grows, and one per failure
//! ```
//!
//! Speed and time left come from the moments in the events, not from a clock: the same events say the same. So that a run that says
//! nothing is seen, the owner tells the time now and then.

mod back_offs;
mod tally;

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use offshoot_model::{Event, EventKind, Timestamp, Tree};

use crate::held::{Hold, back_off};
use crate::style::Style;
use crate::tree::{Shows, TreeText};
pub use tally::Tally;

/// Shows a tally. Its owner also [`finish`](Progress::finish)es it, so that the bar is gone
/// before results are printed. It moves with events alone: there is no thread that makes it tick.
#[derive(derive_more::Debug)]
#[debug("Progress({tally:?})")]
pub struct Progress {
    tally: Tally,
    style: Style,
    screen: Screen,
}

/// The lines that a progress redraws on a terminal, for other parts of the process that write to it too. Empty once the progress is
/// finished.
#[derive(Clone, derive_more::Debug)]
#[debug("Redrawn")]
pub struct Redrawn(WeakProgressBar);

impl Redrawn {
    /// Takes the lines away, writes, and draws them again.
    pub fn suspend(&self, write: impl FnOnce()) {
        match self.0.upgrade() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// A picture of a large tree takes its time, so it is drawn again no sooner than this.
const REDRAW: Duration = Duration::from_millis(50);

/// The shortest time between two lines that say how far the work is, where lines are written.
const TOLD_NO_SOONER: Duration = Duration::from_secs(1);

/// The longest time without a line, where lines are written.
const TOLD_AGAIN: Duration = Duration::from_secs(30);

/// A terminal of so many columns has room for a long bar.
const WIDE: usize = 140;

/// A tree of so many runs is drawn at every event; the terminal's own bound is stricter.
const SMALL: usize = 200;

enum Screen {
    /// With the columns beside the bar.
    Terminal(ProgressBar, usize),
    Growing {
        bar: ProgressBar,
        tree: Box<Tree>,
        rows: usize,
        drawn: Option<Timestamp>,
    },
    Lines {
        out: Box<dyn Write + Send>,
        percent: u64,
        told: Option<Timestamp>,
        /// True once a line has said that all is over.
        told_over: bool,
        /// True while a line about an end waits for what starts in its place.
        waits: bool,
        /// The slow run that was named last.
        slow: Option<String>,
        /// The reasons why the tree was held back at the last event.
        held: Vec<String>,
    },
}

impl Progress {
    /// On a terminal of so many columns, through a target that the caller made for it. `expected` is the number of runs, where it is
    /// known beforehand; else it grows with the runs that are admitted.
    pub fn on_terminal(
        target: ProgressDrawTarget,
        expected: Option<u64>,
        columns: usize,
        style: Style,
    ) -> Self {
        let bar = if columns < WIDE { 10 } else { 24 };
        let template = match style {
            Style::Plain => format!("{{bar:{bar}}} {{wide_msg}}"),
            Style::Colour => format!("{{bar:{bar}.green/dim}} {{wide_msg}}"),
        };
        let look = ProgressStyle::with_template(&template).expect("the template is valid");
        // Beside the bar and a space.
        let columns = columns.saturating_sub(bar + 1);
        let bar = ProgressBar::with_draw_target(Some(expected.unwrap_or(0)), target)
            .with_style(look.progress_chars("━━─"));
        Self { tally: Tally::new(expected), style, screen: Screen::Terminal(bar, columns) }
    }

    /// The tree as it grows, on a terminal, in so many rows at most.
    pub fn growing(target: ProgressDrawTarget, rows: usize, style: Style) -> Self {
        let look = ProgressStyle::with_template("{msg}").expect("the template is valid");
        let bar = ProgressBar::with_draw_target(None, target).with_style(look);
        let screen = Screen::Growing { bar, tree: Box::default(), rows, drawn: None };
        Self { tally: Tally::new(None), style, screen }
    }

    /// In plain lines, for logs and pipes.
    pub fn in_lines(out: Box<dyn Write + Send>, expected: Option<u64>, style: Style) -> Self {
        Self { tally: Tally::new(expected), style, screen: Screen::lines(out, 0) }
    }

    /// The failures alone, in plain lines.
    pub fn failures(out: Box<dyn Write + Send>, style: Style) -> Self {
        // No percentage comes up to this one.
        Self { tally: Tally::new(None), style, screen: Screen::lines(out, 101) }
    }

    /// Counts what happened before this moment, in an earlier life of the tree, without a line about it.
    pub fn since(self, since: Timestamp) -> Self {
        Self { tally: self.tally.since(since), ..self }
    }

    /// Takes in one event, of any run, in the order in which they happened. A screen that cannot be written to is
    /// no reason to stop the work: it just shows nothing.
    pub fn apply(&mut self, event: &Event) {
        if let Some(failure) = self.tally.apply(event) {
            self.note(&failure.text(self.style));
        }
        let (ended, total) = (self.tally.ended(), self.tally.total());
        match &mut self.screen {
            Screen::Terminal(bar, columns) => {
                bar.set_length(total);
                bar.set_position(ended);
                bar.set_message(self.tally.within(*columns));
            }
            Screen::Growing { bar, tree, rows, drawn } => {
                tree.apply(event);
                let is_due = drawn.is_none_or(|at| event.at.since(at) >= REDRAW);
                if is_due || tree.nodes().count() <= SMALL {
                    *drawn = Some(event.at);
                    bar.set_message(picture(tree, &self.tally, event.at, *rows, self.style));
                }
            }
            Screen::Lines { out, percent, told, told_over, waits, held: told_held, .. } => {
                let mut held: Vec<String> = self.tally.held().map(Hold::text).collect();
                held.extend(
                    self.tally.back_offs.told().map(|it| format!("a run is {}", back_off(it))),
                );
                let is_news = *percent <= 100 && self.tally.is_told(event.at);
                for new in held.iter().filter(|text| is_news && !told_held.contains(text)) {
                    let _ = writeln!(out, "{:3} %  {new}", self.tally.percent());
                }
                *told_held = held;
                let now = self.tally.percent();
                // Less than before where pieces run again.
                if *percent <= 100 {
                    *percent = now.min(*percent);
                }
                let is_end = matches!(event.kind, EventKind::Ended(_));
                // A start in the place of a run that ended is told with its end.
                if matches!(event.kind, EventKind::Starting) && std::mem::take(waits) {
                    *percent = now;
                    let _ = writeln!(out, "{now:3} %  {}", self.tally);
                }
                let is_due = told.is_none_or(|told| event.at.since(told) >= TOLD_NO_SOONER);
                // The end is told at once; where runs follow that ask about answers, it comes again after each of them.
                let is_over = ended == total && !*told_over && *percent <= 100;
                let is_due = is_over || is_due && now > *percent;
                if is_end && is_due && self.tally.is_told(event.at) {
                    (*percent, *told) = (now, Some(event.at));
                    *told_over |= is_over;
                    *waits = !is_over;
                    if is_over {
                        let _ = writeln!(out, "{now:3} %  {}", self.tally);
                    }
                }
            }
        }
    }

    /// Tells that it is this moment now: ages and silences are drawn anew. Without a terminal a line is written where there was none
    /// for half a minute, and where a run begins to take much longer than those before it.
    pub fn tick(&mut self, now: Timestamp) {
        if self.tally.reads_back() {
            // The time without a supervisor is known once its end is.
            return;
        }
        self.tally.at(now);
        let (ended, total) = (self.tally.ended(), self.tally.total());
        match &mut self.screen {
            Screen::Terminal(bar, columns) => bar.set_message(self.tally.within(*columns)),
            Screen::Growing { bar, tree, rows, drawn } => {
                *drawn = Some(now);
                bar.set_message(picture(tree, &self.tally, now, *rows, self.style));
            }
            Screen::Lines { out, percent, told, slow, waits, .. } => {
                let since = *told.get_or_insert(now);
                let slowest = self.tally.slowest();
                let is_new = slowest.is_some() && slowest != *slow;
                // In an earlier life all may have ended that this one would tell of.
                let (so_far, tells) = (self.tally.percent(), *percent <= 100);
                // Ends that came right after a line are told once no other does it.
                let is_behind = so_far > *percent && now.since(since) >= TOLD_NO_SOONER;
                let is_due = is_new || is_behind || now.since(since) >= TOLD_AGAIN;
                if std::mem::take(waits) || tells && ended < total && is_due {
                    (*told, *slow) = (Some(now), slowest);
                    *percent = so_far;
                    let _ = writeln!(out, "{so_far:3} %  {}", self.tally);
                }
            }
        }
    }

    /// Says something beside the progress, in a line that stays. What is printed past a bar would be drawn over.
    pub fn note(&mut self, text: &str) {
        match &mut self.screen {
            Screen::Terminal(bar, _) | Screen::Growing { bar, .. } => bar.println(text),
            Screen::Lines { out, .. } => drop(writeln!(out, "{text}")),
        }
    }

    /// Returns the lines that are redrawn; none where nothing is drawn over.
    pub fn redrawn(&self) -> Option<Redrawn> {
        match &self.screen {
            Screen::Terminal(bar, _) | Screen::Growing { bar, .. } => {
                Some(Redrawn(bar.downgrade()))
            }
            Screen::Lines { .. } => None,
        }
    }

    /// Returns the counts so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Takes the bar away, says in a line for each reason how many runs were stopped, names the last failures again below that where
    /// other lines stand between, and gives what was counted.
    pub fn finish(mut self) -> Tally {
        if let Screen::Lines { out, waits: true, .. } = &mut self.screen {
            let _ = writeln!(out, "{:3} %  {}", self.tally.percent(), self.tally);
        }
        let mut last_words: Vec<String> =
            self.tally.stopped().map(|stopped| stopped.text(self.style)).collect();
        // On a terminal they stand right above.
        if matches!(self.screen, Screen::Lines { .. }) {
            last_words.extend(self.tally.failures_before(self.style));
        }
        last_words.iter().for_each(|line| self.note(line));
        match &mut self.screen {
            Screen::Terminal(bar, _) | Screen::Growing { bar, .. } => bar.finish_and_clear(),
            Screen::Lines { out, .. } => drop(out.flush()),
        }
        self.tally
    }
}

impl Screen {
    /// Lines, of which none has told a percentage above this one.
    fn lines(out: Box<dyn Write + Send>, percent: u64) -> Self {
        let (told, told_over, slow, held) = (None, false, None, Vec::new());
        Self::Lines { out, percent, told, told_over, waits: false, slow, held }
    }
}

/// As much of the tree as fits.
fn picture(tree: &Tree, tally: &Tally, now: Timestamp, rows: usize, style: Style) -> String {
    let silences = tally.silences();
    let (now, silences) = (Some(now), Some(&silences));
    let text = TreeText { style, shows: Shows::Busy, now, silences, ..TreeText::new(tree) };
    let text = text.to_string();
    let lines = text.lines().count();
    if lines <= rows {
        return text;
    }
    let shown = rows.saturating_sub(1);
    let mut cut: Vec<&str> = text.lines().take(shown).collect();
    let more = format!("… {} more lines", lines - shown);
    cut.push(&more);
    cut.join("\n")
}

#[cfg(test)]
mod tests;
