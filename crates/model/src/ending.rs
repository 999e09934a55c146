//! The ending of a run, by evidence.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Changes, Cost, MicroUsd, Payload, RunStatus, SaidError, Timestamp, TokenCount, Usage, cause,
    first_failure, last_line, number,
};

/// The one terminal fact about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// The reason of the ending. The status follows from it.
    pub reason: Reason,
    /// The output or answer of the run, whatever the ending.
    pub output: Option<Payload>,
    /// The last lines of what it said beside its answer, among them the one that says why it failed. Where something else ended it, the
    /// last one is what it said last, on whichever stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<String>,
    /// The run's own account of its error, as JSON at the end of its answer. The engine fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<SaidError>>,
    /// The changes that it made, where it worked in a folder of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<Changes>>,
    /// The usage of the run itself.
    #[serde(default)]
    pub usage: Usage,
    /// The cost of the run itself.
    #[serde(default)]
    pub cost: Cost,
    /// From its first slot to its end; 0 where it never started. The engine fills it in.
    #[serde(default)]
    pub execution_time_ms: u64,
}

/// The typed reason. It comes from the runtime's own evidence, never from the text of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// The run did what it was asked. `exit_code` is for programs, for which other codes than 0 may count as success.
    Completed {
        /// The accepted exit code.
        exit_code: Option<i32>,
    },
    /// A program's own verdict.
    ExitCode {
        /// Not among the accepted ones.
        code: i32,
    },
    /// Killed by a signal that was not ours.
    Signal {
        /// The signal's number.
        signal: i32,
    },
    /// The program could not be started: not found, not executable.
    CannotStart {
        /// The message of the system.
        message: String,
    },
    /// The file of its piece is gone, is shorter than it was when it was cut, or cannot be read; or the folder that it works in is
    /// gone. Nothing was started, and no fault of what would have been.
    InputUnreadable {
        /// The message of the system.
        message: String,
    },
    /// The folder that it was to have for itself cannot be made. Nothing was started, and no fault of what would have been.
    Isolation {
        /// The reason, with what can be done about it.
        message: String,
    },
    /// The system had too few descriptors or processes, or too little memory, to start it, and no program of ours was left
    /// whose end would have given some back. It says nothing about what was to be started.
    NoRoom {
        /// The message of the system.
        message: String,
    },
    /// The runtime broke: authentication, overload, invalid answers.
    RuntimeError {
        /// The message of the runtime.
        message: String,
        /// True if another attempt can help.
        retryable: bool,
    },
    /// A plugin panicked.
    PluginPanic {
        /// The panic's text and place.
        message: String,
    },
    /// The model's turns were used up.
    TurnLimit,
    /// The budget of the run was used up, or was too small for its next request to a model.
    Budget {
        /// `tokens` or `usd`.
        unit: String,
        /// The request that was too large; none where the budget was used up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestShortage>,
    },
    /// The budget that the pieces of a tree share has too little left to start this one, and no other piece was running that
    /// could have left some of its part.
    BudgetPool {
        /// `tokens` or `usd`.
        unit: String,
        /// The whole budget, in tokens or millionths of a dollar.
        granted: u64,
        /// The amount that was used by then.
        used: u64,
        /// The amount that was to be reserved for the run.
        asked: u64,
    },
    /// The time limit of the run was reached.
    Timeout {
        /// The limit.
        seconds: u64,
    },
    /// No sign of life.
    Idle {
        /// The limit.
        seconds: u64,
    },
    /// The run used one tool with one input again and again, and `onRepeat` is `stop`.
    Repeated {
        /// The name of the tool.
        tool: String,
        /// The number of uses in a row.
        times: u32,
    },
    /// The kernel killed it because memory was short: that of the computer, or of a group of processes in which it was.
    OutOfMemory {
        /// The most that the run may have; none where nothing bounds it.
        bytes: Option<u64>,
    },
    /// One of its processes had used up the CPU time that it may.
    CpuLimit {
        /// The limit.
        seconds: u64,
    },
    /// A process of it was refused a further file by a limit of open files, says so in its last words, and failed.
    OpenFileLimit {
        /// The limit.
        files: u64,
    },
    /// The run answered with more than it may.
    OutputLimit {
        /// The limit.
        bytes: u64,
    },
    /// The answer has not the form that was asked for. It is kept as it is.
    SchemaMismatch {
        /// A JSON pointer to the part of the answer that is wrong; empty for the whole.
        path: String,
        /// The fault.
        message: String,
    },
    /// The service refused it because a quota of its account is used up. It may have stood in line until the reset, as
    /// `quota.onWall` says; this run could not be continued and was not to be repeated, or its tree was not to wait.
    Quota {
        /// The quota in the words of the service, such as `five_hour`; none where the service does not name it.
        window: Option<String>,
        /// The time of the reset; none where the service does not say it.
        until: Option<Timestamp>,
    },
    /// The tree had waited for the reset of a quota for as long as `quota.maxParkSeconds` says.
    ParkLimit {
        /// The limit.
        seconds: u64,
    },
    /// The deadline of the whole tree, or of what is below an agent above it.
    Deadline,
    /// The run was cancelled.
    Cancelled {
        /// The party that cancelled it.
        by: CancelledBy,
    },
    /// A run that this one needs did not complete, so it was not started.
    NeedFailed {
        /// The name of the needed run.
        need: String,
    },
    /// A root that holds pieces: some of them did not complete, and that was not to be passed over.
    PiecesFailed {
        /// The number of failures.
        failed: u32,
        /// Of how many.
        total: u32,
    },
    /// A root that holds pieces: their results could not be merged into one answer, or do not agree as the merge asks. The results are
    /// kept.
    MergeFailed {
        /// The message of the merge.
        message: String,
    },
    /// The answer could not be kept: the store refused it. Or the piece with its header could not be written into the data folder.
    NotRecorded {
        /// The message of the store.
        message: String,
    },
    /// The supervisor died while it ran.
    Interrupted,
    /// A root for a client from outside: the client closed its connection, or ended its server. Both look the same where
    /// the client had done its work and where it was killed.
    ClientGone,
}

