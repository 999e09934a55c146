//! How the work goes, while it goes.
//!
//! ```text
//!  events ──▶ Tally ──▶ on a terminal   one line with a bar, redrawn; failures in lines above it
//!             (pure)    elsewhere       a line whenever the percentage grows, and one per failure
//! ```
//!
//! Speed and time left come from the moments in the events, not from a clock: the same events say the same.

mod tally;

use std::fmt;
use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use offshoot_model::Event;

use crate::style::Style;
pub use tally::Tally;

/// Shows a tally to somebody. Whoever started it also [`finish`](Progress::finish)es it, so that the bar is gone
/// before results are printed. It moves with events alone: there is no thread that makes it tick.
pub struct Progress {
    tally: Tally,
    style: Style,
    screen: Screen,
}

enum Screen {
    Terminal(ProgressBar),
    Lines { out: Box<dyn Write + Send>, percent: u64 },
}

impl Progress {
    /// On a terminal, through a target that the caller made for it. `expected` is the number of runs, where it is
    /// known beforehand; else it grows with the runs that are admitted.
    pub fn on_terminal(target: ProgressDrawTarget, expected: Option<u64>, style: Style) -> Self {
        let template = match style {
            Style::Plain => "{bar:24} {wide_msg}",
            Style::Colour => "{bar:24.green/dim} {wide_msg}",
        };
        let look = ProgressStyle::with_template(template).expect("the template is valid");
        let bar = ProgressBar::with_draw_target(Some(expected.unwrap_or(0)), target)
            .with_style(look.progress_chars("━━─"));
        Self { tally: Tally::new(expected), style, screen: Screen::Terminal(bar) }
    }

    /// In plain lines, for logs and pipes.
    pub fn in_lines(out: Box<dyn Write + Send>, expected: Option<u64>, style: Style) -> Self {
        Self { tally: Tally::new(expected), style, screen: Screen::Lines { out, percent: 0 } }
    }

    /// Takes in one event, of any run, in the order in which they happened. A screen that cannot be written to is
    /// no reason to stop the work: it just shows nothing.
    pub fn apply(&mut self, event: &Event) {
        let failure = self.tally.apply(event).map(|failure| failure.text(self.style));
        let (ended, total) = (self.tally.ended(), self.tally.total());
        match &mut self.screen {
            Screen::Terminal(bar) => {
                if let Some(failure) = failure {
                    bar.println(failure);
                }
                bar.set_length(total);
                bar.set_position(ended);
                bar.set_message(self.tally.to_string());
            }
            Screen::Lines { out, percent } => {
                if let Some(failure) = failure {
                    let _ = writeln!(out, "{failure}");
                }
                let now = self.tally.percent();
                if now > *percent {
                    *percent = now;
                    let _ = writeln!(out, "{now:3} %  {}", self.tally);
                }
            }
        }
    }

    /// Says something beside the progress, in a line that stays. What is printed past a bar would be drawn over.
    pub fn note(&mut self, text: &str) {
        match &mut self.screen {
            Screen::Terminal(bar) => bar.println(text),
            Screen::Lines { out, .. } => drop(writeln!(out, "{text}")),
        }
    }

    /// What has been counted so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Takes the bar away, and gives what was counted.
    pub fn finish(mut self) -> Tally {
        match &mut self.screen {
            Screen::Terminal(bar) => bar.finish_and_clear(),
            Screen::Lines { out, .. } => drop(out.flush()),
        }
        self.tally
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("tally", &self.tally).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
