//! The protocol: the words of `docs/protocol.md` as types.
//!
//! One file for each group of methods, and `method.rs` for the table of them all. Fields that a reader does not know
//! are ignored. In answers, a word that a reader does not know is `Unknown`; in requests it is an error, because a
//! supervisor that guessed would do something else than it was asked.

mod activity;
mod code;
mod context;
mod delegate;
mod done;
mod envelope;
mod hello;
mod history;
mod id;
mod look;
mod merge;
mod message;
mod method;
mod name;
mod notification;
mod output;
#[cfg(test)]
mod page;
mod progress;
mod refusal;
mod spawn;
mod spawn_many;
mod status;
mod tree_node;
mod wait;
mod word;

pub use activity::{Activities, Activity, RunActivity};
pub use code::ErrorCode;
pub use context::{ContextGet, ContextInfo, ContextPut, ContextRead, Value, Variable, Variables};
pub use delegate::{Delegate, Observed};
pub use done::{Cancel, Done, Pause, RaiseBudget, Report, Send};
pub use envelope::WireEnvelope;
pub use hello::{FEATURES, Hello, PROTOCOL, Welcome};
pub use history::{History, HistoryEntry, HistoryPage};
pub(crate) use id::RequestId;
pub use look::{List, Runs, Tree, Trees};
pub use merge::{KeyedResult, Merge, MergeOrder, Merged};
pub(crate) use message::{Answer, Incoming, Malformed, Outgoing, RawError, line};
pub(crate) use method::ParamsError;
pub use method::{Ask, Request, Response};
pub use name::RunName;
pub(crate) use notification::{CANCEL_REQUEST, CancelRequest, PROGRESS, RequestProgress};
pub use offshoot_model::{AgentSummary, Cleanup, Delegated, WaitMode};
pub use output::{Output, OutputWritten};
pub use progress::Progress;
pub use refusal::WireRefusal;
pub use spawn::{ContextGrant, Spawn, SpawnInput, Spawned};
pub use spawn_many::{ChildAnswer, SpawnMany, SpawnedMany, Split};
pub use status::{BudgetLeft, Status, StatusAnswer};
pub use tree_node::{EndReason, WireParked, WireTreeNode};
pub use wait::{Wait, Waited};
pub use word::{CallerWord, EntryKind, Word};
