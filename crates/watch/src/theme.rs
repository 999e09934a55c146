//! The colours of the screen.

use offshoot_model::RunStatus;
use ratatui::style::{Color, Modifier, Style};

/// The use of colours. The ground is always that of the terminal, and colours are those that a terminal's own scheme fits to it: so a
/// picture can be read on a light ground and on a dark one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// No colour: bold, faint and reversed text alone.
    Plain,
    /// Statuses in colour.
    Colour,
}

impl Theme {
    pub(crate) fn status(self, status: RunStatus) -> Style {
        match status {
            RunStatus::Completed => self.in_colour(Color::Green),
            RunStatus::Failed | RunStatus::TimedOut => self.error(),
            RunStatus::Lost => self.in_colour(Color::Magenta).add_modifier(Modifier::BOLD),
            RunStatus::Cancelled | RunStatus::ClientGone => self.warning(),
            RunStatus::Starting | RunStatus::Running => self.in_colour(Color::Cyan),
            RunStatus::Waiting => self.in_colour(Color::Blue),
            RunStatus::Idle | RunStatus::Queued => self.faint(),
        }
    }

    pub(crate) fn warning(self) -> Style {
        self.in_colour(Color::Yellow)
    }

    /// Says that something should be looked at.
    pub(crate) fn alarm(self) -> Style {
        self.warning().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn error(self) -> Style {
        self.in_colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn in_colour(self, colour: Color) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Colour => Style::new().fg(colour),
        }
    }
}
