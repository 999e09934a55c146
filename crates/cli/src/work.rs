//! The parts that `run`, `map` and `fanout` have in common.
//!
//! ```text
//!  preflight ─▶ input, context ─▶ plan ─▶ engine ─▶ report
//!   nothing runs before all of it is    │
//!   known to be in order                ├─ progress: the events of the tree
//!                                       └─ interrupt: Ctrl-C, once and twice
//! ```

mod ahead;
mod branch;
pub(crate) mod cancel_abandoned;
pub(crate) mod consent;
pub(crate) mod context;
pub(crate) mod data;
pub(crate) mod dry_run;
pub(crate) mod earlier;
pub(crate) mod engine;
pub(crate) mod heads;
pub(crate) mod input;
pub(crate) mod input_tokens;
pub(crate) mod interrupt;
pub(crate) mod job_log;
pub(crate) mod junit;
pub(crate) mod larger_budget;
pub(crate) mod notify;
mod operator_command;
pub(crate) mod outcomes;
pub(crate) mod pieces;
pub(crate) mod plan;
pub(crate) mod preflight;
pub(crate) mod progress;
pub(crate) mod recorded_settings;
pub(crate) mod report;
pub(crate) mod resume;
mod resume_dry_run;
mod same_prompts;
pub(crate) mod schema;
pub(crate) mod single;
pub(crate) mod stages;
pub(crate) mod task;
pub(crate) mod task_line;
