//! The text that people see: events as lines, trees as text and JSON, progress, tables.
//!
//! ```text
//!  live run ──┐                ┌──▶ line       one event
//!             ├─▶ events ──▶───┼──▶ tree       all runs, as text
//!  record ────┘                ├──▶ json       the same for programs
//!                              ├──▶ progress   how it goes, while it goes
//!                              ├──▶ list, show runs in a table, one run explained
//!                              └──▶ export     a page for a browser, a graph
//! ```
//!
//! Promise: live and replay use the same code, so the same events give the same picture to the letter. Nothing an agent
//! wrote moves a cursor: control characters become visible signs. Unknown amounts are shown as unknown. Colours only
//! where [`Style::Colour`] was handed in; where to write is handed in too, and nothing here asks what a stream is.
//!
//! ```
//! use offshoot_display::TreeText;
//! use offshoot_model::Tree;
//!
//! let tree = Tree::new();
//! assert_eq!(TreeText::new(&tree).to_string(), "idle");
//! ```

mod advice;
mod branch;
mod export;
mod held;
pub mod json;
mod learned;
mod line;
mod list;
mod name;
mod needs;
pub mod neutral;
mod opportunities;
mod progress;
mod rights;
mod show;
mod stats;
mod style;
mod tree;

pub use advice::in_tree;
pub use branch::{Branch, RunLine, reason_beside, time, why};
pub use export::{Excerpt, Export, SaidEnd};
pub use held::{Hold, back_off, cap, held, parked};
pub use learned::Learned;
pub use line::{Line, line};
pub use list::{List, is_at_work};
pub use name::{beginnings, name};
pub use needs::needs;
pub use offshoot_model::number;
pub use offshoot_model::number::used;
pub use opportunities::{Bound, Chain, Link, Opportunities, Queued, Replayed, TimeUse};
pub use progress::{Progress, Redrawn, Tally};
pub use rights::changed;
pub use show::{AtWork, Show, Story, window_left};
pub use stats::{Cause, HeldTree, Longest, Parallelism, Percentiles, Spent, Stats, StatsPage};
pub use style::{Style, status_words};
pub use tree::{FAILURES, Shows, TreeText};

/// The target of a progress bar: handed to [`Progress::on_terminal`].
pub use indicatif::ProgressDrawTarget;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