/// A request to a model that may use more than its run has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestShortage {
    /// The amount that the request may use, in tokens or millionths of a dollar.
    pub bound: u64,
    /// The amount that the run had left at most; of a piece, with what is left of the pool that it draws from.
    pub left: u64,
}

/// Returns an amount of tokens, or of millionths of a dollar where the unit is `usd`, as people read it.
fn in_unit(unit: &str, amount: u64) -> String {
    match unit {
        "usd" => number::exact_dollars(MicroUsd::from_micros(amount)),
        _ => number::tokens(TokenCount::Known(amount)),
    }
}

/// The party that cancelled a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
pub enum CancelledBy {
    /// The person at the terminal, or a command of theirs.
    #[strum(to_string = "the operator")]
    Operator,
    /// An agent above it.
    #[strum(to_string = "its parent")]
    Parent,
    /// The parent ended, and its policy is to cascade.
    #[strum(to_string = "its parent's end")]
    ParentEnded,
    /// A merge had its answer early.
    #[strum(to_string = "an early answer")]
    EarlyAnswer,
    /// More siblings failed than `--max-fail` allows.
    #[strum(to_string = "too many failures beside it")]
    MaxFail,
    /// An agent above it ran out of budget.
    #[strum(to_string = "a budget above it")]
    Budget,
}

impl Ending {
    /// An ending with a reason and nothing else.
    pub fn of(reason: Reason) -> Self {
        Self {
            reason,
            output: None,
            diagnostics: None,
            said: None,
            changes: None,
            usage: Usage::default(),
            cost: Cost::NONE,
            execution_time_ms: 0,
        }
    }

    /// Success with an answer.
    pub fn completed(output: Payload) -> Self {
        Self { output: Some(output), ..Self::of(Reason::Completed { exit_code: None }) }
    }

    /// The terminal status, which follows from the reason alone.
    pub fn status(&self) -> RunStatus {
        self.reason.status()
    }

