//! The runs that are wanted on the screen.

use offshoot_model::{Node, RunStatus};

use crate::order::turned;

/// A choice of runs, by status and by text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) states: States,
    /// In lower case; empty for every run.
    pub(crate) text: String,
}

/// Statuses that belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum States {
    #[default]
    All,
    Running,
    Failed,
    Queued,
    Completed,
}

impl States {
    const ALL: [Self; 5] = [Self::All, Self::Running, Self::Failed, Self::Queued, Self::Completed];

    /// The next ones, or those before.
    pub(crate) fn turned(self, forward: bool) -> Self {
        turned(&Self::ALL, self, forward)
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Queued => "queued",
            Self::Completed => "completed",
        }
    }

    const fn take(self, status: RunStatus) -> bool {
        match self {
            Self::All => true,
            Self::Running => {
                matches!(status, RunStatus::Starting | RunStatus::Running | RunStatus::Waiting)
            }
            Self::Failed => status.is_terminal() && !status.is_success(),
            Self::Queued => matches!(status, RunStatus::Queued),
            Self::Completed => status.is_success(),
        }
    }
}

impl Filter {
    /// True if every run is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.states == States::All && self.text.is_empty()
    }

    /// True if this run is wanted.
    pub(crate) fn takes(&self, node: &Node) -> bool {
        self.states.take(node.status) && (self.text.is_empty() || self.is_named(node))
    }

    fn is_named(&self, node: &Node) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        node.label.as_deref().is_some_and(has)
            || has(node.agent.as_str())
            || has(node.status.as_ref())
            || node.run.to_string().starts_with(&self.text)
            || node.reported.as_deref().is_some_and(has)
            || node.why().as_deref().is_some_and(has)
    }
}
