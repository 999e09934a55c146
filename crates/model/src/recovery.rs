//! The way on after an ending: advice, and if the same request is worth making again. One table.

use crate::{CancelledBy, Reason};

/// Advice for the run or the person that asked for a run that is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The next step; none where the program's own words say more than the reason does, or where nothing is to be done.
    pub suggestion: Option<&'static str>,
    /// True if the same request may succeed if it is made again.
    pub parent_can_retry: bool,
}

impl Reason {
    /// The table of what can be done after an ending. It is for parents: if the engine starts another attempt by itself is
    /// [`is_retryable`](Self::is_retryable). Exit codes are read by the conventions of shells and of `sysexits.h`; those that no
    /// convention has say too little to forbid another try.
    pub const fn recovery(&self) -> Recovery {
        match self {
            Self::Completed { .. } => no(None),
            // SIGKILL, and a shell whose last program was killed by it.
            Self::Signal { signal: 9 } | Self::ExitCode { code: 137 } => yes(Some(
                "the system may have been out of memory: run fewer at once, or give it a smaller piece",
            )),
            // SIGHUP, SIGINT, SIGPIPE and SIGTERM: something else ended it.
            Self::Signal { signal: 1 | 2 | 13 | 15 }
            | Self::ExitCode { code: 129 | 130 | 141 | 143 } => {
                yes(Some("another program, or a closed pipe, has ended it: run it again"))
            }
            // A crash, or a limit of the system.
            Self::Signal { .. } | Self::ExitCode { code: 128..=192 } => {
                no(Some("the program has crashed: correct it, or give it another input"))
            }
            // EX_UNAVAILABLE and EX_TEMPFAIL.
            Self::ExitCode { code: 69 | 75 } => {
                yes(Some("what it needs was not available: run it again later"))
            }
            Self::ExitCode { code: 126 } => no(Some(
                "check the mode of the programs that its command calls: one may not be executed",
            )),
            Self::ExitCode { code: 127 } => no(Some(
                "check the names of the programs that its command calls, and PATH: one was not found",
            )),
            // Wrong use, wrong input, no permission, wrong configuration: the same request has the same outcome.
            Self::ExitCode { code: 2 | 64..=68 | 72 | 73 | 76..=78 } => no(None),
            Self::ExitCode { .. } => yes(None),
            Self::CannotStart { .. } => no(Some(
                "of a program, check its name, its mode and PATH; of a chat endpoint or Claude Code, check its options with `offshoot config show`",
            )),
            Self::InputUnreadable { .. } => no(Some(
                "leave files and working folders in their place until the tree has ended, or run it over a copy",
            )),
            Self::Isolation { .. } => no(Some(
                "run it in a git repository that has a commit, with --isolation copy, or without isolation",
            )),
            Self::NoRoom { .. } => yes(Some(
                "run fewer at once, or raise the limits of open files and processes (ulimit -n, -u)",
            )),
            Self::RuntimeError { retryable: true, .. } => yes(Some("run it again later")),
            // The message comes from the service, and says what to correct.
            Self::RuntimeError { retryable: false, .. } => no(None),
            Self::PluginPanic { .. } => {
                no(Some("the plugin has a defect: update it, or use another runtime"))
            }
            Self::TurnLimit => no(Some("raise maxTurns of the agent, or give it a smaller task")),
            Self::Budget { request: Some(_), .. } => no(Some(
                "raise the budget, or ask for less; where the program names the longest answer (max_tokens), a shorter one costs less",
            )),
            Self::Budget { .. } => no(Some("raise the budget, or ask for less")),
            Self::BudgetPool { .. } => {
                no(Some("`offshoot resume RUN` with a larger budget starts what was not started"))
            }
            Self::Timeout { .. } => yes(Some("raise --timeout, or give it a smaller piece")),
            Self::Idle { .. } => yes(Some(
                "raise --idle-timeout (agents.defaults.subagents.idleTimeoutSeconds) if silence is normal here",
            )),
            Self::Repeated { .. } => no(Some(
                "give it a task that the tool can answer, or set agents.defaults.subagents.onRepeat to warn",
            )),
            Self::OutOfMemory { bytes: None } => yes(Some(
                "run fewer at once, give it a smaller piece, or let more memory stay available with host.memoryKeep",
            )),
            Self::OutOfMemory { bytes: Some(_) } => no(Some(
                "raise agents.defaults.subagents.maxMemoryBytes, or give it a smaller piece",
            )),
            Self::CpuLimit { .. } => no(Some(
                "raise agents.defaults.subagents.maxCpuSeconds, or give it a smaller piece",
            )),
            Self::OpenFileLimit { .. } => no(Some(
                "raise agents.defaults.subagents.maxOpenFiles, or have it open fewer files at once",
            )),
            Self::OutputLimit { .. } => no(Some(
                "raise agents.defaults.subagents.maxOutputBytes if so much output is meant",
            )),
            Self::SchemaMismatch { .. } => yes(Some(
                "run it again, or ask for a form that it can answer in; its answer is kept as it is",
            )),
            Self::Quota { .. } => yes(Some(
                "run it again after the reset; with `quota.onWall: park` a run waits for it that its runtime can continue, or that may be repeated (`onInterrupt: rerun`)",
            )),
            Self::ParkLimit { .. } => no(Some(
                "`offshoot resume RUN` goes on after the reset; agents.defaults.subagents.quota.maxParkSeconds says how long a tree waits",
            )),
            Self::Deadline => no(Some(
                "raise --deadline (agents.defaults.subagents.deadlineSeconds); `offshoot resume RUN --deadline 2h` goes on with a map or a fanout",
            )),
            Self::Cancelled { by: CancelledBy::MaxFail } => {
                yes(Some("see why the others failed; --max-fail N permits more"))
            }
            Self::Cancelled { by: CancelledBy::Budget } => no(Some(
                "raise the budget above it, or ask for less; `offshoot resume RUN` with a larger --budget-usd or --budget-tokens goes on with a map or a fanout",
            )),
            Self::Cancelled { by: CancelledBy::Parent } => yes(None),
            Self::Cancelled {
                by: CancelledBy::Operator | CancelledBy::ParentEnded | CancelledBy::EarlyAnswer,
            } => no(None),
            Self::NeedFailed { .. } => no(Some(
                "`offshoot resume RUN --failed` runs what it needs, and then it, once more",
            )),
            // Its pieces may have ended for reasons that pass.
            Self::PiecesFailed { .. } => yes(Some(
                "`offshoot resume RUN --failed --cancelled` runs those pieces again, and needs a larger --budget-usd or --budget-tokens where a budget is used up; with --on-failure skip, `map` and `fanout` answer without them, with --on-failure include they name them in the answer",
            )),
            Self::MergeFailed { .. } => no(Some(
                "the results are kept: `offshoot merge --children RUN --strategy STRATEGY` merges them in another way",
            )),
            Self::NotRecorded { .. } => yes(Some(
                "see what could not be written, free space there if it is full, then run it again",
            )),
            Self::Interrupted => yes(Some(
                "run it again; `offshoot resume RUN --failed` does that for pieces of a map or a fanout, and with `onInterrupt` set to `rerun` each `resume` for any run",
            )),
            Self::ClientGone => no(None),
        }
    }
}

