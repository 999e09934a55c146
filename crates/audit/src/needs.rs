//! Runs that a run needs are over before it starts.

use offshoot_model::{Admitted, OnNeedFailed, RunId, RunStatus};

/// Checks the start of a run against the ends of the runs that it needs. `ended` tells how a run has ended, if it has.
pub(crate) fn check_start(
    admitted: &Admitted,
    ended: impl Fn(RunId) -> Option<RunStatus>,
) -> Option<String> {
    let may_miss = admitted.on_need_failed == OnNeedFailed::Run;
    admitted.needs.iter().find_map(|need| match need.run.map(&ended) {
        Some(None) => Some(format!("starts before `{}`, which it needs, is over", need.name)),
        Some(Some(status)) if status.is_success() => None,
        _ if may_miss => None,
        _ => Some(format!("starts although `{}`, which it needs, did not complete", need.name)),
    })
}

/// Checks the end of a run that was skipped for this need.
pub(crate) fn check_skip(
    admitted: &Admitted,
    name: &str,
    ended: impl Fn(RunId) -> Option<RunStatus>,
) -> Option<String> {
    let Some(need) = admitted.needs.iter().find(|need| *need.name == *name) else {
        return Some(format!("is skipped for `{name}`, which it does not need"));
    };
    if admitted.on_need_failed == OnNeedFailed::Run {
        return Some(format!("is skipped for `{name}`, and was to run without"));
    }
    match need.run.map(ended) {
        None => None,
        Some(Some(status)) if !status.is_success() => None,
        _ => Some(format!("is skipped for `{name}`, which did not fail")),
    }
}
