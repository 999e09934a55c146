//! From what a session told and how its process ended to a reason. Pure.

use std::time::Duration;

use offshoot_model::{CancelledBy, Grant, Reason, Timestamp};
use offshoot_process::{Exit, Finished as Ended, Reached};

use crate::lines::{Quota, TurnResult};

/// The evidence about a session when its process is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The result of its last turn; none where that turn did not end.
    pub(crate) result: Option<TurnResult>,
    /// The last error of the service that an answer stood for.
    pub(crate) assistant_error: Option<String>,
    /// The first output that was no message.
    pub(crate) garbage: Option<String>,
    /// True if it printed any message.
    pub(crate) spoke: bool,
    /// The reason why it was ended without a request to stop.
    pub(crate) broken: Option<String>,
    /// True if it was ended because it did not exit after its last turn.
    pub(crate) lingered: bool,
    /// True if it was asked to break off its last turn.
    pub(crate) interrupted: bool,
    /// True if nothing was used in the turn that did not end.
    pub(crate) unused: bool,
    /// The quota that is used up, as the service has said last.
    pub(crate) quota: Option<Quota>,
    /// The time that the program waited before it tried a refused call again: what the service asked for, or longer each time.
    pub(crate) retry_after: Option<Duration>,
}

/// Errors of the service that another attempt may not meet. The others stay as they are.
const RETRYABLE: &[&str] = &["rate_limit", "overloaded", "server_error", "connection_failed"];

/// The reason, by evidence: what we did, what the session said of its turn, and last how the process ended.
pub(crate) fn reason(evidence: &Evidence, ended: &Ended) -> Reason {
    if let Some(message) = &evidence.broken {
        return Reason::RuntimeError { message: message.clone(), retryable: false };
    }
    if evidence.interrupted || ended.stop.is_some() && !evidence.lingered {
        // The engine, which asked for the stop, records the reason.
        return Reason::Cancelled { by: CancelledBy::Operator };
    }
    match &evidence.result {
        Some(result) => {
            let error = evidence.assistant_error.as_deref();
            let reason = of_result(result, error);
            match &evidence.quota {
                Some(quota) if is_refusal(&reason, error, result.api_error_status) => wall(quota),
                _ => reason,
            }
        }
        None => without_result(evidence, ended),
    }
}

/// The reason of a session whose process the kernel has ended by one of its bounds.
pub(crate) fn bounded(reason: Reason, reached: Option<Reached>, grant: &Grant) -> Reason {
    match (&reason, reached) {
        (Reason::Signal { .. }, Some(Reached::Cpu)) => {
            Reason::CpuLimit { seconds: grant.max_cpu_seconds }
        }
        (Reason::Signal { .. }, Some(Reached::Memory)) => {
            let bytes = Some(grant.max_memory_bytes).filter(|bytes| *bytes > 0);
            Reason::OutOfMemory { bytes }
        }
        _ => reason,
    }
}

/// True if another attempt may end otherwise.
pub(crate) fn is_retryable(error: Option<&str>, status: Option<u64>) -> bool {
    let passing = |status: u64| matches!(status, 408 | 429 | 500..=599);
    error.is_some_and(|error| RETRYABLE.contains(&error)) || status.is_some_and(passing)
}

/// True if a turn failed because the service refused a call for the number of its calls, as far as it says why.
fn is_refusal(reason: &Reason, error: Option<&str>, status: Option<u64>) -> bool {
    matches!(reason, Reason::RuntimeError { .. })
        && error.is_none_or(|error| error == "rate_limit")
        && status.is_none_or(|status| status == 429)
}

/// The reason for the end of a run that met the wall of a quota.
fn wall(quota: &Quota) -> Reason {
    let at = |seconds: u64| Timestamp::from_micros(seconds.saturating_mul(1_000_000));
    Reason::Quota { window: quota.window.clone(), until: quota.resets_at.map(at) }
}

