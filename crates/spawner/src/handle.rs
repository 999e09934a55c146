//! Handles on a tree, for its owner and for the door of its agents. Each sends messages to the supervisor.

mod agents;
mod external_merge;
mod fan;
mod gathering;
mod notebook;
mod session;
mod tree_state;

pub use agents::{Accepted, Agents, ChildRequest, SpawnAllowance};
pub use external_merge::ExternalMerge;
pub(crate) use fan::HELD_BYTES;
pub use fan::{Fan, FanAnswer, FanOut, Piece, Refused};
pub use gathering::Gathering;
pub use notebook::Notebook;
pub use session::{Session, Stopper, Trouble};
