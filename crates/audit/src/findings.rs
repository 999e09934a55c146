//! The findings of an audit.

use std::collections::BTreeMap;

use offshoot_model::{RootId, Rules, RunId, RunStatus};
use serde::Serialize;

use crate::{AccountPeak, Breach};

/// The counts of an audit, and the rules that were broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// The tree; none where there was no event.
    pub root: Option<RootId>,
    /// Kept events that were read.
    pub events: u64,
    /// Runs, the root included.
    pub runs: u64,
    /// Runs that agents have asked for and got.
    pub spawns: u64,
    /// Requests that were refused.
    pub refusals: u64,
    /// The greatest depth.
    pub deepest: u32,
    /// The most slots that were held at once. More than the limit where a wait ended without success; then no run was
    /// started until slots were free again.
    pub peak_concurrency: u32,
    /// The same for each depth, beginning with the root.
    pub peak_per_level: Vec<u32>,
    /// The accounts whose slots were bounded, over all trees of the user, with the most that this tree held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountPeak>,
    /// The root's limits, where it has said them.
    pub rules: Option<Rules>,
    /// The number of runs that ended in each state.
    pub endings: BTreeMap<RunStatus, u64>,
    /// Runs without an end: the tree still lives, or its supervisor died.
    pub unfinished: u64,
    /// Results that reached a parent.
    pub deliveries: Deliveries,
    /// Runs whose processes worked while they waited, with their slots lent.
    pub busy_waiting: Vec<Busy>,
    /// The balance of the root's budget, in each unit in which it is bounded.
    pub budgets: Vec<Account>,
    /// The number of times that the clock of the machine was set back between two events.
    pub clock_set_back: u64,
    /// Rules that could not be checked, because the record does not have the data.
    pub not_recorded: Vec<&'static str>,
    /// Broken rules, in the order of the record.
    pub breaches: Vec<Breach>,
}

/// Results that reached a parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deliveries {
    /// Different ones.
    pub results: u64,
    /// Repetitions, marked as such.
    pub repeated: u64,
    /// Results that were not received, because the parent was over or had stopped waiting.
    pub undelivered: u64,
}

/// The work of the processes of a run while it waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Busy {
    /// The run.
    pub run: RunId,
    /// The number of times that this was recorded.
    pub times: u64,
    /// CPU time, in milliseconds.
    pub cpu_ms: u64,
    /// The time for which it waited meanwhile, in milliseconds.
    pub wait_ms: u64,
}

impl Busy {
    pub(crate) const fn of(run: RunId) -> Self {
        Self { run, times: 0, cpu_ms: 0, wait_ms: 0 }
    }

    pub(crate) const fn add(&mut self, cpu_ms: u64, wait_ms: u64) {
        self.times += 1;
        self.cpu_ms = self.cpu_ms.saturating_add(cpu_ms);
        self.wait_ms = self.wait_ms.saturating_add(wait_ms);
    }
}

/// The balance of a budget: `used + overrun + reserved + free = granted + deficit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Of what.
    pub unit: Unit,
    /// The amount that was reserved.
    pub granted: u64,
    /// Used, within what was reserved for the run that used it.
    pub used: u128,
    /// Used beyond what was reserved.
    pub overrun: u128,
    /// Held for runs that live.
    pub reserved: u128,
    /// The amount that is left.
    pub free: u128,
    /// Used or promised beyond the grant.
    pub deficit: u128,
}

impl Account {
    pub(crate) fn new(unit: Unit, granted: u64, used: u128, overrun: u128, reserved: u128) -> Self {
        let taken = used + overrun + reserved;
        let free = u128::from(granted).saturating_sub(taken);
        let deficit = taken.saturating_sub(granted.into());
        Self { unit, granted, used, overrun, reserved, free, deficit }
    }
}

/// A quantity that a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Tokens of all four kinds.
    Tokens,
    /// Millionths of a dollar.
    MicroUsd,
}

impl Unit {
    /// The words for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::MicroUsd => "millionths of a dollar",
        }
    }
}
