//! The limits that runs in line waited for.
//!
//! A run that stands in line is counted under what would have stopped it at that moment, the outermost first: a pause, the
//! slots of the tree, those of its level, those below one of its parents, the quota of its account, the breaker of its agent, memory, the slots of the host, the pace of its account, the first
//! answer to its prompt, the budget that it shares. The line of a parent that waits for its slot again is
//! not counted: the record does not say when it began.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Account, Admitted, AgentId, Event, EventKind, Priming, Rules, RunId, ShortPool, Timestamp,
    TreeHolds,
};
use serde::Serialize;

use super::chain::milliseconds;

/// A reason to stand in line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[derive(derive_more::Display)]
#[serde(tag = "limit", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Bound {
    /// All slots of the tree were taken.
    #[display("maxConcurrent")]
    MaxConcurrent,
    /// All slots of its level were taken, in the tree or below a parent with values of its own.
    #[display("maxConcurrentPerLevel")]
    MaxConcurrentPerLevel,
    /// All slots below a parent with values of its own were taken.
    #[display("maxConcurrent of {agent}")]
    MaxConcurrentBelow {
        /// The agent of that parent.
        agent: AgentId,
    },
    /// The runs whose answers it needs were not over.
    #[display("what they need")]
    Needs,
    /// The time before another attempt was not over.
    #[display("another attempt")]
    Retries,
    /// Runs of its agent had failed too often in a row.
    #[display("the breaker")]
    Breaker,
    /// A quota of its account was used up.
    #[display("the quota of an account")]
    Quota,
    /// As many runs of its account worked as may after its service had too much to do, or after the reset of a quota.
    #[display("the pace of an account")]
    Pace,
    /// The service had not begun to answer the run that sent the same prompt first.
    #[display("primeCache")]
    PrimeCache,
    /// The budget that the pieces of its parent share might not have paid for another one.
    #[display("the budget that they share")]
    Pool,
    /// Memory of the computer was short.
    #[display("memory")]
    Memory,
    /// Other trees of the user held all slots of the host.
    #[display("host.maxConcurrent")]
    Host,
    /// Other runs of its account held all slots of it.
    #[display("host.maxConcurrentPerAccount")]
    Account,
    /// The operator had paused the tree.
    #[display("the pause")]
    Pause,
    /// A slot was free: the supervisor was at work, or the record could not be written.
    #[display("their start, once a slot was free")]
    Other,
}

impl Bound {
    /// True if a replay of the record with other numbers of slots has this reason to wait.
    pub(super) const fn is_replayed(&self) -> bool {
        match self {
            Self::MaxConcurrent
            | Self::MaxConcurrentPerLevel
            | Self::MaxConcurrentBelow { .. }
            | Self::Needs
            | Self::Retries
            | Self::Other => true,
            Self::Breaker
            | Self::Quota
            | Self::Pace
            | Self::PrimeCache
            | Self::Pool
            | Self::Memory
            | Self::Host
            | Self::Account
            | Self::Pause => false,
        }
    }
}

/// The time that runs stood in line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queued {
    /// The reason.
    pub bound: Bound,
    /// The time of all runs together, in milliseconds.
    pub ms: u64,
}

/// The time in line of the runs of one tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    runs: Vec<Standing>,
    index: HashMap<RunId, usize>,
    parts: Vec<Part>,
    /// The runs in line, by place: those of one row wait for the same, but for a budget that they share.
    line: BTreeMap<Place, u64>,
    /// The runs in line that share a budget, by the run whose budget it is.
    pooled: BTreeMap<(RunId, Place), u64>,
    /// The number of runs that need others that are not over.
    needing: u64,
    needed_by: HashMap<usize, Vec<usize>>,
    /// The runs that wait for their next attempt, and the moments at which they stand in line again.
    again: Vec<(usize, Timestamp)>,
    holds: TreeHolds,
    /// The runtime of the runs of each agent.
    runtimes: HashMap<AgentId, Arc<str>>,
    last: Option<Timestamp>,
    times: BTreeMap<Bound, Duration>,
}

/// A part of the tree with slots of its own: all of it, or what is below a run with other values than its parent.
#[derive(Clone, Debug)]
struct Part {
    around: Option<usize>,
    agent: AgentId,
    rules: Rules,
    holders: u32,
    level: BTreeMap<u32, u32>,
}

#[derive(Clone, Debug)]
struct Standing {
    agent: AgentId,
    depth: u32,
    part: usize,
    below: usize,
    /// The parent, where its pieces share its budget.
    pool: Option<RunId>,
    open_needs: u64,
    state: State,
}