fn of_result(result: &TurnResult, error: Option<&str>) -> Reason {
    match result.subtype.as_str() {
        "error_max_turns" => Reason::TurnLimit,
        "error_max_budget_usd" => Reason::Budget { unit: "usd".to_owned(), request: None },
        "success" if !result.is_error => Reason::Completed { exit_code: None },
        subtype => {
            let said = result.result.as_deref().filter(|text| !text.is_empty());
            let message = match said {
                Some(text) => text.to_owned(),
                None if !result.errors.is_empty() => result.errors.join("; "),
                None => format!("the turn ended with {subtype:?}"),
            };
            let retryable = is_retryable(error, result.api_error_status);
            Reason::RuntimeError { message, retryable }
        }
    }
}

/// The process is gone and owes its result. That is its own failure, not the verdict of its task, whatever its exit code.
fn without_result(evidence: &Evidence, ended: &Ended) -> Reason {
    let how = match ended.exit {
        Exit::Code(code) => format!("exited with code {code}"),
        Exit::Signal(signal) => return Reason::Signal { signal },
        Exit::Lost => "did not end when it was killed".to_owned(),
    };
    let printed = match &evidence.garbage {
        Some(garbage) => format!("; it printed {garbage:?}"),
        None => String::new(),
    };
    if let Some(quota) = &evidence.quota
        && ended.exit != Exit::Code(0)
    {
        return wall(quota);
    }
    let message = format!("claude {how} without a result{printed}");
    if evidence.spoke || matches!(ended.exit, Exit::Code(0) | Exit::Lost) {
        return Reason::RuntimeError { message, retryable: false };
    }
    // It said nothing at all: it did not like how it was started.
    Reason::CannotStart { message }
}

#[cfg(test)]
mod tests {
    use offshoot_model::RunStatus;
    use offshoot_process::Rung;

    use super::*;

    fn result(subtype: &str, is_error: bool) -> TurnResult {
        TurnResult { subtype: subtype.into(), is_error, ..TurnResult::default() }
    }

    fn spoke(result: Option<TurnResult>) -> Evidence {
        Evidence { result, spoke: true, ..Evidence::default() }
    }

    fn error(message: &str, retryable: bool) -> Reason {
        Reason::RuntimeError { message: message.into(), retryable }
    }

    #[test]
    fn a_bound_of_the_kernel_has_a_name() {
        let grant = Grant { max_cpu_seconds: 7, ..Grant::unbounded() };
        let killed = || Reason::Signal { signal: 9 };
        let check = |reason, reached, expected| {
            assert_eq!(bounded(reason, reached, &grant), expected);
        };
        check(killed(), None, killed());
        check(killed(), Some(Reached::Cpu), Reason::CpuLimit { seconds: 7 });
        check(killed(), Some(Reached::Memory), Reason::OutOfMemory { bytes: None });
        // It had answered before.
        let completed = || Reason::Completed { exit_code: None };
        check(completed(), Some(Reached::Memory), completed());
    }

    #[test]
    fn the_table_of_results() {
        let said = |text: &str| TurnResult { result: Some(text.into()), ..result("success", true) };
        let failed = TurnResult {
            errors: vec!["a".into(), "b".into()],
            ..result("error_during_execution", true)
        };
        for (result, exit, expected) in [
            (result("success", false), 0, Reason::Completed { exit_code: None }),
            (result("error_max_turns", true), 1, Reason::TurnLimit),
            (
                result("error_max_budget_usd", true),
                1,
                Reason::Budget { unit: "usd".into(), request: None },
            ),
            (said("Not logged in"), 1, error("Not logged in", false)),
            (said("Not logged in"), 0, error("Not logged in", false)),
            (failed, 1, error("a; b", false)),
            (
                result("of_the_future", false),
                0,
                error("the turn ended with \"of_the_future\"", false),
            ),
        ] {
            let evidence = spoke(Some(result));
            assert_eq!(reason(&evidence, &Ended::of(Exit::Code(exit))), expected, "{evidence:?}");
        }
    }

