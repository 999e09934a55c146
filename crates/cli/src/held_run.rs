//! The reasons why a run, or its whole tree, is held back, as JSON has them.

use offshoot_display::Hold;
use offshoot_model::{
    BackOff, FullAccount, Node, OpenBreaker, Pace, Parked, Priming, Timestamp, Tree, Wall,
};
use serde::Serialize;

/// The reasons that hold a run back; of a root, those that hold its tree back.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldRun {
    /// The time since which the tree is paused, at its root and at runs in line.
    #[serde(serialize_with = "offshoot_model::rfc3339", skip_serializing_if = "Option::is_none")]
    paused_since: Option<Timestamp>,
    /// The time since which it waits for memory, at a run in line; at the root that one does.
    #[serde(serialize_with = "offshoot_model::rfc3339", skip_serializing_if = "Option::is_none")]
    memory_short_since: Option<Timestamp>,
    /// The time since which it waits for a slot of the host, at a run in line; at the root that one does.
    #[serde(serialize_with = "offshoot_model::rfc3339", skip_serializing_if = "Option::is_none")]
    host_full_since: Option<Timestamp>,
    /// The time since which a request of it to a model waits for more budget.
    #[serde(serialize_with = "offshoot_model::rfc3339", skip_serializing_if = "Option::is_none")]
    at_cap_since: Option<Timestamp>,
    /// The wait before its next call to a service that has refused or broken off the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    backs_off: Option<BackOff>,
    /// The agents of which no run starts for a while, at the root; at a run in line its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_breakers: Vec<OpenBreaker>,
    /// The accounts of which no run starts before the reset of a quota, at the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    walls: Vec<Wall>,
    /// The accounts of which a bounded number of runs works at once, at the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paces: Vec<Pace>,
    /// The runs for whose first answer others wait that send the same prompt, at the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    primings: Vec<Priming>,
    /// The accounts of which runs wait for a slot, which the trees of the user share, at the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    full_accounts: Vec<FullAccount>,
    /// The other attempt that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    parked: Option<Parked>,
}

impl HeldRun {
    /// Returns what holds a run back.
    pub(crate) fn of(tree: &Tree, node: &Node) -> Self {
        let mut held = Self::default();
        for hold in Hold::of(tree, node) {
            match hold {
                Hold::Paused(since) => held.paused_since = Some(since),
                Hold::Breaker(open) => held.open_breakers.push(open.clone()),
                Hold::Wall(wall) => held.walls.push(wall.clone()),
                Hold::Pace(pace) => held.paces.push(pace.clone()),
                Hold::Priming(priming) => held.primings.push(priming.clone()),
                Hold::Account(full) => held.full_accounts.push(full.clone()),
                Hold::Memory(since) => held.memory_short_since = Some(since),
                Hold::Host(since) => held.host_full_since = Some(since),
                Hold::Cap(since) => held.at_cap_since = Some(since),
                Hold::BacksOff(back_off) => held.backs_off = Some(back_off.clone()),
                Hold::Parked(parked) => held.parked = Some(parked.clone()),
            }
        }
        held
    }
}
