//! The ending of a run, by evidence.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cost, Payload, RunStatus, Usage};

/// The one terminal fact about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// The reason of the ending. The status follows from it.
    pub reason: Reason,
    /// The output or answer of the run, whatever the ending.
    pub output: Option<Payload>,
    /// The last lines of what it said beside its answer, for the error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<String>,
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
    /// The budget of the run was used up.
    Budget {
        /// `tokens` or `usd`.
        unit: String,
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
    /// The run answered with more than it may.
    OutputLimit {
        /// The limit.
        bytes: u64,
    },
    /// The deadline of the whole tree, or of what is below an agent above it.
    Deadline,
    /// The run was cancelled.
    Cancelled {
        /// The party that cancelled it.
        by: CancelledBy,
    },
    /// A root that holds pieces: some of them did not complete, and that was not to be passed over.
    PiecesFailed {
        /// The number of failures.
        failed: u32,
        /// Of how many.
        total: u32,
    },
    /// The answer could not be kept: the store refused it.
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

/// The party that cancelled a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelledBy {
    /// The person at the terminal, or a command of theirs.
    Operator,
    /// An agent above it.
    Parent,
    /// The parent ended, and its policy is to cascade.
    ParentEnded,
    /// A merge had its answer early.
    EarlyAnswer,
    /// More siblings failed than `--max-fail` allows.
    MaxFail,
    /// An agent above it ran out of budget.
    Budget,
}

impl Ending {
    /// An ending with a reason and nothing else.
    pub fn of(reason: Reason) -> Self {
        Self {
            reason,
            output: None,
            diagnostics: None,
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
}

impl Reason {
    /// The table of endings.
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Completed { .. } => RunStatus::Completed,
            Self::ExitCode { .. }
            | Self::Signal { .. }
            | Self::CannotStart { .. }
            | Self::NoRoom { .. }
            | Self::RuntimeError { .. }
            | Self::PluginPanic { .. }
            | Self::TurnLimit
            | Self::Budget { .. }
            | Self::PiecesFailed { .. }
            | Self::OutputLimit { .. }
            | Self::NotRecorded { .. } => RunStatus::Failed,
            Self::Timeout { .. } | Self::Idle { .. } | Self::Deadline => RunStatus::TimedOut,
            Self::Cancelled { .. } => RunStatus::Cancelled,
            Self::Interrupted => RunStatus::Lost,
            Self::ClientGone => RunStatus::ClientGone,
        }
    }

    /// The word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::ExitCode { .. } => "exit_code",
            Self::Signal { .. } => "signal",
            Self::CannotStart { .. } => "cannot_start",
            Self::NoRoom { .. } => "no_room",
            Self::RuntimeError { .. } => "runtime_error",
            Self::PluginPanic { .. } => "plugin_panic",
            Self::TurnLimit => "turn_limit",
            Self::Budget { .. } => "budget",
            Self::Timeout { .. } => "timeout",
            Self::Idle { .. } => "idle",
            Self::OutputLimit { .. } => "output_limit",
            Self::Deadline => "deadline",
            Self::Cancelled { .. } => "cancelled",
            Self::PiecesFailed { .. } => "pieces_failed",
            Self::NotRecorded { .. } => "not_recorded",
            Self::Interrupted => "interrupted",
            Self::ClientGone => "client_gone",
        }
    }

    /// True if the runtime is to blame, which is what a breaker counts; never a task's own verdict.
    pub const fn is_runtime_fault(&self) -> bool {
        matches!(
            self,
            Self::CannotStart { .. } | Self::RuntimeError { .. } | Self::PluginPanic { .. }
        )
    }

    /// True if another attempt can help.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::RuntimeError { retryable: true, .. } | Self::NoRoom { .. })
    }

    /// Returns advice for the parent or the operator.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::CannotStart { .. } => Some("check the command's name, its mode and PATH"),
            Self::NoRoom { .. } => Some(
                "run fewer at once, or raise the limits of open files and processes (ulimit -n, -u)",
            ),
            Self::ExitCode { .. } => Some("accept it with --ok-exit where it means success"),
            Self::Timeout { .. } => Some("raise --timeout, or give it a smaller piece"),
            Self::Idle { .. } => {
                Some("raise agents.defaults.subagents.idleTimeoutSeconds if silence is normal here")
            }
            Self::OutputLimit { .. } => {
                Some("raise agents.defaults.subagents.maxOutputBytes if so much output is meant")
            }
            Self::Deadline => Some("raise agents.defaults.subagents.deadlineSeconds"),
            Self::Budget { .. } => Some("raise the budget, or ask for less"),
            Self::PiecesFailed { .. } => Some(
                "--on-failure skip leaves them out; --on-failure include keeps them in the answer",
            ),
            Self::NotRecorded { .. } => Some("free space in the data folder, then run it again"),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed { .. } => f.write_str("completed"),
            Self::ExitCode { code } => write!(f, "exited with code {code}"),
            Self::Signal { signal } => write!(f, "killed by signal {signal}"),
            Self::CannotStart { message } => write!(f, "cannot start: {message}"),
            Self::NoRoom { message } => write!(f, "no room on this system: {message}"),
            Self::RuntimeError { message, .. } => write!(f, "runtime error: {message}"),
            Self::PluginPanic { message } => write!(f, "plugin panicked: {message}"),
            Self::TurnLimit => f.write_str("out of turns"),
            Self::Budget { unit } => write!(f, "out of budget ({unit})"),
            Self::Timeout { seconds } => write!(f, "timed out after {seconds} s"),
            Self::Idle { seconds } => write!(f, "no sign of life for {seconds} s"),
            Self::OutputLimit { bytes } => {
                write!(f, "answered with more than the {bytes} bytes that it may")
            }
            Self::Deadline => f.write_str("the deadline has passed"),
            Self::Cancelled { by } => write!(f, "cancelled by {by}"),
            Self::PiecesFailed { failed, total } => {
                write!(f, "{failed} of {total} pieces did not complete")
            }
            Self::NotRecorded { message } => write!(f, "cannot be recorded: {message}"),
            Self::Interrupted => f.write_str("interrupted with its supervisor"),
            Self::ClientGone => f.write_str("its client has gone"),
        }
    }
}

impl fmt::Display for CancelledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operator => "the operator",
            Self::Parent => "its parent",
            Self::ParentEnded => "its parent's end",
            Self::EarlyAnswer => "an early answer",
            Self::MaxFail => "too many failures beside it",
            Self::Budget => "a budget above it",
        })
    }
}
