//! The slowest chain of a tree: the line of runs, each of which was asked for by the one before or needed its answer, that has the most
//! work.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use offshoot_model::{Event, EventKind, RunId, Timestamp};
use serde::Serialize;

use crate::{name, number};

/// A line of runs from the root to a leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// The work of all of them, in milliseconds: the tree cannot take less, unless they work while others of them do.
    pub ms: u64,
    /// The runs.
    pub runs: Vec<Link>,
}

/// One run of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The name of the run for people.
    pub name: String,
    /// The run.
    pub run_id: RunId,
    /// The time that it held a slot, in milliseconds.
    pub ms: u64,
}

/// The runs of one tree, in the order of their admission: what comes before a run in a chain stands before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    runs: Vec<Worker>,
    index: HashMap<RunId, usize>,
    /// The time of the last event.
    seen: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct Worker {
    id: RunId,
    name: String,
    before: Vec<usize>,
    /// False for a root that only holds pieces.
    works: bool,
    worked: Duration,
    since: Option<Timestamp>,
}

impl Chains {
    pub(super) fn apply(&mut self, event: &Event) {
        if let EventKind::Admitted(admitted) = &event.kind {
            let above = admitted.parent.into_iter();
            let needed = admitted.needs.iter().filter_map(|need| need.run);
            let before = above.chain(needed).filter_map(|run| self.index.get(&run).copied());
            let worker = Worker {
                id: event.run,
                name: name(&admitted.agent, admitted.label.as_deref()),
                before: before.collect(),
                works: admitted.runtime.is_some(),
                worked: Duration::ZERO,
                since: None,
            };
            if let Some(&before) = admitted.instead.and_then(|run| self.index.get(&run)) {
                self.runs[before].name.push_str(" (ran again)");
            }
            self.index.insert(event.run, self.runs.len());
            self.seen = Some(event.at);
            return self.runs.push(worker);
        }
        let seen = self.seen.replace(event.at).unwrap_or(event.at);
        if let EventKind::Reopened = event.kind {
            // Nothing has worked since the supervisor before told of something.
            self.runs.iter_mut().for_each(|run| run.rest(seen));
        }
        let Some(&run) = self.index.get(&event.run) else { return };
        let run = &mut self.runs[run];
        match event.kind {
            EventKind::Starting | EventKind::Returned if run.works => {
                run.since.get_or_insert(event.at);
            }
            EventKind::Waiting | EventKind::Resumed { .. } | EventKind::Ended(_) => {
                run.rest(event.at);
            }
            _ => {}
        }
    }

    /// Takes in that it is this moment: runs that are at work have worked up to it.
    pub(super) fn at(&mut self, now: Timestamp) {
        self.seen = self.seen.max(Some(now));
    }

    /// Returns the chain with the most work; of equal ones the one whose last run was admitted first.
    pub(super) fn slowest(mut self) -> Chain {
        // What is at work has worked up to the last event.
        if let Some(seen) = self.seen {
            self.runs.iter_mut().for_each(|run| run.rest(seen));
        }
        let mut sums: Vec<(Duration, Option<usize>)> = Vec::with_capacity(self.runs.len());
        let mut slowest: Option<usize> = None;
        for (at, run) in self.runs.iter().enumerate() {
            let before = run.before.iter().copied();
            // The first of equal ones.
            let before = before.rev().max_by_key(|&before| sums[before].0);
            let sum = run.worked + before.map_or(Duration::ZERO, |before| sums[before].0);
            sums.push((sum, before));
            if slowest.is_none_or(|slowest| sums[slowest].0 < sum) {
                slowest = Some(at);
            }
        }
        let last = slowest.map_or(Duration::ZERO, |slowest| sums[slowest].0);
        let chain = std::iter::successors(slowest, |&run| sums[run].1);
        let link = |run: &Worker| Link {
            name: run.name.clone(),
            run_id: run.id,
            ms: milliseconds(run.worked),
        };
        let chain = chain.map(|run| &self.runs[run]).filter(|run| run.works);
        let mut runs: Vec<Link> = chain.map(link).collect();
        runs.reverse();
        Chain { ms: milliseconds(last), runs }
    }
}

