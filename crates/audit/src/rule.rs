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
    /// Parent, key and depth agree; the parent had started, was not over and not asked to stop.
    Lineage,
    /// Queued → starting → running ⇄ waiting → one end, and that for the reason it was asked to stop for. Only a root of pieces is reopened, and a piece
    /// has its place alone or names the run without an answer that had it.
    States,
    /// No run is deeper than its parent may spawn, and no child may spawn deeper than a setting above it says.
    Depth,
    /// No run starts while as many hold a slot as may, in the tree, on its level, and below each agent above it that says less.
    Concurrency,
    /// No more spawns than the limits of the run that asked allow.
    Spawns,
    /// No more spawns in a minute than the limits of the run that asked allow.
    SpawnRate,
    /// No more live children of one session than its limits allow.
    Children,
    /// No run goes on after its time, to which the CPU time counts that it used while it waited; none is stopped for its time or its silence before,
    /// nothing begins after the deadline of the tree or of an agent above, and no child has more time than its parent may give.
    Time,
    /// A run asks for its own agent or for one that it may name.
    Agents,
    /// No chain of sessions returns to an agent more often than it may.
    Cycles,
    /// After too many faults in a row no run of that agent is admitted or starts until the wait is over.
    Breaker,
    /// No run of an account starts before the reset of a quota that is used up, and then one, until it gives a sign or has ended; and none
    /// starts while as many of the account work as its pace allows.
    Quota,
    /// Runs wait for memory only while another one holds a slot, and where it is short by the numbers on record.
    Memory,
    /// A run begins again after a fault that may be gone, as often as it may, and only where it has done nothing yet.
    Retries,
    /// No run has a right that its parent does not hold, nor one that is for roots alone, nor more memory, open files or CPU time than it.
    Rights,
    /// Each promised amount was free, and a run that reached a limit was asked to stop before anything else.
    Budget,
    /// Use beyond a reservation is booked, to the last digit.
    Overrun,
    /// A run starts once all that it needs is over, and completed where it is not to run without; none is skipped for a run that completed.
    Needs,
    /// A result goes to the parent that asked, after the end, and again only as a repetition.
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
        deadline_spares_parked: _,
        run_timeout_seconds: _,
    } = rules;
};
