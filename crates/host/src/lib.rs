//! Agents that run agents, in a program of yours: the engine with its door, runtimes, record and plugins put together.
//!
//! ```text
//!  Config, Environment ──▶ Host ── open, run, abandoned ──▶ Tree ── fan_out, spawn, wait, answer
//!                           │                                │
//!    record · keeper · plugins · runtimes            door: a socket of its own; agents ask by
//!                                                    `$OFFSHOOT spawn`, or by MCP (`$OFFSHOOT mcp`)
//! ```
//!
//! A tree that is opened here is held as one of the command `offshoot` is: each limit counts over the whole tree, agents reach their
//! supervisor by the socket and the ticket in their environment, what happens is on record before it is told, and processes end
//! with the program, also where that is killed. The command itself is a program over this crate.
//!
//! A host needs the `offshoot` command: agents call it, and it is started as keeper of the processes.
//!
//! ```no_run
//! use offshoot_config::Config;
//! use offshoot_host::{Environment, Host};
//! use offshoot_spawner::{RootSpec, RunSpec};
//!
//! # async fn tree() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::builder(Config::default(), Environment::of_process()?).start().await?;
//! let run_spec = RunSpec::command("/", ["sh", "-c", "echo hello"]);
//! let mut tree = host.run(RootSpec { run_spec, ..RootSpec::new("greet") }).await?;
//! println!("{:?}", tree.answer().await?.data);
//! # Ok(())
//! # }
//! ```
//!
//! `examples/recursion.rs` runs a tree of shell agents that spawn agents; `examples/server.rs` does so behind an HTTP address.
//!
//! What it does not do: read configuration files, ask the user, or decide which plugins and projects are trusted. A program
//! hands in what it has decided ([`Plugins::new`]).

mod account_board;
mod account_key;
mod day_budget;
mod door;
mod environment;
mod error;
mod host;
mod host_proof;
mod limit_proof;
mod merging;
mod meter_proof;
mod metering;
mod orphans;
mod patches;
mod plugins;
mod pressure_file;
mod processes;
mod reporter;
pub mod runtimes;
mod service;
mod slot_folder;
mod state_file;
mod threads;
mod tickets;
mod tree;
mod tree_meter;
mod workspaces;

pub use account_board::{WallFolder, known_walls};
pub use day_budget::{DayBudget, DayError};
pub use environment::{Environment, KeeperLog, value};
pub use error::HostError;
pub use host::{Host, HostBuilder};
pub use host_proof::{HostProof, HostResult, prove_host};
pub use limit_proof::LimitProof;
pub use merging::{Merging, PATCH, ParseMergingError};
pub use meter_proof::prove_meter;
pub use offshoot_isolation::{Bring, Brought};
pub use orphans::end_orphans;
pub use patches::{Branching, bring};
pub use plugins::{PluginSnapshot, Plugins, Trust};
pub use reporter::{Level, Reporter};
pub use service::history;
pub use slot_folder::{SlotFolder, SlotsTaken};
pub use threads::{aside, threads};
pub use tree::{Abandoned, OperatorCommands, Tree};
pub use workspaces::{Folders, prune_folders};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
