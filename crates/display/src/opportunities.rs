//! Opportunities of one tree: where its time went, and which limits bound it.
//!
//! ```text
//!   events ─┬─▶ bounds   the time in line, by the limit that bound at that moment
//!           ├─▶ chain    the slowest line of runs, each of which needed or was asked for by the one before
//!           └─▶ caches   the share of the input that was read from a cache
//!   replays with other numbers of slots are handed in
//! ```

mod bounds;
mod chain;

use std::fmt;

use offshoot_model::{Event, EventKind, RunId, Timestamp, Usage};
use serde::Serialize;

use self::bounds::Bounds;
use self::chain::Chains;
use crate::number;

pub use self::bounds::{Bound, Queued};
pub use self::chain::{Chain, Link};

/// Gathers the events of one tree.
#[derive(Clone, Debug, Default)]
pub struct TimeUse {
    bounds: Bounds,
    chains: Chains,
    usage: Usage,
    usages: std::collections::HashMap<RunId, Usage>,
}

/// The opportunities of one tree, for people and programs. Shown as lines of text, without a newline at the end.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Opportunities {
    /// The time in line of all runs together, by the limit that bound, the longest first.
    pub queued: Vec<Queued>,
    /// The line of runs with the most work.
    pub slowest_chain: Chain,
    /// The share of the input that was read from a cache, from 0 to 1; none where there was no input, or where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_reads: Option<f64>,
    /// The time that the tree takes with other numbers of slots, its own first; empty of a tree that is not over, or that more than one
    /// supervisor held.
    pub slots: Vec<Replayed>,
}

/// The time of a tree with a number of slots, by a replay of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// The value of `maxConcurrent`.
    pub max_concurrent: u32,
    /// Milliseconds from the opening of the tree to the end of its last run.
    pub ms: u64,
}

impl TimeUse {
    /// Takes in one event. The events come in their order.
    pub fn apply(&mut self, event: &Event) {
        self.bounds.apply(event);
        self.chains.apply(event);
        match &event.kind {
            EventKind::Used { usage, .. } => drop(self.usages.insert(event.run, *usage)),
            EventKind::RequestSettled { usage, .. } => {
                let sum = self.usages.entry(event.run).or_default();
                *sum = *sum + *usage;
            }
            EventKind::Ended(ending) => {
                self.usages.remove(&event.run);
                self.usage = self.usage + ending.usage;
            }
            _ => {}
        }
    }

    /// Takes in that it is this moment, of a tree that a supervisor holds.
    pub fn at(&mut self, now: Timestamp) {
        self.bounds.pass(now);
        self.chains.at(now);
    }

    /// Returns what was found, with these replays.
    pub fn opportunities(self, slots: Vec<Replayed>) -> Opportunities {
        let usage = self.usages.into_values().fold(self.usage, |sum, usage| sum + usage);
        Opportunities {
            queued: self.bounds.queued(),
            slowest_chain: self.chains.slowest(),
            cache_reads: cache_reads(&usage),
            slots,
        }
    }
}

fn cache_reads(usage: &Usage) -> Option<f64> {
    let read = usage.cache_read.known()?;
    let all = (usage.input + usage.cache_read + usage.cache_write).known()?;
    let hundredths = (read * 100).checked_div(all)?;
    Some(hundredths as f64 / 100.0)
}

