//! The real clients that tests drive, installed on demand.
//!
//! ```text
//!   package.json, package-lock.json ──copied──▶ target/real-clients ──npm ci──▶ node_modules
//! ```
//!
//! Promise: the checkout stays as it is; test programs that ask at the same time install once; a test that cannot have
//! them says `SKIPPED` and why, and fails instead where `CI=true`.
//!
//! ```no_run
//! let Some(clients) = offshoot_real_clients::install("it answers") else { return };
//! assert!(clients.claude().is_file());
//! ```

mod clients;

pub use clients::{Clients, install};