/// The place at which a run stands in line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The part in which it would be counted.
    part: usize,
    depth: u32,
    agent: AgentId,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Needs others.
    Needs,
    InLine,
    /// Waits for its next attempt.
    Again,
    Holds,
    /// Has no slot, and wants none.
    Idle,
    Over,
}

impl Bounds {
    pub(super) fn apply(&mut self, event: &Event) {
        if let EventKind::Reopened | EventKind::RootReopened(_) = event.kind {
            // There was no supervisor that could have started anything.
            self.last = Some(event.at);
        }
        self.pass(event.at);
        if let EventKind::Admitted(admitted) = &event.kind {
            return self.admit(event.run, admitted);
        }
        let Some(&run) = self.index.get(&event.run) else { return };
        self.holds.apply(event);
        match &event.kind {
            EventKind::Starting | EventKind::Returned => self.put(run, State::Holds),
            EventKind::Waiting => self.put(run, State::Idle),
            EventKind::Resumed { wait_ms, .. } => match wait_ms {
                Some(wait) => {
                    self.put(run, State::Again);
                    self.again.push((run, event.at.plus(Duration::from_millis(*wait))));
                }
                None => self.put(run, State::InLine),
            },
            EventKind::Ended(_) => {
                self.put(run, State::Over);
                for needing in self.needed_by.remove(&run).unwrap_or_default() {
                    self.runs[needing].open_needs -= 1;
                    let ready = self.runs[needing].open_needs == 0;
                    if ready && self.runs[needing].state == State::Needs {
                        self.put(needing, State::InLine);
                    }
                }
            }
            EventKind::Reopened => self.reopen(),
            _ => {}
        }
    }

    /// Returns the times, the longest first.
    pub(super) fn queued(self) -> Vec<Queued> {
        let queued = |(bound, time)| Queued { bound, ms: milliseconds(time) };
        let mut queued: Vec<Queued> = self.times.into_iter().map(queued).collect();
        queued.retain(|queued| queued.ms > 0);
        queued.sort_by_key(|queued| std::cmp::Reverse(queued.ms));
        queued
    }

    /// Takes in that it is this moment: runs have stood in line up to it.
    pub(super) fn pass(&mut self, now: Timestamp) {
        let mut from = self.last.replace(now).unwrap_or(now);
        // A wait before an attempt may be over in between.
        while let Some(place) = (0..self.again.len()).min_by_key(|&place| self.again[place].1)
            && self.again[place].1 <= now
        {
            let (run, at) = self.again[place];
            self.count(at.since(from));
            from = from.max(at);
            self.again.swap_remove(place);
            if self.runs[run].state == State::Again {
                self.put(run, State::InLine);
            }
        }
        self.count(now.since(from));
    }

    fn count(&mut self, time: Duration) {
        if time.is_zero() {
            return;
        }
        let again = self.again.iter().filter(|(run, _)| self.runs[*run].state == State::Again);
        let mut add = vec![(Bound::Needs, self.needing), (Bound::Retries, again.count() as u64)];
        for (place, &runs) in &self.line {
            let bound = self.bound(place);
            let short = match bound {
                Bound::Other => {
                    let of = |pool: &ShortPool| self.pooled.get(&(pool.run, place.clone()));
                    self.holds.short_pools.iter().filter_map(of).sum()
                }
                _ => 0,
            };
            add.extend([(Bound::Pool, short), (bound, runs - short)]);
        }
        for (bound, runs) in add.into_iter().filter(|(_, runs)| *runs > 0) {
            let runs = u32::try_from(runs).unwrap_or(u32::MAX);
            *self.times.entry(bound).or_default() += time.saturating_mul(runs);
        }
    }

    /// The limit that holds a run back that stands here.
    fn bound(&self, place: &Place) -> Bound {
        let &Place { part, depth, ref agent } = place;
        if self.holds.paused_since.is_some() {
            return Bound::Pause;
        }
        let around = std::iter::successors(Some(part), |&part| self.parts[part].around);
        let mut parts: Vec<&Part> = around.map(|part| &self.parts[part]).collect();
        parts.reverse();
        for part in parts {
            if part.holders >= part.rules.max_concurrent {
                return match part.around {
                    None => Bound::MaxConcurrent,
                    Some(_) => Bound::MaxConcurrentBelow { agent: part.agent.clone() },
                };
            }
            let here = part.level.get(&depth).copied().unwrap_or_default();
            if part.rules.max_concurrent_per_level.is_some_and(|most| here >= most) {
                return Bound::MaxConcurrentPerLevel;
            }
        }
        let holds = &self.holds;
        let runtime = self.runtimes.get(agent);
        let is_its = |account: &Account| Some(&account.runtime) == runtime;
        let goes_first = |priming: &Priming| {
            self.index.get(&priming.run).is_some_and(|first| self.runs[*first].agent == *agent)
        };
        match () {
            () if holds.walls.iter().any(|wall| is_its(&wall.account)) => Bound::Quota,
            () if holds.open_breakers.iter().any(|open| open.agent == *agent) => Bound::Breaker,
            () if holds.memory_short_since.is_some() => Bound::Memory,
            () if holds.host_full_since.is_some() => Bound::Host,
            () if holds.paces.iter().any(|pace| is_its(&pace.account)) => Bound::Pace,
            () if holds.primings.iter().any(goes_first) => Bound::PrimeCache,
            () if holds.full_accounts.iter().any(|full| is_its(&full.account)) => Bound::Account,
            () => Bound::Other,
        }
    }

