//! The words for the terms of a run, and for how they differ from those of its parent.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Grant;
use crate::{NEVER_FOR_SUB_AGENTS, TokenCount, number};

impl Grant {
    /// Returns the terms, a few words each.
    pub fn words(&self) -> Vec<String> {
        let mut parts = vec![match self.may_spawn {
            true => format!("children down to depth {}", self.max_depth),
            false => "no children".to_owned(),
        }];
        parts.push(match &self.tools.allow {
            None => "all tools".to_owned(),
            Some(allow) if allow.is_empty() => "no tools".to_owned(),
            Some(allow) => format!("tools {}", words(allow)),
        });
        parts.extend(denied(self).map(|denied| format!("never {denied}")));
        parts.extend(tokens(self));
        parts.extend(dollars(self));
        parts.push(format!("time limit {}", seconds(self.run_timeout_seconds)));
        parts.push(format!("limit of silence {}", seconds(self.idle_timeout_seconds)));
        parts
    }

    /// Returns what differs from the terms of the parent, a line for each; nothing where they are the same.
    ///
    /// ```
    /// use offshoot_model::Grant;
    ///
    /// let parent = Grant::unbounded();
    /// let child = Grant { may_spawn: false, ..Grant::unbounded() };
    /// assert_eq!(child.changes_from(&parent), ["children: down to depth 1 → none"]);
    /// ```
    pub fn changes_from(&self, parent: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut changes = |what: &str, words: &dyn Fn(&Self) -> String| {
            let [before, now] = [parent, self].map(words);
            if before != now {
                lines.push(format!("{what}: {before} → {now}"));
            }
        };
        changes("children", &|grant| match grant.may_spawn {
            true => format!("down to depth {}", grant.max_depth),
            false => "none".to_owned(),
        });
        changes("agents", &|grant| match grant.agents.as_slice() {
            [] => "its own".to_owned(),
            agents => agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        });
        changes("tools", &|grant| match &grant.tools.allow {
            None => "all".to_owned(),
            Some(allow) if allow.is_empty() => "none".to_owned(),
            Some(allow) => words(allow),
        });
        changes("tools denied", &|grant| denied(grant).unwrap_or_else(|| "none".to_owned()));
        let or_none = |amount: Option<String>| amount.unwrap_or_else(|| "no limit".to_owned());
        changes("budget", &|grant| or_none(dollars(grant)));
        changes("tokens", &|grant| or_none(tokens(grant)));
        changes("time limit", &|grant| seconds(grant.run_timeout_seconds));
        changes("limit of silence", &|grant| seconds(grant.idle_timeout_seconds));
        changes("time to stop", &|grant| seconds(grant.grace_seconds));
        let most = |amount: u64, words: fn(u64) -> String| match amount {
            0 => "no limit".to_owned(),
            most => words(most),
        };
        changes("length of the answer", &|grant| most(grant.max_output_bytes, number::bytes));
        changes("memory", &|grant| most(grant.max_memory_bytes, number::bytes));
        changes("open files", &|grant| most(grant.max_open_files, number::count));
        changes("CPU time", &|grant| seconds(grant.max_cpu_seconds));
        lines
    }
}

/// The rights that are denied. Those that no sub-agent has say nothing of this one.
fn denied(grant: &Grant) -> Option<String> {
    let denied = grant.tools.deny.iter().map(String::as_str);
    let denied = denied.filter(|right| !NEVER_FOR_SUB_AGENTS.contains(right));
    let denied: Vec<_> = denied.collect();
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
    Some(match (grant.pooled.usd, grant.default_usd) {
        (true, _) => "dollars out of the pool of its parent".to_owned(),
        (false, None) => number::dollars(usd),
        (false, Some(most)) => format!(
            "{} of the {} that paid agents of a tree without a budget share (runtimes.NAME.defaultUsd)",
            number::dollars(usd),
            number::dollars(most)
        ),
    })
}

fn seconds(limit: u64) -> String {
    match limit {
        0 => "none".to_owned(),
        limit => number::duration(Duration::from_secs(limit)),
    }
}

fn words(rights: &BTreeSet<String>) -> String {
    let words: Vec<&str> = rights.iter().map(String::as_str).collect();
    words.join(" ")
}
