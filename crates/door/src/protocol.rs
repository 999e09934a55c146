//! What travels: the words of `docs/protocol.md` as types.
//!
//! One file for each group of methods, and `method.rs` for the table of them all. Fields that a reader does not know
//! are ignored. In answers, a word that a reader does not know is `Unknown`; in requests it is an error, because a
//! supervisor that guessed would do something else than it was asked.

mod code;
mod context;
mod done;
mod hello;
mod history;
mod id;
mod look;
mod merge;
mod message;
mod method;
mod name;
mod node;
mod notification;
mod outcome;
#[cfg(test)]
mod page;
mod progress;
mod refused;
mod spawn;
mod spawn_many;
mod standing;
mod wait;
mod word;

pub use code::ErrorCode;
pub use context::{ContextGet, ContextInfo, ContextPut, ContextRead, Value, Variable, Variables};
pub use done::{Cancel, Done, Pause, RaiseBudget, Report, Send};
pub use hello::{FEATURES, Hello, PROTOCOL, Welcome};
pub use history::{History, HistoryEntry, HistoryPage};
pub(crate) use id::RequestId;
pub use look::{List, Runs, Tree, Trees};
pub use merge::{KeyedResult, Merge, MergeOrder, Merged};
pub(crate) use message::{Answer, Incoming, Malformed, Outgoing, RawError, line};
pub(crate) use method::ParamsError;
pub use method::{Ask, Request, Response};
pub use name::RunName;
pub use node::{EndReason, RunNode};
pub(crate) use notification::{CANCEL_REQUEST, CancelRequest, PROGRESS, RequestProgress};
pub use offshoot_model::Cleanup;
pub use outcome::{Outcome, OutcomeError, payload_json};
pub use progress::Progress;
pub use refused::Refused;
pub use spawn::{ContextGrant, Spawn, Spawned};
pub use spawn_many::{ChildAnswer, SpawnMany, SpawnedMany, Split};
pub use standing::{AgentSummary, BudgetLeft, Standing, Status};
pub use wait::{Wait, WaitMode, Waited};
pub use word::{CallerWord, EntryKind, Word};