impl Worker {
    /// Takes in that it works no more from this moment on.
    fn rest(&mut self, at: Timestamp) {
        self.worked += self.since.take().map_or(Duration::ZERO, |since| at.since(since));
    }
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// At most this many runs of a chain are shown to people.
const SHOWN: usize = 8;

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return f.write_str("nothing ran");
        }
        write!(f, "{} of work:", number::milliseconds(self.ms))?;
        let left_out = self.runs.len().saturating_sub(SHOWN);
        for (at, run) in self.runs.iter().enumerate() {
            let arrow = if at == 0 { "" } else { " →" };
            match at {
                _ if left_out == 0 || at < SHOWN / 2 || at >= SHOWN / 2 + left_out => {
                    write!(f, "{arrow} {} {}", run.name, number::milliseconds(run.ms))?;
                }
                _ if at == SHOWN / 2 => write!(f, " → {left_out} more")?,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::Need;
    use offshoot_test_support::Timed;

    use super::*;

    #[track_caller]
    fn check(timed: &Timed, expected: &str) {
        let mut chains = Chains::default();
        timed.events.iter().for_each(|event| chains.apply(event));
        assert_eq!(chains.slowest().to_string(), expected);
    }

    #[test]
    fn the_line_with_the_most_work_is_the_slowest() {
        let (mut timed, root) = Timed::tree(4, Some("exec"));
        check(&timed, "0 ms of work: main 0 ms");
        timed.start(0, root);
        let (a, b) = (timed.child(1000, root, "a"), timed.child(1000, root, "b"));
        timed.say(1000, root, EventKind::Waiting);
        timed.start(1000, a);
        timed.start(1000, b);
        let c = timed.child(2000, a, "c");
        timed.complete(3000, a);
        timed.start(3000, c);
        timed.complete(9000, b);
        timed.complete(9000, c);
        timed.say(9000, root, EventKind::Returned);
        timed.complete(10_000, root);
        // `main` worked for 1 + 1 seconds, `a` for 2, `c` for 6 and `b` for 8.
        check(&timed, "10.0 s of work: main 2.0 s → b 8.0 s");
    }

    #[test]
    fn a_run_at_work_has_worked_up_to_now() {
        let (mut timed, root) = Timed::tree(1, None);
        let a = timed.child(0, root, "a");
        timed.start(0, a);
        let mut chains = Chains::default();
        timed.events.iter().for_each(|event| chains.apply(event));
        chains.at(Timestamp::from_micros(2_500_000));
        assert_eq!(chains.slowest().to_string(), "2.5 s of work: a 2.5 s");
    }

    #[test]
    fn time_without_a_supervisor_is_no_work() {
        let (mut timed, root) = Timed::tree(1, None);
        let a = timed.child(0, root, "a");
        timed.start(0, a);
        timed.child(5000, root, "b");
        timed.say(65_000, root, EventKind::Reopened);
        timed.again(65_000, a, None, None);
        timed.start(66_000, a);
        timed.complete(68_000, a);
        check(&timed, "7.0 s of work: a 7.0 s");
    }

    #[test]
    fn what_a_piece_needs_comes_before_it() {
        let (mut timed, root) = Timed::tree(1, None);
        let mut runs = vec![timed.child(0, root, "a"), timed.child(0, root, "other")];
        for _ in 0..9 {
            let need = vec![Need { name: "x".into(), run: runs.first().copied() }];
            let run = timed.admit(0, Some(root), "b", |it| it.needs = need);
            runs.insert(0, run);
        }
        let last = runs.len() as u64 - 1;
        let mut order = runs.clone();
        order.reverse();
        for (at, run) in (0..).zip(order) {
            timed.start(at * 1000, run);
            timed.complete((at + 1) * 1000, run);
        }
        assert_eq!(last, 10);
        check(
            &timed,
            "10.0 s of work: a 1.0 s → b 1.0 s → b 1.0 s → b 1.0 s → 2 more → b 1.0 s → b 1.0 s → b 1.0 s → b 1.0 s",
        );
    }
}
