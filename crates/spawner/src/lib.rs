//! The engine: one supervisor holds a whole tree of agents.
//!
//! ```text
//!  Session, hosts of runs          SpawnRequest, WaitFor, Stop
//!        │ Message
//!        ▼
//!   supervisor ── Input ──▶ machine ── Effect ──▶ supervisor        one task for each tree
//!        │                    (pure)                  │
//!        ▼                                            ▼
//!   policy::admit                 record first (store), then start, stop, answer, show
//! ```
//!
//! Promise: what is told is on record. Limits hold over the whole tree, because one machine counts. An agent that
//! waits for its children lends its slot, so a tree of any depth finishes with a single slot. Nobody polls.
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

mod agent;
mod agents;
mod announce;
mod clock;
mod cpu_watch;
mod custom;
mod doorkeeper;
mod error;
mod excerpt;
mod fan;
mod follow;
mod host;
mod known_tree;
mod machine;
mod mind;
mod names;
mod notebook;
mod resolve;
mod resume;
mod root_kind;
mod runtimes;
mod session;
mod shared;
mod signs;
mod spawner;
mod supervisor;
mod values;
mod work;

pub use agents::{Accepted, Agents, Asking, ChildRequest, Room};
pub use clock::{Clock, SystemClock, TestClock};
pub use custom::{CustomJob, CustomMerge};
pub use doorkeeper::Doorkeeper;
pub use error::SpawnerError;
pub use excerpt::Excerpt;
pub use fan::{Fan, FanAnswer, FanOut, Piece, Refused};
pub use follow::{EventStream, Onlooker, Sight};
pub use machine::Unknown;
pub use names::Kept;
pub use notebook::Notebook;
pub use resume::AbandonedTree;
pub use root_kind::RootKind;
pub use session::{Session, Stopper, Trouble};
pub use spawner::{RootSpec, Spawner, SpawnerBuilder};
pub use supervisor::Counts;
pub use values::StoredValues;
pub use work::Work;
