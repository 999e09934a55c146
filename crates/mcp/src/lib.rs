//! The door for models: an MCP server, bound to the session that started it.
//!
//! ```text
//!  model ──▶ its program ── MCP over stdin, stdout ──▶ serve ── Client ──▶ the door of the tree
//!                              tools/call                 │
//!                              progress, cancelled ◀──────┘
//! ```
//!
//! Promise:
//! - Who asks is whom the door recognised when the [`Client`](offshoot_door::Client) connected. No argument of a tool has a
//!   say in it.
//! - A server that is to open a tree of its own does so with the first call of a tool. Looking at the tools opens nothing.
//! - Only tools that the session may use are listed. A call of another one is passed on all the same, and the door says no.
//! - The answer no is a result with `isError`, which holds the refusal as the door gave it; so is a call with wrong
//!   arguments. Protocol errors are for what is no call at all.
//! - A wait ends before the model's program loses its patience, and then names what is still pending. Meanwhile it
//!   shows signs of life to the client that asked for them.
//! - A call that is cancelled drops its question at the door. A child that was admitted goes on.
//!
//! ```no_run
//! use offshoot_door::Client;
//! use offshoot_mcp::{Options, serve_stdio};
//!
//! # async fn example(client: Client) -> Result<(), offshoot_mcp::ServeError> {
//! serve_stdio(client, Options::default()).await?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod client_source;
mod options;
mod patience;
mod reference;
mod repeats;
mod schema;
mod serve;
mod server;
mod session_tools;
mod tool;

pub use client_source::{ClientSource, Opener, Opening};
pub use options::Options;
pub use reference::{tools_json, tools_markdown};
pub use serve::{ServeError, serve, serve_stdio};
pub use session_tools::SessionTools;
pub use tool::RightsOf;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
