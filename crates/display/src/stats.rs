//! Numbers over many runs: how they ended and why, how long they took, what they cost.

mod cause;
mod held;
mod page;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use offshoot_model::{
    Admitted, Cost, Ending, Event, EventKind, Reason, RootId, RunId, RunStatus, Timestamp, Usage,
};

use self::cause::{CauseSum, EXAMPLES, without_numbers};
use self::held::OpenTrees;
use crate::branch::reason_beside;
use crate::{name, status_words};

pub use self::cause::Cause;
pub use self::held::HeldTree;
pub use self::page::{Longest, Parallelism, Percentiles, Spent, StatsPage};

/// Gathers the events of trees. A root that only holds pieces is not counted as a run.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    runs: HashMap<RunId, Counted>,
    trees: HashMap<RootId, CountedTree>,
    open: OpenTrees,
    /// The status and the cause of each run that failed: another may take its place.
    failed: HashMap<RunId, (RunStatus, String)>,
    sums: Sums,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    queue: Vec<Duration>,
    run: Vec<Duration>,
    wait: Vec<Duration>,
    back_off: Vec<Duration>,
    causes: BTreeMap<String, CauseSum>,
    /// The counts so far.
    page: StatsPage,
}

/// A run that is not over.
#[derive(Clone, Debug)]
struct Counted {
    name: String,
    agent: String,
    /// The model that was asked for, and the one that answers.
    asked_for: Option<String>,
    model: Option<String>,
    depth: u32,
    root: RootId,
    status: RunStatus,
    admitted: Timestamp,
    started: Option<Timestamp>,
    waits_since: Option<Timestamp>,
    waited: Duration,
    /// The time since which its service has not answered.
    backs_off: Option<Timestamp>,
    /// The time since which it stands in line for another attempt.
    left: Option<Timestamp>,
    used: (Usage, Cost),
    /// The same by the model that was asked, of requests that went through the meter.
    asked: BTreeMap<String, (Usage, Cost)>,
}

impl Counted {
    /// Takes a time out of all that are measured: those that have begun begin so much later.
    fn pass_over(&mut self, time: Duration) {
        match &mut self.started {
            Some(started) => *started = started.plus(time),
            None => self.admitted = self.admitted.plus(time),
        }
        for begun in
            [&mut self.waits_since, &mut self.backs_off, &mut self.left].into_iter().flatten()
        {
            *begun = begun.plus(time);
        }
    }

    /// True if it holds a slot.
    fn is_at_work(&self) -> bool {
        self.started.is_some() && matches!(self.status, RunStatus::Starting | RunStatus::Running)
    }

    /// The time for which it has held a slot up to now, without waits for children and between two attempts; none where it has not begun.
    fn time_with_slot(&self, now: Timestamp) -> Option<Duration> {
        let until = self.left.or(self.waits_since).unwrap_or(now);
        Some(until.since(self.started?).saturating_sub(self.waited))
    }

    /// Takes out the time for which it had no slot, between two attempts.
    fn come_back(&mut self, at: Timestamp) {
        if let Some(left) = self.left.take() {
            let time = at.since(left);
            self.started = self.started.map(|started| started.plus(time));
        }
    }
}

#[derive(Clone, Debug, Default)]
struct CountedTree {
    slots: u32,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The time of its last event.
    seen: Option<Timestamp>,
    held: Duration,
}

/// The model of a request that a killed attempt may have made, where its run names none.
pub(crate) const UNKNOWN_MODEL: &str = "unknown";

