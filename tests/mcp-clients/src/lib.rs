//! The official client libraries for MCP, installed on demand and driven by plans.
//!
//! ```text
//!   a test ── plan: JSON ──▶ scripts/client.mjs | client.py ── MCP over stdio ──▶ a server
//!          ◀── report: JSON ──         what came of each step
//! ```
//!
//! A plan is `{ "server": [words], "steps": [step] }`. A step is `{}`, which lists the tools, or
//! `{ "tool", "arguments", "progress", "cancel" }`, which calls one; `"$2.runId"` in its arguments stands for what the
//! third step answered, and with `cancel` the call is given up at the first sign of life. The library for Python knows
//! two ages of the protocol; with `"mode": "legacy"` in the plan it begins as the elder does.
//!
//! Promise: both scripts read the same plans and report alike, so that one test holds for both libraries. The checkout
//! stays as it is; test programs that ask at the same time install once; a test that cannot have a library says
//! `SKIPPED` and why, and fails instead where `CI=true`.
//!
//! ```no_run
//! use offshoot_mcp_clients::Library;
//!
//! let Some(client) = Library::Node.install("it answers") else { return };
//! let words = client.words(&serde_json::json!({ "server": ["my-server"], "steps": [{}] }));
//! assert!(words[0].ends_with("node"));
//! ```

mod client;
mod inspector;
mod install;
mod library;

pub use client::Client;
pub use inspector::inspector;
pub use library::Library;
