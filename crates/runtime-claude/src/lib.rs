//! The runtime for Claude Code.
//!
//! ```text
//!   Launch ──▶ tools, argv, system prompt ──▶ process ──▶ lines ──▶ talk ──▶ outcome, usage ──▶ Finished
//!              (pure)                          │   ▲      (pure)    (pure)   (pure)
//!                                              └───┘ one prompt a turn, on standard input
//! ```
//!
//! The program is driven by its own protocol: JSON lines both ways, so that progress, use and cost are known while it
//! runs. Its own ways of starting agents are switched off; our tools are attached instead where a run gets them.
//!
//! Promise: the reason of an ending comes from the program's result and its exit, never from the text of an answer, and
//! an answer that is marked as an error is a failure. Totals are taken as they are told, never added up. What is not told
//! is unknown. Prompts and secrets are not on the command line. When a run has finished, its process group is gone.
//!
//! ```
//! use offshoot_process::{Options, Processes};
//! use offshoot_runtime::Runtime;
//! use offshoot_runtime_claude::{ClaudeOptions, ClaudeRuntime};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let processes = Processes::start(Options::default())?;
//! let options = ClaudeOptions { command: "/nowhere/claude".into(), ..ClaudeOptions::default() };
//! let claude = ClaudeRuntime::new(processes, options);
//! assert_eq!(claude.name(), "claude");
//! let missing = claude.check("/".as_ref()).await.expect_err("there is no such program");
//! assert!(missing.hint().contains("npm i -g @anthropic-ai/claude-code"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod argv;
mod check;
mod environment;
mod lines;
mod options;
mod outcome;
mod parking;
mod preview;
mod prompt;
mod run_file;
mod runtime;
mod session;
mod talk;
mod tools;
mod usage;

pub use argv::{Files, Parts, Session, argv};
pub use check::{CheckError, FoundProgram, OLDEST, Version};
pub use lines::{Assistant, Init, LONGEST_LINE, Line, Retry, TurnResult, parse as parse_line};
pub use options::{AgentOptions, ClaudeOptions, Compaction, OwnServer};
pub use parking::Parking;
pub use preview::preview;
pub use runtime::ClaudeRuntime;
pub use talk::{Effect, Talk};
pub use tools::{OWN_SERVER, Tools, rights_of};
pub use usage::{Meter, Spent, Tokens};
