//! The reasons why a tree is held back.

use std::sync::Arc;
use std::time::Duration;

use offshoot_session_key::AgentId;
use serde::{Deserialize, Serialize};

use crate::{Account, Event, EventKind, RunId, Timestamp};

/// The reasons why nothing more of a tree starts, or no run of some agents or accounts; JSON has those that there are. What holds back one
/// run alone stands beside it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeHolds {
    /// The time since which the tree is paused.
    #[serde(default, serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub paused_since: Option<Timestamp>,
    /// The time since which runs wait for memory.
    #[serde(default, serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub memory_short_since: Option<Timestamp>,
    /// The time since which runs wait for a slot of the host.
    #[serde(default, serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub host_full_since: Option<Timestamp>,
    /// The agents of which no run starts for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_breakers: Vec<OpenBreaker>,
    /// The accounts of which no run starts before the reset of a quota.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub walls: Vec<Wall>,
    /// The accounts of which a bounded number of runs works at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paces: Vec<Pace>,
    /// The runs for whose first answer others wait that send the same prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub primings: Vec<Priming>,
    /// The accounts of which runs wait for a slot, which the trees of the user share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub full_accounts: Vec<FullAccount>,
    /// The runs whose pieces wait because of the budget that they share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_pools: Vec<ShortPool>,
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

/// A run whose pieces share its budget, while one of them waits for the end of another: what is left may not pay for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShortPool {
    /// The run that has asked for the pieces.
    pub run: RunId,
    /// The time since which a piece waits.
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

impl TreeHolds {
    /// A tree that nothing holds back.
    pub const NONE: Self = Self {
        paused_since: None,
        memory_short_since: None,
        host_full_since: None,
        open_breakers: Vec::new(),
        walls: Vec::new(),
        paces: Vec::new(),
        primings: Vec::new(),
        full_accounts: Vec::new(),
        short_pools: Vec::new(),
    };

    /// True if nothing holds the tree back.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Takes in one event of the tree. Returns true if it says that something is held back, or is no more.
    pub fn apply(&mut self, event: &Event) -> bool {
        let at = event.at;
        match &event.kind {
            EventKind::Paused => self.paused_since = Some(at),
            EventKind::Unpaused => self.paused_since = None,
            EventKind::Reopened => {
                self.paused_since = None;
                self.primings.clear();
                self.short_pools.clear();
            }
            EventKind::MemoryShort(_) => self.memory_short_since = Some(at),
            EventKind::MemoryEnough => self.memory_short_since = None,
            EventKind::HostFull => self.host_full_since = Some(at),
            EventKind::HostFree => self.host_full_since = None,
            EventKind::Priming { run, tokens } => {
                self.primings.push(Priming { run: *run, tokens: *tokens, since: at });
            }
            EventKind::Primed { run } => self.primings.retain(|it| it.run != *run),
            EventKind::PoolShort { run } => {
                self.short_pools.push(ShortPool { run: *run, since: at });
            }
            EventKind::PoolEnough { run } => self.short_pools.retain(|it| it.run != *run),
            EventKind::AccountFull { account } => {
                self.full_accounts.push(FullAccount { account: account.clone(), since: at });
            }
            EventKind::AccountFree { account } => {
                self.full_accounts.retain(|full| full.account != *account);
            }
            EventKind::BreakerOpened { agent, faults, wait_ms } => {
                let until = at.plus(Duration::from_millis(*wait_ms));
                let (agent, faults) = (agent.clone(), *faults);
                match self.open_breakers.iter_mut().find(|open| open.agent == agent) {
                    // The run that was let through has failed, too.
                    Some(open) => (open.until, open.faults) = (until, faults),
                    None => {
                        self.open_breakers.push(OpenBreaker { agent, since: at, until, faults });
                    }
                }
            }
            EventKind::BreakerClosed { agent } => {
                self.open_breakers.retain(|open| open.agent != *agent);
            }
            EventKind::Parked { account, window, until, left: _ } => {
                let (account, window, until) = (account.clone(), window.clone(), *until);
                match self.walls.iter_mut().find(|wall| wall.account == account) {
                    Some(wall) => (wall.window, wall.until) = (window, until),
                    None => self.walls.push(Wall { account, window, since: at, until }),
                }
            }
            EventKind::Unparked { account } => self.walls.retain(|wall| wall.account != *account),
            EventKind::Paced { account, most } => {
                let known = self.paces.iter().position(|pace| pace.account == *account);
                let known = known.map(|place| self.paces.swap_remove(place).since);
                self.paces.extend(most.map(|most| {
                    let since = known.unwrap_or(at);
                    Pace { account: account.clone(), most, since }
                }));
            }
            _ => return false,
        }
        true
    }
}