    /// The line of its last words that says why it is no success, where there is one.
    pub fn cause(&self) -> Option<&str> {
        if self.status().is_success() {
            return None;
        }
        let said = self.diagnostics.as_deref()?;
        match self.reason.is_from_outside() {
            true => last_line(said),
            false => cause(said).map(first_failure),
        }
    }

    /// The reason in one line, with the cause.
    pub fn why(&self) -> String {
        with_cause(&self.reason, self.cause())
    }

    /// The same, with what the run itself says of its error.
    pub fn account(&self) -> String {
        let said = self.said.as_ref().and_then(|said| said.in_a_line());
        with_said(self.why(), said.as_deref())
    }

    /// Returns advice for the parent or the operator.
    pub fn hint(&self) -> Option<&'static str> {
        match self.reason {
            // A verdict, as that of `grep` or `diff`: what fails has a word to say about it, or a larger code.
            Reason::ExitCode { code: 1..=9 } if self.diagnostics.is_none() => {
                Some("accept it with --ok-exit where it means success")
            }
            ref reason => reason.hint(),
        }
    }
}

impl Reason {
    /// True if something else ended the run, whatever it was doing: what it said last is no cause.
    pub const fn is_from_outside(&self) -> bool {
        match self {
            Self::Cancelled { .. }
            | Self::Timeout { .. }
            | Self::Idle { .. }
            | Self::Deadline
            | Self::ParkLimit { .. } => true,
            // `SIGHUP`, `SIGINT`, `SIGKILL`, `SIGTERM`: sent by others. A program sends itself the other ones, and may say why.
            Self::Signal { signal } => matches!(*signal, 1 | 2 | 9 | 15),
            _ => false,
        }
    }

    /// The table of endings.
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Completed { .. } => RunStatus::Completed,
            Self::ExitCode { .. }
            | Self::Signal { .. }
            | Self::CannotStart { .. }
            | Self::InputUnreadable { .. }
            | Self::Isolation { .. }
            | Self::NoRoom { .. }
            | Self::RuntimeError { .. }
            | Self::PluginPanic { .. }
            | Self::TurnLimit
            | Self::Budget { .. }
            | Self::BudgetPool { .. }
            | Self::Quota { .. }
            | Self::PiecesFailed { .. }
            | Self::MergeFailed { .. }
            | Self::Repeated { .. }
            | Self::OutOfMemory { .. }
            | Self::CpuLimit { .. }
            | Self::OpenFileLimit { .. }
            | Self::OutputLimit { .. }
            | Self::SchemaMismatch { .. }
            | Self::NotRecorded { .. } => RunStatus::Failed,
            Self::Timeout { .. } | Self::Idle { .. } | Self::Deadline | Self::ParkLimit { .. } => {
                RunStatus::TimedOut
            }
            Self::Cancelled { .. } | Self::NeedFailed { .. } => RunStatus::Cancelled,
            Self::Interrupted => RunStatus::Lost,
            Self::ClientGone => RunStatus::ClientGone,
        }
    }

    /// The word for programs.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// True if the runtime is to blame, which is what a breaker counts; never a task's own verdict.
    pub const fn is_runtime_fault(&self) -> bool {
        matches!(
            self,
            Self::CannotStart { .. } | Self::RuntimeError { .. } | Self::PluginPanic { .. }
        )
    }

    /// True if another attempt of the same run can help, which the engine makes by itself where the settings say so. What a parent
    /// can do is [`recovery`](Self::recovery).
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::RuntimeError { retryable: true, .. } | Self::NoRoom { .. })
    }

    /// Returns the advice that follows from the reason alone.
    pub const fn hint(&self) -> Option<&'static str> {
        self.recovery().suggestion
    }
}

/// Returns a reason with the cause that the run named, in one line.
pub(crate) fn with_cause(reason: &Reason, cause: Option<&str>) -> String {
    match cause {
        // What it said last is not why it ended.
        Some(cause) if reason.is_from_outside() => format!("{reason}; last said: {cause}"),
        Some(cause) => format!("{reason}: {cause}"),
        None => reason.to_string(),
    }
}

