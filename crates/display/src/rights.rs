//! The terms of a run, and how they differ from those of its parent.

use std::collections::BTreeSet;
use std::time::Duration;

use offshoot_model::{Grant, NEVER_FOR_SUB_AGENTS, TokenCount};

use crate::{neutral, number};

/// Returns the terms of a run in one line; of one that has a parent, what is not as its parent's.
pub(crate) fn granted(grant: &Grant, parent: Option<&Grant>) -> String {
    if let Some(parent) = parent {
        let changed = changed(parent, grant);
        return if changed.is_empty() { "as its parent".to_owned() } else { changed.join(", ") };
    }
    let mut parts = vec![match grant.may_spawn {
        true => format!("children down to depth {}", grant.max_depth),
        false => "no children".to_owned(),
    }];
    parts.push(match &grant.tools.allow {
        None => "all tools".to_owned(),
        Some(allow) if allow.is_empty() => "no tools".to_owned(),
        Some(allow) => format!("tools {}", words(allow)),
    });
    parts.extend(denied(grant).map(|denied| format!("never {denied}")));
    parts.extend(tokens(grant));
    parts.extend(dollars(grant));
    parts.push(format!("time limit {}", seconds(grant.run_timeout_seconds)));
    parts.push(format!("limit of silence {}", seconds(grant.idle_timeout_seconds)));
    parts.join(", ")
}

/// Returns what a run was granted otherwise than its parent, a line for each; nothing where the terms are the same.
pub fn changed(parent: &Grant, child: &Grant) -> Vec<String> {
    let mut lines = Vec::new();
    let mut changes = |what: &str, before: String, now: String| {
        if before != now {
            lines.push(format!("{what}: {before} → {now}"));
        }
    };
    let may = |grant: &Grant| match grant.may_spawn {
        true => format!("down to depth {}", grant.max_depth),
        false => "none".to_owned(),
    };
    changes("children", may(parent), may(child));
    let agents = |grant: &Grant| match grant.agents.as_slice() {
        [] => "its own".to_owned(),
        agents => agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    changes("agents", agents(parent), agents(child));
    let allow = |grant: &Grant| match &grant.tools.allow {
        None => "all".to_owned(),
        Some(allow) if allow.is_empty() => "none".to_owned(),
        Some(allow) => words(allow),
    };
    changes("tools", allow(parent), allow(child));
    let deny = |grant: &Grant| denied(grant).unwrap_or_else(|| "none".to_owned());
    changes("tools denied", deny(parent), deny(child));
    let or_none = |amount: Option<String>| amount.unwrap_or_else(|| "no limit".to_owned());
    changes("budget", or_none(dollars(parent)), or_none(dollars(child)));
    changes("tokens", or_none(tokens(parent)), or_none(tokens(child)));
    let time = |limit: fn(&Grant) -> u64| [seconds(limit(parent)), seconds(limit(child))];
    let [before, now] = time(|grant| grant.run_timeout_seconds);
    changes("time limit", before, now);
    let [before, now] = time(|grant| grant.idle_timeout_seconds);
    changes("limit of silence", before, now);
    let [before, now] = time(|grant| grant.grace_seconds);
    changes("time to stop", before, now);
    let answer = |grant: &Grant| match grant.max_output_bytes {
        0 => "no limit".to_owned(),
        most => number::bytes(most),
    };
    changes("length of the answer", answer(parent), answer(child));
    lines
}

/// The rights that are denied. Those that no sub-agent has say nothing of this one.
fn denied(grant: &Grant) -> Option<String> {
    let denied = grant.tools.deny.iter().map(String::as_str);
    let denied = denied.filter(|right| !NEVER_FOR_SUB_AGENTS.contains(right));
    let denied: Vec<_> = denied.map(neutral::line).collect();
    (!denied.is_empty()).then(|| denied.join(" "))
}

fn tokens(grant: &Grant) -> Option<String> {
    let tokens = grant.budget.tokens?;
    Some(match grant.pooled.tokens {
        true => "tokens out of the pool of its parent".to_owned(),
        false => number::tokens(TokenCount::Known(tokens)),
    })
}

fn dollars(grant: &Grant) -> Option<String> {
    let usd = grant.budget.usd?;
    Some(match grant.pooled.usd {
        true => "dollars out of the pool of its parent".to_owned(),
        false => number::dollars(usd),
    })
}

fn seconds(limit: u64) -> String {
    match limit {
        0 => "none".to_owned(),
        limit => number::duration(Duration::from_secs(limit)),
    }
}

fn words(rights: &BTreeSet<String>) -> String {
    let words: Vec<_> = rights.iter().map(|right| neutral::line(right)).collect();
    words.join(" ")
}
