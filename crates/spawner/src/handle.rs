//! Handles on a tree, for its owner and for the door of its agents. Each sends messages to the supervisor.

mod agents;
mod asked_merge;
mod child;
mod delegation;
mod external_merge;
mod fan;
mod gathering;
mod notebook;
mod session;
mod tree_state;

pub use agents::{Agents, SpawnAllowance};
pub(crate) use asked_merge::HELD_BYTES;
pub use child::{ChildRequest, Sibling};
pub use external_merge::ExternalMerge;
pub use fan::{Fan, FanAnswer, FanOut, Piece, PieceNeed, PieceOutcome, Refused};
pub use gathering::Gathering;
pub use notebook::Notebook;
pub use session::{Session, Stopper, Trouble};
