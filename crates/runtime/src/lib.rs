//! The contract for whatever runs an agent.
//!
//! ```text
//!   Launch ──▶ Runtime::start ──▶ future of Finished      exactly one, after everything it started is gone
//!                   │  ▲
//!   RunEvent, spawn ◀  └── Stop                           told and asked through the host / softly, then firmly
//! ```
//!
//! Promise asked of every implementation, and checked by `check_contract` (feature `conformance`) as far as it can be seen from
//! outside:
//! 1. It tells once, and before anything else, that it has started.
//! 2. The future ends exactly once, and only after everything the run started is gone: nothing of it holds its host any more.
//! 3. A request to stop is heard at any moment; a second, firmer one shortens the first.
//! 4. No event follows the end. Usage is cumulative.
//! 5. Where it can take turns, it asks after each answer how it goes on, and takes the letters that came.
//! 6. Dropping the future ends the run as a firm stop would, and lets go of its host.
//! 7. The reason comes from evidence (an exit code, a protocol field), never from the text of an answer.
//!
//! ```
//! use std::sync::Arc;
//! use offshoot_runtime::{FnRuntime, Finished, Output, Runtime};
//! use offshoot_model::Reason;
//!
//! let upper = FnRuntime::new("upper", |launch, _cx| async move {
//!     Finished {
//!         output: Output::Text(launch.task.to_uppercase().into()),
//!         ..Finished::of(Reason::Completed { exit_code: None })
//!     }
//! });
//! assert_eq!(upper.name(), "upper");
//! ```

mod closure;
#[cfg(feature = "conformance")]
pub mod contract;
mod cpu_meter;
mod credential;
mod diagnostics;
mod environment;
mod finished;
mod host;
mod launch;
mod memory_meter;
mod merge;
mod meter_pass;
mod pass;
mod pressure;
mod prompt;
mod redactor;
mod said_stream;
mod secrets;
mod stop;
mod system_prompt;
mod turns;
mod usage_request;

pub use closure::FnRuntime;
#[cfg(feature = "conformance")]
pub use contract::{Violation, check as check_contract};
pub use cpu_meter::CpuMeter;
pub use credential::Credential;
pub use diagnostics::diagnostics;
pub use environment::{
    TRACE_VARIABLE_BYTES, USUAL_VARIABLES, Variable, identity_variables, is_named, is_of_a_run,
    metered, pass_variables, trace_json,
};
pub use finished::{Finished, Output};
pub use host::{Host, RunEvent, RunHost, ToolOffer, WaitAnswer, WaitFor};
pub use launch::{ContextFile, Input, Launch};
pub use memory_meter::MemoryMeter;
pub use merge::{Merge, MergeFault, MergeInput, MergeJob, MergeValue};
pub use meter_pass::{MeterPass, MeterProtocols, leads_to_provider, past_proxies};
pub use pass::Pass;
pub use pressure::{Pressure, PressureBoard};
pub use prompt::{MANIFEST_ABOVE, prompt};
pub use redactor::Redactor;
pub use said_stream::SaidStream;
pub use secrets::Secrets;
pub use stop::{Stop, StopHandle, StopSignal};
pub use system_prompt::{guidance, system_prompt, system_prompt_in_parts};
pub use turns::{LetterBox, NextTurn, Ruling, Turns};
pub use usage_request::{UsageListener, UsageProbe, UsageRequest, UsageRequests};

pub use offshoot_model::{CostKnowledge, OutputFormat, WaitMode};

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;

/// The name of the runtime that starts programs. An agent with a command and without a runtime has this one.
pub const EXEC: &str = "exec";

/// A way to run agents. Object safe: the engine holds `Arc<dyn Runtime>` and knows no vendor.
pub trait Runtime: Send + Sync + 'static {
    /// The name by which configuration and records know it.
    fn name(&self) -> &str;

    /// Returns the abilities of the runtime; asked at admission, so they must not change during a tree.
    fn abilities(&self) -> Abilities;

    /// Returns the credential with which it calls its service, so that the runs of one account are known to share its quotas. None where
    /// it does not know it: then all its runs are taken for one account. Asked once.
    fn credential(&self) -> Option<Credential> {
        None
    }

    /// Returns the memory that the processes of one run take, in bytes, as far as it is known before any has run: so much is reserved
    /// for a run until it has grown to that. The built-in number is that of a small interpreter.
    fn memory(&self) -> u64 {
        32 << 20
    }

    /// Returns the beginning of their prompts that its runs have in common; none where its service is not known to keep prompts in a cache.
    fn shared_prompt(&self) -> Option<SharedPrompt> {
        None
    }

    /// Starts one run. Returns at once; the work happens in the future.
    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished>;
}

/// The beginning of the prompts of a runtime, which its service keeps in a cache once it has read it. The instructions of the agent belong to
/// it in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedPrompt {
    /// An estimate of the runtime's own instructions and tools, in tokens.
    pub own_tokens: u64,
    /// The most bytes of values that stand in front of the task.
    pub inline_bytes: u64,
}

/// The context of a running agent, besides its launch.
#[derive(Debug)]
pub struct RunContext {
    /// The host, which takes reports and requests for children.
    pub host: RunHost,
    /// The source of requests to stop.
    pub stop: StopSignal,
    /// Letters to it, and its turns after the first.
    pub turns: Turns,
    /// Requests for what it has used up to now.
    pub usage: UsageRequests,
    /// Told of each process that it starts, so that the engine can see whether it works while it waits.
    pub cpu: CpuMeter,
    /// Told of each process that it starts, so that the engine can see how much memory the run has taken.
    pub memory: MemoryMeter,
}

impl RunContext {
    /// The context of a run that gets no letters.
    pub fn new(host: RunHost, stop: StopSignal) -> Self {
        let turns = Turns::new(host.clone(), LetterBox::default());
        let usage = UsageProbe::default().requests();
        let (cpu, memory) = (CpuMeter::default(), MemoryMeter::default());
        Self { host, stop, turns, usage, cpu, memory }
    }
}

/// The abilities of a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The knowledge of a run's cost.
    pub cost: CostKnowledge,
    /// True if it can take a further turn after it has answered.
    pub turns: bool,
    /// True if an interrupted run can be continued rather than run again.
    pub resumes: bool,
    /// The rights it can take away; `None` where it can take away any.
    pub enforces: Option<BTreeSet<String>>,
}

impl Abilities {
    /// The abilities of an ordinary command: costs nothing, one turn, no rights it could be denied.
    pub fn of_a_command() -> Self {
        Self {
            cost: CostKnowledge::None,
            turns: false,
            resumes: false,
            enforces: Some(BTreeSet::new()),
        }
    }
}
