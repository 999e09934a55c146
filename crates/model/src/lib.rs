//! The shared words of offshoot: what crosses from one floor to another, and nothing else.
//!
//! ```text
//!  SpawnRequest ──▶ policy ──▶ Grant | Refusal
//!                                │
//!                              Event ──▶ store · display · merge      one stream, kept and replayed
//!                                │
//!                              Tree                                   a fold of the events
//!                                │
//!                             Envelope ──▶ parent · terminal · JSON
//! ```
//!
//! Promise: everything here is plain data. No async, no files, no clock; times and ids are handed in.
//! An unknown count or cost stays unknown in every sum.
//!
//! ```
//! use offshoot_model::{Cost, MicroUsd, TokenCount};
//!
//! let known = Cost::known(MicroUsd::from_micros(40_000));
//! let sum = known + Cost::unknown();
//! assert_eq!(sum.known_usd.to_string(), "0.04");
//! assert_eq!(sum.unknown_runs, 1);
//! assert_eq!(TokenCount::Known(3) + TokenCount::Unknown, TokenCount::AtLeast(3));
//! ```

mod cost;
mod ending;
mod envelope;
mod event;
mod grant;
mod id;
pub mod number;
mod payload;
mod refusal;
mod request;
mod rights;
mod rules;
mod status;
mod time;
mod tree;
mod usage;
mod variable;
mod wording;

pub use cost::{Cost, CostKnowledge, MicroUsd, ParseUsdError};
pub use ending::{CancelledBy, Ending, Reason};
pub use envelope::{Envelope, EnvelopeError};
pub use event::{
    Admitted, BootId, Event, EventClass, EventKind, InputRange, KeeperFault, MergeSummary, Origin,
    Particulars, ProcessIdentity, ToolInput, ToolUse, event_schema,
};
pub use grant::{BudgetGrant, Grant};
pub use id::{ContentHash, DeliveryId, ParseIdError, RootId, RunId};
pub use payload::{JsonText, Payload};
pub use refusal::{GovernedBy, Refusal, RefusalCode};
pub use request::{BudgetRequest, Cleanup, ContextEntry, SpawnRequest, WaitMode};
pub use rights::Rights;
pub use rules::Rules;
pub use status::RunStatus;
pub use time::{Timestamp, rfc3339};
pub use tree::{Node, Tree, TreeNode};
pub use usage::{TokenCount, Usage};
pub use variable::{ValueKind, VariableRef};
pub use wording::{causes, error_chain, plain};

pub use offshoot_session_key::{AgentId, SessionKey};
