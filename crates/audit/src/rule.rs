//! The rules that the audit counts again.

use offshoot_model::Rules;
use serde::Serialize;

/// A rule that the audit checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum Rule {
    /// Events of one tree, numbered without a gap.
    Sequence,
    /// Each run has the parent, the address and the depth that its admission says.
    Lineage,
    /// Each run goes through its states in order, ends once, and as it was asked to.
    States,
    /// No run is deeper than its parent may spawn.
    Depth,
    /// No run starts while as many run as are allowed.
    Concurrency,
    /// No more spawns than the tree may have.
    Spawns,
    /// No more spawns in a minute.
    SpawnRate,
    /// No more live children of one session.
    Children,
    /// No run goes on after its time or begins after the tree's, and none is stopped for its time before.
    Time,
    /// A run asks for agents that it may name.
    Agents,
    /// A chain of sessions does not go round in circles.
    Cycles,
    /// An agent that fails again and again gets no runs for a while.
    Breaker,
    /// A run begins again after a fault as often as it may, and only where nothing is done twice.
    Retries,
    /// Rights only shrink.
    Rights,
    /// Each promised amount was there, and a run that reached its limit was stopped.
    Budget,
    /// Use beyond a reservation is booked exactly.
    Overrun,
    /// A run starts once what it needs is over, and is skipped only where some of that did not complete.
    Needs,
    /// A result goes to the parent that asked, after it was recorded, and is repeated only as a repetition.
    Delivery,
}

/// All limits that a record says, each with the file that counts it again, so that the compiler asks where a new one is counted.
const _: fn(&Rules) = |rules| {
    let Rules {
        // slots.rs
        max_concurrent: _,
        max_concurrent_per_level: _,
        // spawns.rs
        max_children: _,
        max_spawns: _,
        max_spawns_per_minute: _,
        // audit/child.rs
        max_depth: _,
        max_returns: _,
        // audit/end.rs
        cascade: _,
        // faults.rs
        retries: _,
        retry_on: _,
        breaker_failures: _,
        breaker_cooldown_seconds: _,
        // time.rs
        deadline_seconds: _,
        run_timeout_seconds: _,
    } = rules;
};
