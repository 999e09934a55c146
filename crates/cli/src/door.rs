//! The way from inside an agent to the supervisor of its tree, for commands that ask it.
//!
//! Who asks is known from the ticket and from the kernel; nothing here reads it from an argument.

mod picture;
mod visit;

pub(crate) use picture::{LISTED, listed, named, pictured};
pub(crate) use visit::{
    LiveTree, LiveTrees, above, inside, is_inside, live_trees, may_be_below, outside_of_commands,
    own, reach, registry, silences, supervisor_of, visit,
};
