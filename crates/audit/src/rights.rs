//! The check that a child has no right that its parent lacks.

use offshoot_model::{Grant, Rights};

/// A program can do these anyway.
const WITHIN_EXEC: [&str; 4] = ["read", "write", "search", "fetch"];

/// Rights that no run below a root ever has.
const ROOTS_ALONE: [&str; 7] = [
    "gateway",
    "agents_list",
    "whatsapp_login",
    "session_status",
    "cron",
    "memory_search",
    "memory_get",
];

/// The first right that a child holds and its parent does not, in words.
pub(crate) fn gained(parent: &Rights, child: &Rights) -> Option<String> {
    let by_denial = parent.deny.iter().find(|right| child.permits(right));
    let named = || {
        let allow = child.allow.as_ref()?;
        allow.iter().find(|right| child.permits(right) && !holds(parent, right))
    };
    if let Some(right) = by_denial.or_else(named) {
        return Some(format!("holds `{right}`, which its parent does not"));
    }
    // A list of what is allowed cannot become everything.
    (parent.allow.is_some() && child.allow.is_none())
        .then(|| "holds whatever is not denied, and its parent only what is named".to_owned())
}

/// The amount of the computer that a child may take beyond what its parent may, in words. Zero bounds nothing.
pub(crate) fn more_of_host(parent: &Grant, child: &Grant) -> Option<String> {
    let both = [
        ("bytes of memory", parent.max_memory_bytes, child.max_memory_bytes),
        ("open files", parent.max_open_files, child.max_open_files),
        ("seconds of CPU time", parent.max_cpu_seconds, child.max_cpu_seconds),
    ];
    let is_more =
        |(_, parent, child): &(&str, u64, u64)| *parent > 0 && (*child == 0 || child > parent);
    both.into_iter().find(is_more).map(|(what, parent, child)| match child {
        0 => format!("may take any number of {what}, and its parent {parent}"),
        _ => format!("may take {child} {what}, and its parent {parent}"),
    })
}

/// A tool of roots that a run below one holds.
pub(crate) fn of_roots(child: &Rights) -> Option<&'static str> {
    ROOTS_ALONE.into_iter().find(|right| child.permits(right))
}

fn holds(rights: &Rights, right: &str) -> bool {
    let implied = WITHIN_EXEC.contains(&right) && rights.permits("exec");
    rights.permits(right) || (implied && !rights.deny.contains(right))
}