    fn admit(&mut self, run: RunId, admitted: &Admitted) {
        let at = self.runs.len();
        if let Some(runtime) = &admitted.runtime {
            self.runtimes.insert(admitted.agent.clone(), Arc::clone(runtime));
        }
        let parent = admitted.parent.and_then(|parent| self.index.get(&parent).copied());
        let part = parent.map_or(0, |parent| self.runs[parent].below);
        let rules = admitted.rules.as_deref().copied();
        let below = match rules {
            Some(rules)
                if self.parts.get(part).is_none_or(|around| differ(&around.rules, &rules)) =>
            {
                let around = parent.map(|_| part);
                let agent = admitted.agent.clone();
                self.parts.push(Part { around, agent, rules, holders: 0, level: BTreeMap::new() });
                self.parts.len() - 1
            }
            _ => part,
        };
        let needed = admitted.needs.iter().filter_map(|need| self.index.get(&need.run?).copied());
        let needed: Vec<usize> =
            needed.filter(|&needed| self.runs[needed].state != State::Over).collect();
        self.index.insert(run, at);
        self.runs.push(Standing {
            agent: admitted.agent.clone(),
            depth: admitted.depth,
            part,
            below,
            pool: admitted.parent.filter(|_| !admitted.grant.pooled.is_none()),
            open_needs: needed.len() as u64,
            state: State::Idle,
        });
        let state = match (admitted.runtime.is_some(), needed.is_empty()) {
            (false, _) => State::Idle,
            (true, true) => State::InLine,
            (true, false) => State::Needs,
        };
        for needed in needed {
            self.needed_by.entry(needed).or_default().push(at);
        }
        self.put(at, state);
    }

    /// A run changes its state.
    fn put(&mut self, run: usize, state: State) {
        let before = std::mem::replace(&mut self.runs[run].state, state);
        if before != state {
            self.move_over(run, before, false);
            self.move_over(run, state, true);
        }
    }

    /// A run enters a state, or leaves it.
    fn move_over(&mut self, run: usize, state: State, enters: bool) {
        match state {
            State::InLine => {
                let place = self.place(run);
                if let Some(pool) = self.runs[run].pool {
                    change(&mut self.pooled, (pool, place.clone()), enters);
                }
                change(&mut self.line, place, enters);
            }
            State::Needs if enters => self.needing += 1,
            State::Needs => self.needing -= 1,
            State::Holds if enters => self.change_holders(run, |holders| *holders += 1),
            State::Holds => {
                self.change_holders(run, |holders| *holders = holders.saturating_sub(1))
            }
            State::Again | State::Idle | State::Over => {}
        }
    }

    fn place(&self, run: usize) -> Place {
        let Standing { part, depth, ref agent, .. } = self.runs[run];
        Place { part, depth, agent: agent.clone() }
    }

    fn change_holders(&mut self, run: usize, change: impl Fn(&mut u32)) {
        let (mut next, depth) = (Some(self.runs[run].part), self.runs[run].depth);
        while let Some(part) = next {
            let part = &mut self.parts[part];
            change(&mut part.holders);
            change(part.level.entry(depth).or_default());
            next = part.around;
        }
    }

    /// Another supervisor holds the tree, and nothing runs.
    fn reopen(&mut self) {
        for run in 0..self.runs.len() {
            if self.runs[run].state == State::Holds {
                self.put(run, State::Idle);
            }
        }
        self.holds.open_breakers.clear();
    }
}

/// Counts one run more, or one less.
fn change<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, more: bool) {
    match counts.entry(key) {
        entry if more => *entry.or_default() += 1,
        Entry::Occupied(count) if *count.get() == 1 => drop(count.remove()),
        entry => drop(entry.and_modify(|count| *count -= 1)),
    }
}

/// True if the limits on slots differ.
fn differ(one: &Rules, other: &Rules) -> bool {
    let slots = |rules: &Rules| (rules.max_concurrent, rules.max_concurrent_per_level);
    slots(one) != slots(other)
}

#[cfg(test)]
mod tests;