const fn yes(suggestion: Option<&'static str>) -> Recovery {
    Recovery { suggestion, parent_can_retry: true }
}

const fn no(suggestion: Option<&'static str>) -> Recovery {
    Recovery { suggestion, parent_can_retry: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_says_if_it_can_be_tried_again_and_what_to_do() {
        let text = String::new;
        let exit = |code| Reason::ExitCode { code };
        let signal = |signal| Reason::Signal { signal };
        let cancelled = |by| Reason::Cancelled { by };
        // The reason, if it can be tried again, and a word of the advice.
        let table = [
            (Reason::Completed { exit_code: None }, false, None),
            (exit(1), true, None),
            (exit(2), false, None),
            (exit(7), true, None),
            (exit(64), false, None),
            (exit(66), false, None),
            (exit(69), true, Some("later")),
            (exit(75), true, Some("later")),
            (exit(77), false, None),
            (exit(78), false, None),
            (exit(124), true, None),
            (exit(126), false, Some("mode")),
            (exit(127), false, Some("PATH")),
            (exit(137), true, Some("memory")),
            (exit(139), false, Some("crashed")),
            (exit(143), true, Some("again")),
            (exit(255), true, None),
            (exit(-1), true, None),
            (signal(9), true, Some("memory")),
            (signal(11), false, Some("crashed")),
            (signal(15), true, Some("again")),
            (signal(24), false, Some("crashed")),
            (Reason::CannotStart { message: text() }, false, Some("PATH")),
            (Reason::InputUnreadable { message: text() }, false, Some("copy")),
            (Reason::NoRoom { message: text() }, true, Some("fewer")),
            (Reason::RuntimeError { message: text(), retryable: true }, true, Some("later")),
            (Reason::RuntimeError { message: text(), retryable: false }, false, None),
            (Reason::PluginPanic { message: text() }, false, Some("plugin")),
            (Reason::MergeFailed { message: text() }, false, Some("--strategy")),
            (Reason::TurnLimit, false, Some("maxTurns")),
            (Reason::Budget { unit: text(), request: None }, false, Some("budget")),
            (
                Reason::BudgetPool { unit: text(), granted: 1, used: 1, asked: 1 },
                false,
                Some("resume"),
            ),
            (Reason::Timeout { seconds: 1 }, true, Some("--timeout")),
            (Reason::Idle { seconds: 1 }, true, Some("idleTimeoutSeconds")),
            (Reason::Repeated { tool: text(), times: 10 }, false, Some("onRepeat")),
            (Reason::OutOfMemory { bytes: None }, true, Some("memoryKeep")),
            (Reason::OutOfMemory { bytes: Some(1) }, false, Some("maxMemoryBytes")),
            (Reason::CpuLimit { seconds: 1 }, false, Some("maxCpuSeconds")),
            (Reason::OpenFileLimit { files: 1 }, false, Some("maxOpenFiles")),
            (Reason::OutputLimit { bytes: 1 }, false, Some("maxOutputBytes")),
            (Reason::SchemaMismatch { path: text(), message: text() }, true, Some("form")),
            (Reason::Quota { window: None, until: None }, true, Some("onWall")),
            (Reason::ParkLimit { seconds: 1 }, false, Some("maxParkSeconds")),
            (Reason::Deadline, false, Some("deadlineSeconds")),
            (cancelled(CancelledBy::Operator), false, None),
            (cancelled(CancelledBy::Parent), true, None),
            (cancelled(CancelledBy::ParentEnded), false, None),
            (cancelled(CancelledBy::EarlyAnswer), false, None),
            (cancelled(CancelledBy::MaxFail), true, Some("--max-fail")),
            (cancelled(CancelledBy::Budget), false, Some("budget")),
            (Reason::NeedFailed { need: text() }, false, Some("--failed")),
            (Reason::PiecesFailed { failed: 1, total: 2 }, true, Some("resume RUN --failed")),
            (Reason::NotRecorded { message: text() }, true, Some("space")),
            (Reason::Isolation { message: text() }, false, Some("--isolation")),
            (Reason::Interrupted, true, Some("resume")),
            (Reason::ClientGone, false, None),
        ];
        for (reason, can_retry, word) in &table {
            let Recovery { suggestion, parent_can_retry } = reason.recovery();
            assert_eq!(parent_can_retry, *can_retry, "{reason:?}");
            match (suggestion, word) {
                (Some(suggestion), Some(word)) => {
                    assert!(suggestion.contains(word), "{reason:?}: {suggestion}");
                }
                (suggestion, word) => assert_eq!(suggestion, *word, "{reason:?}"),
            }
            if reason.is_retryable() {
                assert!(parent_can_retry, "the engine itself would try it again: {reason:?}");
            }
        }
        let kinds = schemars::schema_for!(Reason);
        for kind in kinds.as_value()["oneOf"].as_array().expect("the kinds") {
            let kind = kind["properties"]["kind"]["const"].as_str().expect("a word");
            assert!(table.iter().any(|(reason, ..)| reason.code() == kind), "no row for {kind}");
        }
    }
}
