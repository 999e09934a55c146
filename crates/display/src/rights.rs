//! The terms of a run, and how they differ from those of its parent, for a terminal.

use std::time::Duration;

use offshoot_model::Grant;

use crate::{neutral, number};

/// Returns the terms of a run in one line; of one that has a parent, what is not as its parent's.
pub(crate) fn granted(grant: &Grant, parent: Option<&Grant>) -> String {
    let Some(parent) = parent else {
        let words = grant.words();
        let words: Vec<_> = words.iter().map(|words| neutral::line(words)).collect();
        return words.join(", ");
    };
    match changed(parent, grant).as_slice() {
        [] => "as its parent".to_owned(),
        changes => format!("as its parent, but {}", changes.join(", ")),
    }
}

/// Returns the limits of time of a run, where it has any.
pub(crate) fn time_limits(grant: &Grant) -> Option<String> {
    let after = |seconds: u64, what: &str| {
        (seconds > 0).then(|| format!("{} {what}", number::duration(Duration::from_secs(seconds))))
    };
    let limits = [
        after(grant.run_timeout_seconds, "of work"),
        after(grant.idle_timeout_seconds, "of silence"),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

/// Returns what a run was granted otherwise than its parent, a line for each; nothing where the terms are the same.
pub fn changed(parent: &Grant, child: &Grant) -> Vec<String> {
    let lines = child.changes_from(parent);
    lines.iter().map(|line| neutral::line(line).into_owned()).collect()
}