impl fmt::Display for Opportunities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queued, slowest_chain, cache_reads, slots } = self;
        f.write_str("in line for  ")?;
        if queued.is_empty() {
            f.write_str("nothing")?;
        }
        for (at, queued) in queued.iter().enumerate() {
            let gap = if at == 0 { "" } else { ", " };
            write!(f, "{gap}{} {}", queued.bound, number::milliseconds(queued.ms))?;
        }
        if !queued.is_empty() {
            f.write_str("; times of all runs together")?;
        }
        write!(f, "\nlongest path {slowest_chain}")?;
        if let Some(share) = cache_reads {
            write!(f, "\ncache        {:.0} % of the input was read from it", share * 100.0)?;
        }
        let Some((own, others)) = slots.split_first() else { return Ok(()) };
        let time = |replayed: &Replayed| number::milliseconds(replayed.ms);
        write!(f, "\nmore slots   {} with {}", time(own), own.max_concurrent)?;
        for other in others {
            write!(f, ", {} with {}", time(other), other.max_concurrent)?;
        }
        let left_out: Vec<String> = queued
            .iter()
            .filter(|queued| !queued.bound.is_replayed())
            .map(|queued| queued.bound.to_string())
            .collect();
        match left_out.as_slice() {
            [] => f.write_str(" (by a replay of the record)"),
            bounds => {
                write!(f, " (by a replay of the record without waits for {})", bounds.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{Cost, Ending, Reason, TokenCount};
    use offshoot_test_support::Timed;

    use super::*;

    #[test]
    fn the_share_of_cache_reads_is_of_all_input_and_unknown_is_not_zero() {
        let check = |counts: [Option<u64>; 3], expected: Option<f64>| {
            let [input, cache_read, cache_write] =
                counts.map(|count| count.map_or(TokenCount::Unknown, TokenCount::Known));
            let usage = Usage { input, cache_read, cache_write, ..Usage::default() };
            assert_eq!(cache_reads(&usage), expected, "{counts:?}");
        };
        check([Some(100), Some(300), Some(100)], Some(0.6));
        check([Some(7), Some(0), Some(0)], Some(0.0));
        check([Some(0), Some(0), Some(0)], None);
        check([None, Some(300), Some(100)], None);
        check([Some(1), None, Some(100)], None);
    }

    #[test]
    fn waits_that_a_replay_leaves_out_are_named() {
        let queued = |bound| Queued { bound, ms: 1000 };
        let found = |bounds: &[Bound]| Opportunities {
            queued: bounds.iter().cloned().map(queued).collect(),
            slowest_chain: Chain::default(),
            cache_reads: None,
            slots: vec![Replayed { max_concurrent: 1, ms: 5000 }],
        };
        let said = found(&[Bound::MaxConcurrent, Bound::Pool, Bound::Memory]).to_string();
        let expected =
            "(by a replay of the record without waits for the budget that they share, memory)";
        assert!(said.ends_with(expected), "{said}");
        let said = found(&[Bound::MaxConcurrent, Bound::Other]).to_string();
        assert!(said.ends_with("(by a replay of the record)"), "{said}");
    }

    #[test]
    fn all_of_it_is_said_in_lines() {
        let (mut timed, root) = Timed::tree(1, None);
        let (a, b) = (timed.child(0, root, "a"), timed.child(0, root, "b"));
        timed.start(0, a);
        let usage = Usage {
            input: TokenCount::Known(10),
            cache_read: TokenCount::Known(30),
            ..Usage::default()
        };
        timed.say(5, a, EventKind::Used { usage: Usage::default(), cost: Cost::NONE });
        let ending = Ending { usage, ..Ending::of(Reason::Completed { exit_code: None }) };
        timed.say(2000, a, EventKind::Ended(Box::new(ending)));
        timed.start(2000, b);
        timed.say(2500, b, EventKind::Used { usage, cost: Cost::NONE });
        timed.complete(5000, b);
        timed.complete(5000, root);
        let mut time_use = TimeUse::default();
        timed.events.iter().for_each(|event| time_use.apply(event));
        let slots = vec![
            Replayed { max_concurrent: 1, ms: 5000 },
            Replayed { max_concurrent: 2, ms: 3000 },
        ];
        let found = time_use.opportunities(slots);
        insta::assert_snapshot!("opportunities", found);
        let json = serde_json::to_string_pretty(&found).expect("plain data");
        insta::assert_snapshot!("opportunities_json", json);
    }
}