    #[test]
    fn without_a_result_the_process_is_the_evidence() {
        let garbage = Evidence { garbage: Some("oops".into()), ..Evidence::default() };
        for (evidence, exit, expected) in [
            (
                spoke(None),
                Exit::Code(0),
                error("claude exited with code 0 without a result", false),
            ),
            (
                spoke(None),
                Exit::Code(3),
                error("claude exited with code 3 without a result", false),
            ),
            (spoke(None), Exit::Signal(9), Reason::Signal { signal: 9 }),
            (
                garbage.clone(),
                Exit::Code(0),
                error("claude exited with code 0 without a result; it printed \"oops\"", false),
            ),
            (
                garbage,
                Exit::Code(1),
                Reason::CannotStart {
                    message: "claude exited with code 1 without a result; it printed \"oops\""
                        .into(),
                },
            ),
        ] {
            assert_eq!(reason(&evidence, &Ended::of(exit)), expected, "{evidence:?} {exit:?}");
        }
        assert_eq!(reason(&spoke(None), &Ended::of(Exit::Lost)).status(), RunStatus::Failed);
    }

    #[test]
    fn a_turn_that_a_quota_ended_says_so() {
        let quota = Quota {
            left: Vec::new(),
            is_used_up: true,
            resets_at: Some(1_700_000_000),
            window: Some("five_hour".into()),
        };
        let until = Some(Timestamp::from_micros(1_700_000_000_000_000));
        let met = Reason::Quota { window: Some("five_hour".into()), until };
        let said = || TurnResult { result: Some("limit".into()), ..result("success", true) };
        let check = |result: Option<TurnResult>, error: Option<&str>, exit, expected: &Reason| {
            let evidence = Evidence {
                quota: Some(quota.clone()),
                assistant_error: error.map(str::to_owned),
                ..spoke(result)
            };
            assert_eq!(&reason(&evidence, &Ended::of(exit)), expected, "{evidence:?}");
        };
        let one = Exit::Code(1);
        check(Some(said()), Some("rate_limit"), one, &met);
        check(Some(said()), None, one, &met);
        check(Some(TurnResult { api_error_status: Some(429), ..said() }), None, one, &met);
        check(None, None, one, &met);
        // The program goes on beyond the quota, or ends for another reason.
        let done = Reason::Completed { exit_code: None };
        check(Some(result("success", false)), None, Exit::Code(0), &done);
        check(Some(result("error_max_turns", true)), None, one, &Reason::TurnLimit);
        let limit = || error("limit", false);
        check(Some(said()), Some("authentication_failed"), one, &limit());
        check(Some(TurnResult { api_error_status: Some(400), ..said() }), None, one, &limit());
        check(None, None, Exit::Signal(9), &Reason::Signal { signal: 9 });
    }

    #[test]
    fn one_that_was_stopped_is_no_success() {
        let mut stopped = Ended::of(Exit::Code(0));
        stopped.stop = Some(Rung::Asked);
        let mut evidence = spoke(Some(result("success", false)));
        assert_eq!(reason(&evidence, &stopped).code(), "cancelled");
        evidence.lingered = true;
        assert_eq!(reason(&evidence, &stopped).code(), "completed", "it had answered long before");
        evidence.interrupted = true;
        assert_eq!(
            reason(&evidence, &Ended::of(Exit::Code(1))).code(),
            "cancelled",
            "it went by itself"
        );
        evidence.broken = Some("no tools".into());
        assert_eq!(reason(&evidence, &stopped), error("no tools", false));
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for (error, status, expected) in [
            (Some("rate_limit"), None, true),
            (Some("overloaded"), None, true),
            (Some("server_error"), None, true),
            (Some("unknown"), Some(529), true),
            (Some("unknown"), Some(400), false),
            (Some("authentication_failed"), Some(401), false),
            (Some("billing_error"), None, false),
            (Some("invalid_request"), Some(400), false),
            (Some("model_not_found"), Some(404), false),
            (Some("max_output_tokens"), None, false),
            (None, None, false),
        ] {
            assert_eq!(is_retryable(error, status), expected, "{error:?} {status:?}");
        }
    }
}
