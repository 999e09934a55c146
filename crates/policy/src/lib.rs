//! Admission: one question, may this agent be spawned, answered with a reservation or a refusal.
//!
//! ```text
//!  Config ──▶ Terms ─────────┐  what holds over the chain of agents
//!  record ──▶ Caller, Books ─┼─▶ admit ──▶ Admission ──▶ Books::reserve    in the same step
//!  SpawnRequest ─────────────┘         └─▶ Refusal { code, message, hint, governed_by }
//! ```
//!
//! Promise: nothing here waits, reads a file or asks a clock. The same question gets the same answer. Whatever a
//! request says, it can only lower what the chain allows; and down a chain, explicit limits and rights only shrink.
//!
//! ```
//! use offshoot_config::{AgentId, Config};
//! use offshoot_model::{BudgetGrant, Origin, RefusalCode, RunId, SpawnRequest, Timestamp};
//! use offshoot_policy::{Books, Caller, Load, RuntimeFacts, admit, open};
//!
//! let (config, runtime) = (Config::default(), RuntimeFacts::of_a_command("exec"));
//! let request = SpawnRequest { task: "count the errors".into(), ..SpawnRequest::default() };
//! let root = open(&config, &AgentId::main(), &request, Some(&runtime))?;
//!
//! let mut books = Books::default();
//! let (root_run, child_run) = (RunId::from_bytes([1; 16]), RunId::from_bytes([2; 16]));
//! books.reserve(root_run, None, &root, Timestamp::EPOCH);
//!
//! let ask = |parent: &offshoot_policy::Admission, run, books: &Books| {
//!     let caller = Caller {
//!         run,
//!         depth: parent.depth,
//!         over: false,
//!         out_of_time: false,
//!         terms: &parent.terms,
//!         under: &parent.terms,
//!         grant: &parent.grant,
//!         raised: BudgetGrant::default(),
//!         lineage: &parent.lineage,
//!         live_children: 0,
//!         last_child: None,
//!     };
//!     let load = Load { books, now: Timestamp::EPOCH, slot_free: true, paused: false };
//!     admit(&config, &caller, &load, &request, Origin::Agent, &runtime)
//! };
//! let child = ask(&root, root_run, &books)?;
//! books.reserve(child_run, Some(root_run), &child, Timestamp::EPOCH);
//! assert_eq!(child.depth, 1);
//!
//! // Recursion is off unless a setting switches it on.
//! let refusal = ask(&child, child_run, &books).unwrap_err();
//! assert_eq!(refusal.code, RefusalCode::RecursionDisabled);
//! # Ok::<(), offshoot_model::Refusal>(())
//! ```

mod admission;
mod books;
pub mod breaker;
pub mod budget;
mod capabilities;
pub mod host_share;
mod lineage;
pub mod memory;
pub mod needs;
pub mod pace;
pub mod prefix;
pub mod quota;
pub mod rate;
mod rights;
mod runtime;
mod term;
mod terms;

pub use admission::{
    Admission, Caller, LastChild, Load, NAMES_OF_NEWEST, admit, check_fallback, check_given_label,
    check_label, is_reserved_label, lowered, may_follow, open,
};
pub use books::Books;
pub use capabilities::{Capabilities, Capability, Delegation, Given, PossibleCycle};
pub use lineage::Lineage;
pub use offshoot_model::NEVER_FOR_SUB_AGENTS;
pub use runtime::{Fallback, OtherRuntime, RuntimeFacts};
pub use term::Term;
pub use terms::{Difference, Limits, Terms};
