//! The lines between a host and a plugin that is a program: one JSON object each, on standard input and standard output.
//!
//! ```text
//!   {"id":4,"op":"start","of":3,"launch":{…}}     a request: `op`, and an `id` where it wants an answer
//!   {"id":4,"ok":{…}}  {"id":4,"error":{…}}       its answer: the same `id`, and no `op`
//! ```
//!
//! Each side numbers its own requests. What a request makes (a runtime, a run, a merge) is known by the number of that request:
//! later requests name it with `of`. The documents in them are those of the other modules here.

mod read;
mod write;

pub use read::{Answered, Asked, HostLine, Line, Order, read, read_host};
pub use write::{Request, answer, event, outcome, pushed, raw, tell};

/// The longest line of a plugin, in bytes. A larger answer of a run is a file in the spool folder of its launch.
pub const LONGEST: usize = 64 << 20;

/// The names of requests.
pub mod op {
    /// To the plugin: says what it is. Answered with a manifest.
    pub const DESCRIBE: &str = "describe";
    /// To the plugin: begins, with the settings of the plugin.
    pub const INIT: &str = "init";
    /// To the plugin: makes a runtime, by name and settings.
    pub const RUNTIME: &str = "runtime";
    /// To the plugin: makes a merge function, by name and settings.
    pub const MERGE: &str = "merge";
    /// To the plugin: starts a run of a runtime. Answered with its outcome, when it has ended.
    pub const START: &str = "start";
    /// To the plugin: asks a run to end within some milliseconds. It has no answer.
    pub const CANCEL: &str = "cancel";
    /// To the plugin: begins a merge.
    pub const BEGIN: &str = "begin";
    /// To the plugin: one result for a merge.
    pub const PUSH: &str = "push";
    /// To the plugin: asks for the answer of a merge.
    pub const FINISH: &str = "finish";
    /// To the plugin: ends a run or a merge at once. It has no answer of its own.
    pub const DROP: &str = "drop";
    /// To the plugin: ends everything. Standard input is closed after it.
    pub const SHUTDOWN: &str = "shutdown";
    /// To the host: one event of a run.
    pub const EVENT: &str = "event";
    /// To the host: asks for a child.
    pub const SPAWN: &str = "spawn";
    /// To the host: a line for the log.
    pub const LOG: &str = "log";
    /// In both directions: an operation by its name.
    pub const CALL: &str = "call";
}
