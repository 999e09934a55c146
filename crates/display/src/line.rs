//! An event in a line.

use std::fmt;

use offshoot_model::{Ending, Event, EventKind, Grant};

use crate::branch::reason_beside;
use crate::rights::changed;
use crate::style::Style;
use crate::{neutral, number, used};

/// Returns an event as a line: its time, run, word and text. For streams that are no terminal, and for reading a record.
pub fn line(event: &Event) -> Line<'_> {
    Line { event, style: Style::Plain, above: None }
}

/// See [`line()`]. Shown without a newline.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    event: &'a Event,
    style: Style,
    above: Option<&'a Grant>,
}

impl<'a> Line<'a> {
    /// With the terms of the parent: what the child got otherwise stands behind its admission.
    #[must_use]
    pub const fn above(mut self, parent: Option<&'a Grant>) -> Self {
        self.above = parent;
        self
    }

    /// In this style; plain unless asked.
    #[must_use]
    pub const fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { at, run, kind, .. } = self.event;
        let beside = format!("{}  {run}", number::moment(*at));
        write!(f, "{}  ", self.style.faint(beside))?;
        match kind {
            EventKind::Ended(ending) => return self.ended(ending, f),
            EventKind::Refused { .. } | EventKind::Removal { error: Some(_) } => {
                write!(f, "{}", self.style.warning(kind.name()))?
            }
            _ => f.write_str(kind.name())?,
        }
        match neutral::line(&kind.text()) {
            text if text.is_empty() => Ok(()),
            text => write!(f, "  {text}"),
        }?;
        match (kind, self.above) {
            (EventKind::Admitted(admitted), Some(parent)) => {
                changed(parent, &admitted.grant).iter().try_for_each(|line| write!(f, "; {line}"))
            }
            _ => Ok(()),
        }
    }
}

impl Line<'_> {
    fn ended(&self, ending: &Ending, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = ending.status();
        write!(f, "{}", self.style.status(status))?;
        if ending.execution_time_ms > 0 {
            write!(f, "  {}", number::milliseconds(ending.execution_time_ms))?;
        }
        if let Some(used) = used(&ending.usage, &ending.cost) {
            write!(f, "  {used}")?;
        }
        match why(ending) {
            Some(why) => write!(f, "  {why}"),
            None => Ok(()),
        }
    }
}

/// Returns the reason why a run is no success, in one line, with the cause and what the run itself says of it.
pub(crate) fn why(ending: &Ending) -> Option<String> {
    let status = ending.status();
    (!status.is_success()).then(|| reason_beside(status, &ending.account()))
}
