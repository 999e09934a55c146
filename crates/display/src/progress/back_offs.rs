//! Runs that wait before they ask their service again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{BackOff, Event, EventKind, RunId, Timestamp};

/// A wait that is no longer than this is not told: services often refuse one call of many.
const TOLD_FROM: Duration = Duration::from_secs(5);

/// The runs that wait before they ask their service again, each with the time since which it does.
#[derive(Clone, Debug, Default)]
pub(super) struct BackOffs {
    since: HashMap<RunId, Timestamp>,
    /// The first long wait since none waited.
    told: Option<BackOff>,
}

impl BackOffs {
    /// Takes in one event, of any run.
    pub(super) fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::BacksOff { why, until } => {
                let since = *self.since.entry(event.run).or_insert(event.at);
                if self.told.is_none() && until.since(since) >= TOLD_FROM {
                    self.told = Some(BackOff { since, until: *until, why: Arc::clone(why) });
                }
            }
            EventKind::Answered | EventKind::Ended(_) | EventKind::Resumed { .. } => {
                self.since.remove(&event.run);
                self.told.take_if(|_| self.since.is_empty());
            }
            EventKind::Reopened => *self = Self::default(),
            _ => {}
        }
    }

    /// Returns the number of runs that wait.
    pub(super) fn count(&self) -> u64 {
        self.since.len() as u64
    }

    /// Returns the first long wait since none waited.
    pub(super) const fn told(&self) -> Option<&BackOff> {
        self.told.as_ref()
    }
}