/// A reason in one line, with what the run itself says of its error, where the line does not say that already.
pub(crate) fn with_said(why: String, said: Option<&str>) -> String {
    match said.filter(|said| !why.contains(said)) {
        Some(said) => format!("{why}; it says: {said}"),
        None => why,
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed { .. } => f.write_str("completed"),
            Self::ExitCode { code } => write!(f, "exited with code {code}"),
            Self::Signal { signal } => write!(f, "killed by signal {signal}"),
            Self::CannotStart { message } => write!(f, "cannot start: {message}"),
            Self::InputUnreadable { message } => write!(f, "cannot read its input: {message}"),
            Self::Isolation { message } => {
                write!(f, "cannot have a folder of its own: {message}")
            }
            Self::NoRoom { message } => write!(f, "no room on this system: {message}"),
            Self::RuntimeError { message, .. } => write!(f, "runtime error: {message}"),
            Self::PluginPanic { message } => write!(f, "plugin panicked: {message}"),
            Self::TurnLimit => f.write_str("out of turns"),
            Self::Budget { unit, request } => {
                write!(f, "out of budget ({unit})")?;
                let Some(RequestShortage { bound, left }) = *request else { return Ok(()) };
                let [bound, left] = [bound, left].map(|amount| in_unit(unit, amount));
                write!(f, ": its next request to a model may cost {bound}, and it has {left} left")
            }
            Self::BudgetPool { unit, granted, used, asked } => {
                let amount = |amount: u64| in_unit(unit, amount);
                let [granted, used, asked] = [*granted, *used, *asked].map(amount);
                write!(
                    f,
                    "not started: {used} of {granted} are used, and {asked} were to be reserved"
                )
            }
            Self::Timeout { seconds } => write!(f, "timed out after {seconds} s"),
            Self::Idle { seconds } => write!(f, "no sign of life for {seconds} s"),
            Self::Repeated { tool, times } => {
                write!(f, "used {tool} with the same input {times} times in a row")
            }
            Self::OutOfMemory { bytes: None } => f.write_str("killed because memory was short"),
            Self::OutOfMemory { bytes: Some(bytes) } => {
                let most = number::bytes(*bytes);
                write!(f, "killed because memory was short; it may have {most}")
            }
            Self::CpuLimit { seconds } => write!(f, "used up its {seconds} s of CPU time"),
            Self::OpenFileLimit { files } => {
                write!(f, "may have no more than {files} files open in a process")
            }
            Self::OutputLimit { bytes } => {
                write!(f, "answered with more than the {bytes} bytes that it may")
            }
            Self::SchemaMismatch { path, message } => {
                let gap = if path.is_empty() { "" } else { ": " };
                write!(f, "its answer does not match its schema: {path}{gap}{message}")
            }
            Self::Quota { window, until } => {
                f.write_str("its account has no quota left for it")?;
                if let Some(window) = window {
                    write!(f, " ({window})")?;
                }
                until.map_or(Ok(()), |until| write!(f, ", until {}", number::moment(until)))
            }
            Self::ParkLimit { seconds } => {
                write!(
                    f,
                    "its tree waited {seconds} s for the reset of a quota, which is the most that quota.maxParkSeconds allows"
                )
            }
            Self::Deadline => f.write_str("the deadline has passed"),
            Self::Cancelled { by } => write!(f, "cancelled by {by}"),
            Self::NeedFailed { need } => {
                write!(f, "not started: `{need}`, which it needs, did not complete")
            }
            Self::PiecesFailed { failed, total } => {
                write!(f, "{failed} of {total} pieces did not complete")
            }
            Self::MergeFailed { message } => write!(f, "cannot be merged: {message}"),
            Self::NotRecorded { message } => write!(f, "cannot be recorded: {message}"),
            Self::Interrupted => f.write_str("interrupted with its supervisor"),
            Self::ClientGone => f.write_str("its client has gone"),
        }
    }
}
