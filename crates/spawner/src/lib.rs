//! The engine: one supervisor holds a whole tree of agents.
//!
//! ```text
//!  handle        Session, Fan, Agents, …: what the owner of a tree and the door of its agents hold
//!     │ message                                      ▲ message
//!     ▼                                              │
//!  supervisor ── start ──▶ task: runs one agent ────┘           one supervisor for each tree
//!     │    ▲
//!   Input  Effect           record first (store), then start, stop, answer, show
//!     ▼    │
//!  machine (pure) ──▶ policy::admit
//! ```
//!
//! The modules use each other in one direction, which `cargo xtask tidy` checks. Each uses only those further down:
//!
//! ```text
//!  spawner         opens trees, and takes over those whose supervisor has gone
//!  handle          what is asked of a tree: pieces and their answer, children, letters, stops
//!  supervisor      the task of one tree: takes messages, steps the machine, performs its effects
//!  task            the task of one run: launch, host, answer
//!  message         what handles and tasks say to the supervisor
//!  request         what a request leaves open: runtime, command, model
//!  tree_context    what all parts of one tree share: record, folder, clock, configuration
//!  machine         who may start, who gets a slot, who is stopped, who is told: pure
//!  leaf values     clock, events, excerpts, names of values, errors, …
//! ```
//!
//! Promise: what is told is on record. Limits hold over the whole tree, because one machine counts. An agent that
//! waits for its children lends its slot, so a tree of any depth finishes with a single slot. Nothing polls.
//!
//! A whole tree in ten lines: agents are closures here, the record is in memory, and the answers are merged.
//!
//! ```
//! use offshoot_model::Payload;
//! use offshoot_runtime::{Finished, FnRuntime};
//! use offshoot_spawner::{FanOut, Piece, RootSpec, Spawner};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let count = FnRuntime::new("count", |launch, _cx| async move {
//!     Finished::text(launch.task.split_whitespace().count().to_string())
//! });
//! let spawner = Spawner::builder().runtime(count).build()?;
//! let session = spawner.open(RootSpec::new("count the words")).await?;
//! let pieces = ["to be or not to be", "that is the question"].map(Piece::task);
//! let fan = session.fan_out(FanOut::new(pieces).merge("sum".parse()?)).await?;
//! let outcome = fan.answer().await?;
//! session.conclude(&outcome).await?;
//! assert_eq!(outcome.answer.to_payload(), Some(Payload::json("10".into())?));
//! assert_eq!(spawner.tree()?.nodes().count(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account_board;
mod announce;
mod attempt_watch;
mod blocking;
mod clock;
mod error;
mod event_stream;
mod excerpt;
mod handle;
mod host_slots;
mod kept_values;
mod machine;
mod message;
mod model_request;
mod request;
mod root_kind;
mod run_spec;
mod runtimes;
mod spawner;
mod stored_values;
mod supervisor;
mod task;
mod ticket_issuer;
mod tree_context;
mod workspaces;

pub use account_board::{AccountBoard, AccountNews, ParkedAccount, ProbeTurn};
pub use clock::{Clock, SystemClock, TestClock};
pub use error::SpawnerError;
pub use event_stream::{EventStream, LiveEvent, LiveEvents};
pub use excerpt::Excerpt;
pub use handle::{
    Agents, ChildRequest, ExternalMerge, Fan, FanAnswer, FanOut, Gathering, Notebook, Piece,
    PieceNeed, PieceOutcome, Refused, Session, Sibling, SpawnAllowance, Stopper, Trouble,
};
pub use host_slots::{HostClaim, HostClaims, HostGrant, HostSlots, OnGrant, SlotPool};
pub use kept_values::KeptValue;
pub use machine::{NewLimits, NotReopened, RequestVerdict, Unanswered, Unknown, WhatIf};
pub use message::hand_on::{Accepted, allowed_agents, choose_among};
pub use message::{Asking, Counts};
pub use model_request::{ModelCharge, ModelRequest, RefusedRequest, SeenQuota, WallReset};
pub use offshoot_policy::memory::HostMemory;
pub use root_kind::RootKind;
pub use run_spec::{RunSpec, program_cost};
pub use spawner::{AbandonedTree, RootSpec, Spawner, SpawnerBuilder};
pub use stored_values::StoredValues;
pub use ticket_issuer::{MeterOrder, TicketIssuer};
pub use tree_context::read_past_tasks;
pub use workspaces::{LeftChange, LeftChanges, WorkspaceOrder, Workspaces};