impl Stats {
    /// Takes in one event. The events of a tree come in their order.
    pub fn apply(&mut self, event: &Event) {
        let at = event.at;
        self.see(event);
        if matches!(event.kind, EventKind::Reopened | EventKind::RootReopened(_)) {
            self.pass_over_dead_time(event);
        }
        let tree = self.trees.entry(event.root).or_default();
        tree.seen = Some(at);
        if let EventKind::Admitted(admitted) = &event.kind {
            return self.admit(event, admitted);
        }
        if let EventKind::Refused { refusal, times } = &event.kind {
            let sum = self.sums.page.refusals.entry(refusal.code.to_string()).or_default();
            *sum = sum.saturating_add(times.unwrap_or(1));
        }
        let Some(run) = self.runs.get_mut(&event.run) else { return };
        match &event.kind {
            EventKind::Starting => {
                run.status = RunStatus::Starting;
                run.come_back(at);
                if run.started.is_none() {
                    run.started = Some(at);
                    self.sums.queue.push(at.since(run.admitted));
                }
                tree.first.get_or_insert(at);
            }
            EventKind::Started { .. } => run.status = RunStatus::Running,
            EventKind::Waiting => {
                run.status = RunStatus::Waiting;
                run.waits_since = Some(at);
            }
            EventKind::Returned => {
                run.status = RunStatus::Running;
                run.waited +=
                    run.waits_since.take().map_or(Duration::ZERO, |since| at.since(since));
            }
            EventKind::BacksOff { .. } => drop(run.backs_off.get_or_insert(at)),
            EventKind::Answered => {
                self.sums.back_off.extend(run.backs_off.take().map(|since| at.since(since)));
            }
            EventKind::Resumed { after, .. } => {
                self.sums.back_off.extend(run.backs_off.take().map(|since| at.since(since)));
                self.sums.page.cut_off += u64::from(after.is_none() && run.started.is_some());
                run.status = RunStatus::Queued;
                // A further attempt begins with the model that was asked for.
                run.model.clone_from(&run.asked_for);
                run.waited +=
                    run.waits_since.take().map_or(Duration::ZERO, |since| at.since(since));
                run.left = run.started.map(|_| at);
            }
            EventKind::FellBack { runtime, model, .. } => {
                run.asked_for = Some(model.as_ref().unwrap_or(runtime).to_string());
                run.model.clone_from(&run.asked_for);
            }
            EventKind::ModelChanged { model } => run.model = Some(model.to_string()),
            // A model that the settings of a runtime name is known by what is asked.
            EventKind::RequestReserved { model, .. }
                if run.model.is_none() && **model != *UNKNOWN_MODEL =>
            {
                run.model = Some(model.to_string());
            }
            EventKind::Used { usage, cost } => run.used = (*usage, *cost),
            EventKind::RequestSettled { model, usage, cost, .. } => {
                run.used = (run.used.0 + *usage, run.used.1.with_request(*cost));
                let of_model = run.asked.entry(model.to_string()).or_default();
                *of_model = (of_model.0 + *usage, of_model.1.with_request(*cost));
            }
            EventKind::Ended(ending) => {
                tree.last = Some(at);
                self.end(event.run, at, ending);
            }
            _ => {}
        }
    }

    /// Takes in an event of a run that is not to be counted: the slots of its tree bound those that are.
    pub fn see(&mut self, event: &Event) {
        self.open.apply(event);
        if let EventKind::Admitted(admitted) = &event.kind
            && let Some(rules) = admitted.rules.as_ref().filter(|_| admitted.parent.is_none())
        {
            self.trees.entry(event.root).or_default().slots = rules.max_concurrent;
        }
    }

    /// Counts as lost the runs of this tree that were at work: no supervisor holds it.
    pub fn lose(&mut self, root: RootId) {
        self.open.close(root);
        let Some(at) = self.trees.get(&root).and_then(|tree| tree.seen) else { return };
        let at_work = |run: &Counted| run.status != RunStatus::Queued || run.depth == 0;
        let open = self.runs.iter().filter(|(_, run)| run.root == root && at_work(run));
        let mut open: Vec<RunId> = open.map(|(id, _)| *id).collect();
        open.sort_unstable();
        for id in open {
            let (usage, cost) = self.runs[&id].used;
            let (usage, cost) = usage.told_before_the_end(cost);
            let ending = Ending { usage, cost, ..Ending::of(Reason::Interrupted) };
            self.trees.entry(root).or_default().last = Some(at);
            self.end(id, at, &ending);
        }
    }

