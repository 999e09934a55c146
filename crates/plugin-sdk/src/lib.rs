//! Write runtimes and merge functions for offshoot as plugins.
//!
//! ```text
//!   your crate (cdylib)           this crate                        the host
//!    impl RunFn   ──┐                                        ┌── an ordinary runtime
//!    impl MergeFn ──┴─▶ Plugin ─▶ export_plugin! ═══ ABI ═══▶┴── an ordinary merge
//! ```
//!
//! The same declaration makes a program, which a host starts and asks by lines: `serve_plugin!` in its `main.rs` instead of
//! `export_plugin!` in the library.
//!
//! A plugin depends on this crate alone. Its name and abilities stand in its declaration, and
//! [`Plugin::made`] gives what was declared to `check_contract` (feature `conformance`), in one process. A [`Runtime`] that there is
//! already can be declared as it is.
//!
//! Promise, kept for every author:
//! - No panic leaves the plugin: it becomes the outcome of its run, with text and place.
//! - One tokio runtime for the whole plugin, started when it is first needed. Everything of yours runs on it.
//! - Events of a run are in order, and none follows its outcome. An outcome can be asked for again.
//! - When the host asks the plugin to shut down, every run is ended within the time that it is given.
//!
//! ```
//! use offshoot_plugin_sdk::{
//!     Abilities, BoxFuture, Finished, FutureExt, Launch, Plugin, RunContext, RunFn,
//! };
//!
//! struct Echo;
//!
//! impl RunFn for Echo {
//!     fn run(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
//!         async move {
//!             cx.host.started(None);
//!             Finished::text(launch.task)
//!         }
//!         .boxed()
//!     }
//! }
//!
//! offshoot_plugin_sdk::export_plugin!(Plugin::new("answers with its task").runtime(
//!     "echo",
//!     "answers with its task",
//!     Abilities::of_a_command(),
//!     |_setup| Ok(Echo),
//! ));
//! # fn main() {}
//! ```

mod config;
mod error;
mod executor;
#[doc(hidden)]
pub mod export;
mod guard;
mod host;
mod loaded;
mod merge;
mod merge_job;
mod plugin;
mod probe;
#[cfg(feature = "process")]
mod processes;
mod run;
mod run_fn;
mod run_host;
mod runs;
mod serve;

pub use config::Config;
pub use error::Error;
pub use host::{Level, PluginHost};
pub use merge::{MergeFn, MergeOf, MergeSetup, json_of, text_of, value_of};
pub use plugin::{Package, Plugin, Setup};
pub use run_fn::RunFn;

#[cfg(feature = "process")]
pub use offshoot_process as process;

pub use futures_util::future::{BoxFuture, FutureExt};
pub use offshoot_model as model;
pub use offshoot_model::{JsonText, Reason};
pub use offshoot_plugin_abi as abi;
pub use offshoot_runtime::{
    Abilities, ContextFile, CostKnowledge, Finished, FnRuntime, Host, Input, Launch, Merge,
    MergeFault, MergeInput, MergeJob, MergeValue, NextTurn, Output, OutputFormat, RunContext,
    RunEvent, RunHost, Runtime, Stop, StopHandle, StopSignal, Turns, WaitAnswer, WaitFor, WaitMode,
    prompt, system_prompt,
};
#[cfg(feature = "conformance")]
pub use offshoot_runtime::{Violation, check_contract};
pub use {serde, serde_json, tokio};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
