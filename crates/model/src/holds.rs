//! Reasons why trees are held back: the pauses of the operator, breakers that are open, quotas that are used up, paces of accounts, prompts that one
//! run sends first, memory that is short, and slots of the host or of an account that other runs hold.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_session_key::AgentId;
use serde::{Deserialize, Serialize};

use crate::{Account, Event, EventKind, RootId, RunId, Timestamp};

/// The reasons why trees are held back, as their events tell.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    /// The trees that are paused, each since when.
    paused: HashMap<RootId, Timestamp>,
    /// The agents of each tree whose breaker is open.
    breakers: Vec<(RootId, OpenBreaker)>,
    /// The trees of which runs wait for memory, each since when.
    memory: HashMap<RootId, Timestamp>,
    /// The trees of which runs wait for a slot of the host, each since when.
    host: HashMap<RootId, Timestamp>,
    /// The accounts of each tree of which a quota is used up.
    walls: Vec<(RootId, Wall)>,
    /// The accounts of each tree of which a bounded number of runs works at once.
    paces: Vec<(RootId, Pace)>,
    /// The runs of each tree for whose first answer others wait.
    primings: Vec<(RootId, Priming)>,
    /// The accounts of each tree of which runs wait for a slot.
    full_accounts: Vec<(RootId, FullAccount)>,
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

/// An account of which a bounded number of runs works at once, because its service had too much to do, or a quota has begun anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// The account.
    pub account: Account,
    /// The most runs at once.
    pub most: u32,
    /// The time since which there is a bound.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub since: Timestamp,
}

/// A run for whose first answer others wait, because they send the same long prompt and then read it from the cache of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Priming {
    /// The run that goes first.
    pub run: RunId,
    /// An estimate of the length of the prompt, in tokens.
    pub tokens: u64,
    /// The time since which the others wait.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub since: Timestamp,
}

/// An account of which as many runs hold a slot, over all trees of the user, as may: runs of it wait for the end of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FullAccount {
    /// The account.
    pub account: Account,
    /// The time since which runs wait.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub since: Timestamp,
}

/// An account while no run of it starts, because a quota of it is used up.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wall {
    /// The account.
    pub account: Account,
    /// The quota in the words of the service; none where the service does not name it.
    pub window: Option<Arc<str>>,
    /// The time since which no run starts.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub since: Timestamp,
    /// The time from which one run is started, whose first sign of success lets the others follow.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub until: Timestamp,
}

impl Wall {
    /// Returns what is used up, in words: `five_hour of claude`.
    pub fn quota(&self) -> String {
        match &self.window {
            Some(window) => format!("{window} of {}", self.account),
            None => self.account.to_string(),
        }
    }
}

impl Holds {
    /// Takes in one event. Returns true if it says that something is held back, or is no more.
    pub fn apply(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Paused => drop(self.paused.insert(event.root, event.at)),
            EventKind::Unpaused => drop(self.paused.remove(&event.root)),
            EventKind::Reopened => {
                self.paused.remove(&event.root);
                self.primings.retain(|(root, _)| *root != event.root);
            }
            EventKind::Priming { run, tokens } => {
                let (run, tokens, since) = (*run, *tokens, event.at);
                self.primings.push((event.root, Priming { run, tokens, since }));
            }
            EventKind::Primed { run } => self.primings.retain(|(_, it)| it.run != *run),
            EventKind::MemoryShort(_) => drop(self.memory.insert(event.root, event.at)),
            EventKind::MemoryEnough => drop(self.memory.remove(&event.root)),
            EventKind::HostFull => drop(self.host.insert(event.root, event.at)),
            EventKind::HostFree => drop(self.host.remove(&event.root)),
            EventKind::AccountFull { account } => {
                let (account, since) = (account.clone(), event.at);
                self.full_accounts.push((event.root, FullAccount { account, since }));
            }
            EventKind::AccountFree { account } => {
                let is_it =
                    |of: RootId, full: &FullAccount| of == event.root && full.account == *account;
                self.full_accounts.retain(|(of, full)| !is_it(*of, full));
            }
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
            EventKind::Parked { account, window, until, left: _ } => {
                let is_it = |(root, wall): &&mut (RootId, Wall)| {
                    *root == event.root && wall.account == *account
                };
                let (window, until) = (window.clone(), *until);
                match self.walls.iter_mut().find(is_it) {
                    Some((_, wall)) => (wall.window, wall.until) = (window, until),
                    None => {
                        let (account, since) = (account.clone(), event.at);
                        self.walls.push((event.root, Wall { account, window, since, until }));
                    }
                }
            }
            EventKind::Paced { account, most } => {
                let is_it =
                    |(root, pace): &(RootId, Pace)| *root == event.root && pace.account == *account;
                let known = self.paces.iter().position(is_it);
                let known = known.map(|place| self.paces.swap_remove(place).1.since);
                if let Some(most) = *most {
                    let since = known.unwrap_or(event.at);
                    self.paces.push((event.root, Pace { account: account.clone(), most, since }));
                }
            }
            EventKind::Unparked { account } => {
                self.walls.retain(|(root, wall)| *root != event.root || wall.account != *account);
            }
            _ => return false,
        }
        true
    }

    /// Returns since when a tree is paused.
    pub fn paused(&self, root: RootId) -> Option<Timestamp> {
        self.paused.get(&root).copied()
    }

    /// Returns since when runs of a tree wait for memory.
    pub fn memory_short(&self, root: RootId) -> Option<Timestamp> {
        self.memory.get(&root).copied()
    }

    /// Returns since when runs of a tree wait for a slot of the host.
    pub fn host_full(&self, root: RootId) -> Option<Timestamp> {
        self.host.get(&root).copied()
    }

    /// Returns the breakers of a tree that are open.
    pub fn open_breakers(&self, root: RootId) -> impl Iterator<Item = &OpenBreaker> {
        self.breakers.iter().filter(move |(of, _)| *of == root).map(|(_, open)| open)
    }

    /// Returns the accounts of a tree of which a bounded number of runs works at once.
    pub fn paces(&self, root: RootId) -> impl Iterator<Item = &Pace> {
        self.paces.iter().filter(move |(of, _)| *of == root).map(|(_, pace)| pace)
    }

    /// Returns the runs of a tree for whose first answer others wait.
    pub fn primings(&self, root: RootId) -> impl Iterator<Item = &Priming> {
        self.primings.iter().filter(move |(of, _)| *of == root).map(|(_, priming)| priming)
    }

    /// Returns the accounts of a tree of which runs wait for a slot, which the trees of the user share.
    pub fn full_accounts(&self, root: RootId) -> impl Iterator<Item = &FullAccount> {
        self.full_accounts.iter().filter(move |(of, _)| *of == root).map(|(_, full)| full)
    }

    /// Returns the accounts of a tree of which a quota is used up.
    pub fn walls(&self, root: RootId) -> impl Iterator<Item = &Wall> {
        self.walls.iter().filter(move |(of, _)| *of == root).map(|(_, wall)| wall)
    }
}
