//! The reasons why a run, or its whole tree, is held back, as JSON has them.

use offshoot_display::Hold;
use offshoot_model::{BackOff, Node, Parked, Timestamp, Tree, TreeHolds};
use serde::Serialize;

/// The reasons that hold a run back; of a root, those that hold its tree back.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldRun {
    /// At the root what holds the tree back, at a run in line what of it holds the run.
    #[serde(flatten)]
    holds: TreeHolds,
    /// The time since which a request of it to a model waits for room in the budget.
    #[serde(serialize_with = "offshoot_model::rfc3339", skip_serializing_if = "Option::is_none")]
    at_cap_since: Option<Timestamp>,
    /// The wait before its next call to a service that has refused or broken off the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    backs_off: Option<BackOff>,
    /// The other attempt that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    parked: Option<Parked>,
}

impl HeldRun {
    /// Returns what holds a run back.
    pub(crate) fn of(tree: &Tree, node: &Node) -> Self {
        let mut held = Self::default();
        let holds = &mut held.holds;
        for hold in Hold::of(tree, node) {
            match hold {
                Hold::Paused(since) => holds.paused_since = Some(since),
                Hold::Breaker(open) => holds.open_breakers.push(open.clone()),
                Hold::Wall(wall) => holds.walls.push(wall.clone()),
                Hold::Pace(pace) => holds.paces.push(pace.clone()),
                Hold::Priming(priming) => holds.primings.push(priming.clone()),
                Hold::Pool(pool) => holds.short_pools.push(pool.clone()),
                Hold::Account(full) => holds.full_accounts.push(full.clone()),
                Hold::Memory(since) => holds.memory_short_since = Some(since),
                Hold::Host(since) => holds.host_full_since = Some(since),
                Hold::Cap(since) => held.at_cap_since = Some(since),
                Hold::BacksOff(back_off) => held.backs_off = Some(back_off.clone()),
                Hold::Parked(parked) => held.parked = Some(parked.clone()),
            }
        }
        held
    }
}
