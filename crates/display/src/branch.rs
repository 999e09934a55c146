//! Lines that stand below each other, with guides between them, and what a line says of a run.

use std::fmt;
use std::time::Duration;

use offshoot_model::{Node, RunStatus, Timestamp};

use crate::style::Style;
use crate::{neutral, number, status_words};

/// A line with the lines below it. Shown without a newline at its end.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The line.
    pub text: String,
    /// The lines below it.
    pub below: Vec<Branch>,
    /// The style of the guides.
    pub style: Style,
}

/// The text of a run's line, beside its name.
#[derive(Clone, Debug, Default)]
pub struct RunLine<'a> {
    /// The state of the run. None where it is a word of a later version.
    pub status: Option<RunStatus>,
    /// The time from its first slot to its end.
    pub time: Option<Duration>,
    /// True if it may have run for longer: its supervisor was killed.
    pub is_at_least: bool,
    /// The time since its last sign of life, where it runs.
    pub silence: Option<Duration>,
    /// The tokens and the money that it used.
    pub used: Option<String>,
    /// The last words in which the run reported how it goes.
    pub reported: Option<&'a str>,
    /// The reason why the run is no success.
    pub reason: Option<String>,
    /// The reason why its folder is still there although it was to be removed.
    pub not_removed: Option<&'a str>,
    /// The style of the status.
    pub style: Style,
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.write_below(&mut String::new(), f)
    }
}

impl Branch {
    /// Guides are kept as one text for all levels, to which each level adds its own.
    fn write_below(&self, guides: &mut String, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.below.len().saturating_sub(1);
        for (position, line) in self.below.iter().enumerate() {
            let (branch, guide) =
                if position == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let before = self.style.faint(format!("{guides}{branch}"));
            write!(f, "\n{before}{}", line.text)?;
            let length = guides.len();
            guides.push_str(guide);
            line.write_below(guides, f)?;
            guides.truncate(length);
        }
        Ok(())
    }
}

impl fmt::Display for RunLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{}", self.style.status(status))?,
            None => f.write_str("unknown")?,
        }
        let time = self.time.map(|time| at_least(time, self.is_at_least));
        let silence = self.silence.map(|time| format!("silent {}", number::duration(time)));
        let reason = self.reason.as_deref().filter(|_| self.status != Some(RunStatus::Completed));
        let reason = reason.map(|reason| neutral::line(reason).into_owned());
        let left = self.not_removed.map(|error| format!("not removed: {}", neutral::line(error)));
        let reported = self.reported.map(|text| format!("\"{}\"", neutral::line(text)));
        let parts = [time, silence, self.used.clone(), reported, reason, left];
        parts.into_iter().flatten().try_for_each(|part| write!(f, "  {part}"))
    }
}

/// Returns the time for which a run has held a slot, as of this moment: `4.1 s`. Where its supervisor was killed, no more is known than
/// that it was so long: `≥ 4.1 s`. None where it has not begun.
pub fn time(node: &Node, now: Timestamp) -> Option<String> {
    node.age(now).map(|age| at_least(age, node.left_at().is_some()))
}

fn at_least(time: Duration, is_at_least: bool) -> String {
    format!("{}{}", if is_at_least { "≥ " } else { "" }, number::duration(time))
}

/// Returns the reason of a run's end as it stands behind the status; none while it lives, and none of a success.
pub fn why(node: &Node) -> Option<String> {
    if node.status.is_success() { None } else { Some(reason_beside(node.status, &node.why()?)) }
}

/// Returns a reason in words as it stands behind the status, which is not said twice: `cancelled  by its parent`.
pub fn reason_beside(status: RunStatus, reason: &str) -> String {
    let status = status_words(status);
    let rest = reason.strip_prefix(&status).map(str::trim_start).filter(|rest| !rest.is_empty());
    neutral::line(rest.unwrap_or(reason)).into_owned()
}
