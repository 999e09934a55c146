//! Reasons why trees are held back: the pauses of the operator, and breakers that are open.

use std::collections::HashMap;
use std::time::Duration;

use offshoot_session_key::AgentId;
use serde::{Deserialize, Serialize};

use crate::{Event, EventKind, RootId, Timestamp};

/// The reasons why trees are held back, as their events tell.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    /// The trees that are paused, each since when.
    paused: HashMap<RootId, Timestamp>,
    /// The agents of each tree whose breaker is open.
    breakers: Vec<(RootId, OpenBreaker)>,
}

/// The breaker of an agent, while it is open: the runtime has failed too often in a row, and no run of the agent starts for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenBreaker {
    /// The agent.
    pub agent: AgentId,
    /// The time at which it opened.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub since: Timestamp,
    /// The time from which one run is let through, whose end decides.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub until: Timestamp,
    /// The faults in a row.
    pub faults: u32,
}

impl Holds {
    /// Takes in one event. Returns true if it says that something is held back, or is no more.
    pub fn apply(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Paused => drop(self.paused.insert(event.root, event.at)),
            EventKind::Unpaused | EventKind::Reopened => drop(self.paused.remove(&event.root)),
            EventKind::BreakerOpened { agent, faults, wait_ms } => {
                let until = event.at.plus(Duration::from_millis(*wait_ms));
                let is_it = |(root, open): &&mut (RootId, OpenBreaker)| {
                    *root == event.root && open.agent == *agent
                };
                match self.breakers.iter_mut().find(is_it) {
                    // The run that was let through has failed, too.
                    Some((_, open)) => (open.until, open.faults) = (until, *faults),
                    None => {
                        let (agent, since, faults) = (agent.clone(), event.at, *faults);
                        let open = OpenBreaker { agent, since, until, faults };
                        self.breakers.push((event.root, open));
                    }
                }
            }
            EventKind::BreakerClosed { agent } => {
                self.breakers.retain(|(root, open)| *root != event.root || open.agent != *agent);
            }
            _ => return false,
        }
        true
    }

    /// Returns since when a tree is paused.
    pub fn paused(&self, root: RootId) -> Option<Timestamp> {
        self.paused.get(&root).copied()
    }

    /// Returns the breakers of a tree that are open.
    pub fn open_breakers(&self, root: RootId) -> impl Iterator<Item = &OpenBreaker> {
        self.breakers.iter().filter(move |(of, _)| *of == root).map(|(_, open)| open)
    }
}
