//! Faults at every point: a suite that counts what it has tried and what has survived.
//!
//! ```text
//!  the scenario in which everything happens
//!     │ append by append
//!     ▼
//!  SqliteStore ──▶ SQLite ──▶ shim ──▶ file system
//!                              └─ the n-th write, flush, truncation or removal fails; or the process dies there
//!
//!  the real command with a tree of programs
//!     │ write, flush, rename, link, creation, removal
//!     ▼
//!  a filter of the kernel ──▶ the n-th one fails, or the command dies there
//!
//!  the real command on a file system of ours
//!     │ sync
//!     ▼
//!  what a power cut leaves before the n-th one ──▶ compared with what others were told by then
//! ```
//!
//! In the ordinary tests a sample is tried, chosen by a seed; `cargo xtask soak` tries every point. What came of them is
//! counted, and a point that is lost does not keep the others from being tried.

mod gate;
mod points;
mod power;
mod script;
mod shim;
mod tree;

pub use gate::{Ambush, Call, Failure, Passed, run};
pub use points::Points;
pub use power::{Cut, Image, Left, Power, TOLD, restore};
pub use script::{Acknowledged, append_all, check_record, deeds};
pub use shim::{Fault, Operation, install, remove, seen, set};
pub use tree::{Expected, Fate, Place};
