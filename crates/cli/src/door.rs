//! The way from inside an agent to the supervisor of its tree, for commands that ask it.
//!
//! Who asks is known from the ticket and from the kernel; nothing here reads it from an argument.

mod picture;
mod visit;

pub(crate) use picture::{listed, pictured};
pub(crate) use visit::{above, for_the_operator, may_be_below, own, reach, visit};
