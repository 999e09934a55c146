//! The audit: from the events of one tree, what the engine held to; by code that shares nothing with it.
//!
//! ```text
//!  record ── hash chain holds ──▶ events ──▶ Audit ──▶ Findings { what was counted, breaches }
//!                                             │
//!              lineage · slots · counts · time · rights · budgets · faults · endings · deliveries
//! ```
//!
//! Nothing is believed but the events: each count starts at zero and is made again from who was admitted under which
//! terms, who held a slot, what was reported and how it ended. The limits themselves are read from the record too, where
//! each root says them.
//!
//! Promise: a breach names the event after which it was seen, the run and the rule. What a record does not say, such as
//! the limits in one that an older version wrote, is listed as not recorded and is no breach. The audit cannot see what
//! was never recorded, nor that the whole record was replaced by another one with a chain of its own: for that, keep the last
//! link of the chain elsewhere.
//!
//! ```
//! use offshoot_audit::{Audit, Rule};
//! use offshoot_test_support::scenario;
//!
//! let [first, ..] = scenario::trees();
//! let findings = Audit::of(&first);
//! assert!(findings.breaches.is_empty(), "{:?}", findings.breaches);
//! assert_eq!(findings.deepest, 2);
//!
//! // The same, and one event is not there.
//! let mut gap = first.clone();
//! gap.remove(7);
//! assert_eq!(Audit::of(&gap).breaches[0].rule, Rule::Sequence);
//! ```

mod audit;
mod breach;
mod budget;
mod delivery;
mod faults;
mod findings;
mod host;
mod needs;
mod rights;
mod rule;
mod run;
mod slots;
mod spawns;
mod time;
mod walls;

pub use audit::Audit;
pub use breach::Breach;
pub use findings::{Account, Busy, Deliveries, Findings, Unit};
pub use host::{AccountPeak, HostAudit, HostBreach, HostFindings, HostTree};
pub use rule::Rule;
