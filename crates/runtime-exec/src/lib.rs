//! The runtime for ordinary programs: whatever can be started can be an agent.
//!
//! ```text
//!   Launch ──▶ environment, input ──▶ process ──▶ exit, output ──▶ Finished
//!              (pure)                             (pure)
//! ```
//!
//! What a program gets: the prompt or its piece of the input on standard input, an environment of permitted names with
//! the `OFFSHOOT_*` variables on top, and a process group of its own. What it gives: its standard output is the answer,
//! its exit code the verdict, the last of its standard error the explanation.
//!
//! Promise: the reason of an ending comes from the exit status and from what we did ourselves, never from what was
//! printed. An output of any size passes through bounded memory. When a run has finished, its process group is gone.
//!
//! ```
//! use offshoot_runtime::Runtime;
//! use offshoot_runtime_exec::{ExecOptions, ExecRuntime};
//! use offshoot_process::{Options, Processes};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let processes = Processes::start(Options::default())?;
//! let inherited = vec![("PATH".into(), "/usr/bin:/bin".into()), ("SECRET".into(), "x".into())];
//! let exec = ExecRuntime::new(processes, ExecOptions::inheriting(inherited));
//! assert_eq!(exec.name(), "exec");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod environment;
mod output_limit;
mod recent;
mod runtime;
mod signs;
mod task_file;
mod verdict;

pub use environment::TASK_VARIABLE_BYTES;
pub use runtime::{ExecOptions, ExecRuntime};