    /// Returns the numbers, as of this moment.
    pub fn page(mut self, now: Timestamp) -> StatsPage {
        let longest = self.longest(now);
        for run in self.runs.values() {
            let Some(time) = run.time_with_slot(now) else { continue };
            let tree = self.trees.entry(run.root).or_default();
            tree.held += time;
            // The tree lives, whatever its runs wait for.
            tree.last = tree.last.max(Some(now));
        }
        for run in std::mem::take(&mut self.runs).into_values() {
            self.sums.spend(&run, run.used, run.status);
        }
        let (mut held, mut wall, mut slots) = (0.0, 0.0, 0.0);
        for tree in self.trees.values() {
            let (Some(first), Some(last)) = (tree.first, tree.last) else { continue };
            let time = last.since(first).as_secs_f64();
            held += tree.held.as_secs_f64();
            wall += time;
            slots += time * f64::from(tree.slots);
        }
        let by = |sum: f64| if wall > 0.0 { (sum / wall * 100.0).round() / 100.0 } else { 0.0 };
        let mut causes: Vec<Cause> =
            self.sums.causes.into_values().filter_map(CauseSum::cause).collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.runs));
        StatsPage {
            trees: self.trees.len() as u64,
            runs: self.sums.page.statuses.values().sum(),
            held: self.open.held(),
            causes,
            longest,
            queue: Percentiles::of(self.sums.queue),
            run: Percentiles::of(self.sums.run),
            wait: Percentiles::of(self.sums.wait),
            back_off: Percentiles::of(self.sums.back_off),
            parallelism: Parallelism { achieved: by(held), possible: by(slots) },
            ..self.sums.page
        }
    }

    fn longest(&self, now: Timestamp) -> Option<Longest> {
        let at_work = self.runs.iter().filter(|(_, run)| run.is_at_work());
        let times = at_work.filter_map(|(id, run)| Some((id, run, run.time_with_slot(now)?)));
        let (id, run, time) = times.max_by_key(|(_, _, time)| *time)?;
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Some(Longest { run_id: *id, name: run.name.clone(), ms })
    }

    /// Takes out the time for which a tree had no supervisor: nothing worked in it, and nothing waited for a slot.
    fn pass_over_dead_time(&mut self, event: &Event) {
        let tree = self.trees.entry(event.root).or_default();
        let Some(seen) = tree.seen else { return };
        let dead = event.at.since(seen);
        tree.first = tree.first.map(|first| first.plus(dead));
        let open = self.runs.values_mut().filter(|run| run.root == event.root);
        open.for_each(|run| run.pass_over(dead));
    }

    fn admit(&mut self, event: &Event, admitted: &Admitted) {
        if admitted.parent.is_none() && admitted.runtime.is_none() {
            return;
        }
        let before = admitted.instead.and_then(|before| self.failed.remove(&before));
        if let Some((status, cause)) = before {
            self.sums.take_back(status, &cause, admitted.instead);
        }
        let particulars = admitted.particulars.as_deref();
        let model = particulars.and_then(|particulars| particulars.model.clone());
        let run = Counted {
            name: name(&admitted.agent, admitted.label.as_deref()),
            agent: admitted.agent.to_string(),
            asked_for: model.clone(),
            model,
            depth: admitted.depth,
            root: event.root,
            status: RunStatus::Queued,
            admitted: event.at,
            started: None,
            waits_since: None,
            waited: Duration::ZERO,
            backs_off: None,
            left: None,
            used: (Usage::default(), Cost::NONE),
            asked: BTreeMap::new(),
        };
        self.runs.insert(event.run, run);
    }

    fn end(&mut self, id: RunId, at: Timestamp, ending: &Ending) {
        let Some(mut run) = self.runs.remove(&id) else { return };
        run.come_back(at);
        run.waited += run.waits_since.map_or(Duration::ZERO, |since| at.since(since));
        if let Some(started) = run.started {
            let worked = at.since(started).saturating_sub(run.waited);
            self.sums.run.push(worked);
            self.trees.entry(run.root).or_default().held += worked;
        }
        self.sums.back_off.extend(run.backs_off.map(|since| at.since(since)));
        if !run.waited.is_zero() {
            self.sums.wait.push(run.waited);
        }
        self.sums.spend(&run, (ending.usage, ending.cost), ending.status());
        // By the evidence alone: what runs say of the same error differs.
        let evidence = || reason_beside(ending.status(), &ending.why());
        if let Some(example) = (!ending.status().is_success()).then(evidence) {
            let code = ending.reason.code();
            // Exit codes and signals say what is the cause, other numbers which host or line it was.
            let which = match ending.reason {
                Reason::ExitCode { code } => code,
                Reason::Signal { signal } => signal,
                _ => 0,
            };
            // What such a run said last is no cause.
            let says = match ending.reason.is_from_outside() {
                true => ending.reason.to_string(),
                false => example.clone(),
            };
            let cause = format!("{code} {which} {}", without_numbers(&says));
            let example = format!("{}  {example}", status_words(ending.status()));
            let sum = self.sums.causes.entry(cause.clone()).or_default();
            sum.runs += 1;
            sum.share(&example);
            if sum.examples.len() < EXAMPLES {
                sum.examples.push((code, example, id, run.name));
            }
            self.failed.insert(id, (ending.status(), cause));
        }
    }
}

impl Sums {
    /// Counts a failure no more, whose place another run has taken.
    fn take_back(&mut self, status: RunStatus, cause: &str, run: Option<RunId>) {
        self.page.ran_again += 1;
        if let Some(count) = self.page.statuses.get_mut(&status) {
            *count -= 1;
        }
        if let Some(of_cause) = self.causes.get_mut(cause) {
            of_cause.runs -= 1;
            if of_cause.examples.len() > 1 {
                of_cause.examples.retain(|(_, _, example, _)| Some(*example) != run);
            }
        }
        self.page.statuses.retain(|_, count| *count > 0);
        self.causes.retain(|_, cause| cause.runs > 0);
    }

    fn spend(&mut self, run: &Counted, used: (Usage, Cost), status: RunStatus) {
        *self.page.statuses.entry(status).or_default() += 1;
        let model = || run.model.clone().unwrap_or_else(|| "configured".to_owned());
        // What the meter has counted is known of each model; a runtime tells the sum of all that it has asked.
        let asked = run.asked.values();
        let counted = asked.fold((Usage::default(), Cost::NONE), |sum, of_model| {
            (sum.0 + of_model.0, sum.1.with_request(of_model.1))
        });
        let is_all = counted == used && !run.asked.contains_key(UNKNOWN_MODEL);
        let by_model = match is_all && !run.asked.is_empty() {
            true => run.asked.clone(),
            false => BTreeMap::from([(model(), used)]),
        };
        for (model, used) in by_model {
            self.page.models.entry(model).or_default().add(used);
        }
        self.page.agents.entry(run.agent.clone()).or_default().add(used);
        self.page.depths.entry(run.depth).or_default().add(used);
    }
}

#[cfg(test)]
mod tests;
