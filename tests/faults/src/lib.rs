//! Faults at every point: a suite that counts what it has tried and what has survived.
//!
//! ```text
//!  the scenario in which everything happens
//!     │ append by append
//!     ▼
//!  SqliteStore ──▶ SQLite ──▶ shim ──▶ file system
//!                              └─ the n-th write, flush, truncation or removal fails; or the process dies there
//! ```
//!
//! In the ordinary tests a sample is tried, chosen by a seed; `cargo xtask soak` tries every point.

mod points;
mod script;
mod shim;

pub use points::{Points, is_soak};
pub use script::{Acknowledged, append_all, check_record, deeds};
pub use shim::{Fault, Operation, install, remove, seen, set};
