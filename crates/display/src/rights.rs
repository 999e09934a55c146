//! The terms of a run, and how they differ from those of its parent, for a terminal.

use offshoot_model::Grant;

use crate::neutral;

/// Returns the terms of a run in one line; of one that has a parent, what is not as its parent's.
pub(crate) fn granted(grant: &Grant, parent: Option<&Grant>) -> String {
    let words = match parent {
        Some(parent) => changed(parent, grant),
        None => grant.words().iter().map(|words| neutral::line(words).into_owned()).collect(),
    };
    if words.is_empty() { "as its parent".to_owned() } else { words.join(", ") }
}

/// Returns what a run was granted otherwise than its parent, a line for each; nothing where the terms are the same.
pub fn changed(parent: &Grant, child: &Grant) -> Vec<String> {
    let lines = child.changes_from(parent);
    lines.iter().map(|line| neutral::line(line).into_owned()).collect()
}
