//! Colours, where they are wanted.

use std::fmt;

use anstyle::AnsiColor;
use offshoot_model::RunStatus;

/// The use of colours. The caller decides, who knows the stream and `NO_COLOR`; nothing here looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// No escape sequence at all.
    #[default]
    Plain,
    /// Statuses in colour, what is beside the point dimmed.
    Colour,
}

/// Returns a status in words, as people read it.
pub fn status_words(status: RunStatus) -> String {
    status.as_ref().replace('_', " ")
}

impl Style {
    pub(crate) fn status(self, status: RunStatus) -> Painted<impl fmt::Display> {
        let style = match status {
            RunStatus::Completed => AnsiColor::Green.on_default(),
            RunStatus::Failed | RunStatus::TimedOut => AnsiColor::Red.on_default().bold(),
            RunStatus::Lost => AnsiColor::Magenta.on_default().bold(),
            RunStatus::Cancelled | RunStatus::ClientGone => AnsiColor::Yellow.on_default(),
            RunStatus::Starting | RunStatus::Running => AnsiColor::Cyan.on_default(),
            RunStatus::Waiting => AnsiColor::Blue.on_default(),
            RunStatus::Idle | RunStatus::Queued => anstyle::Style::new().dimmed(),
        };
        self.paint(style, status)
    }

    pub(crate) fn faint<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(anstyle::Style::new().dimmed(), text)
    }

    pub(crate) fn warning<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    fn paint<T: fmt::Display>(self, style: anstyle::Style, text: T) -> Painted<T> {
        let style = match self {
            Self::Plain => anstyle::Style::new(),
            Self::Colour => style,
        };
        Painted { style, text }
    }
}

/// A text in a colour. A width given to it counts the text, not the escape sequences.
pub(crate) struct Painted<T> {
    style: anstyle::Style,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.style.render())?;
        self.text.fmt(f)?;
        write!(f, "{}", self.style.render_reset())
    }
}
