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

mod account;
mod agent_summary;
mod cause;
mod changes;
mod cost;
mod delegated;
mod delegation_context;
mod duration_text;
mod ending;
mod envelope;
mod event;
mod grant;
mod holds;
mod id;
mod isolation;
mod json_error;
mod lowered_limit;
mod memory_shortage;
mod need;
pub mod number;
pub mod path_text;
mod payload;
mod recovery;
mod refusal;
mod request;
mod retry_on;
mod rights;
mod rules;
mod said_error;
mod status;
mod stream;
mod task_type;
mod time;
mod tree;
mod tree_holds;
mod usage;
mod variable;
mod windows;
mod wording;

pub use account::Account;
pub use agent_summary::AgentSummary;
pub use cause::{cause, first_failure, last_line};
pub use changes::Changes;
pub use cost::{Cost, CostKnowledge, MicroUsd, ParseUsdError};
pub use delegated::{Delegated, Directly, FitScore};
pub use delegation_context::{DelegationContext, TraceStep, bounded_request};
pub use duration_text::{parse_duration, parse_seconds};
pub use ending::{CancelledBy, Ending, Reason, RequestShortage};
pub use envelope::{Envelope, EnvelopeError};
pub use event::{
    Admitted, BootId, Chosen, Event, EventClass, EventKind, InputRange, KeeperFault, MergeSummary,
    Origin, Particulars, PiecesAgain, ProcessIdentity, RequestEnding, RootReopened, ToolInput,
    ToolUse, event_schema,
};
pub use grant::{BudgetGrant, Grant, Pooled};
pub use holds::Holds;
pub use id::{ContentHash, DeliveryId, ParseIdError, RootId, RunId};
pub use isolation::{Isolation, ParseIsolationError};
pub use json_error::{json_error, json_field, json_object};
pub use lowered_limit::LoweredLimit;
pub use memory_shortage::MemoryShortage;
pub use need::{Need, OnNeedFailed};
pub use path_text::PathText;
pub use payload::{JsonText, Payload};
pub use recovery::Recovery;
pub use refusal::{GovernedBy, Refusal, RefusalCode};
pub use request::{BudgetRequest, Cleanup, ContextEntry, OutputFormat, SpawnRequest, WaitMode};
pub use retry_on::{RetryOn, UnknownEnding};
pub use rights::{NEVER_FOR_SUB_AGENTS, Rights};
pub use rules::Rules;
pub use said_error::SaidError;
pub use status::RunStatus;
pub use stream::Stream;
pub use task_type::{ParseTaskTypeError, TaskType};
pub use time::{Timestamp, from_rfc3339, rfc3339};
pub use tree::{BackOff, Node, Parked, Statuses, Subtree, Subtrees, Tree, TreeNode};
pub use tree_holds::{FullAccount, OpenBreaker, Pace, Priming, ShortPool, TreeHolds, Wall};
pub use usage::{TokenCount, Usage};
pub use variable::{ValueKind, VariableRef};
pub use windows::{Window, Windows};
pub use wording::{causes, error_chain, plain};

pub use offshoot_session_key::{AgentId, SessionKey};
