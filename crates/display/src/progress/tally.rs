//! Counting runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::iter;
use std::time::Duration;

use offshoot_model::{
    Admitted, BackOff, CancelledBy, Cost, Ending, Event, EventKind, Holds, Reason, RootId, RunId,
    RunStatus, Timestamp, Usage,
};

use super::back_offs::BackOffs;
use crate::branch::reason_beside;
use crate::held::Hold;
use crate::line::why;
use crate::style::Style;
use crate::{name, neutral, number, used};

/// The number of runs that are done, running, queued, failed and cancelled, the time, and what was used. A root that only holds pieces is not
/// counted. Remembers only runs that are not over. Shown as
/// `12 of 100 done  4 running  84 queued  1 failed  in 3.7 s  27.1 s left  3.2/s  12,340 tokens  $0.04`, and where one takes much
/// longer than those before it, its name.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    expected: Option<u64>,
    live: HashMap<RunId, Live>,
    queued: u64,
    /// The number of queued ones that wait for another attempt, after the one before has failed.
    parked: u64,
    running: u64,
    waiting: u64,
    completed: u64,
    failed: u64,
    /// Runs that were cancelled, whose places may be taken again.
    cancelled: HashSet<RunId>,
    /// Runs that are over and had started, those among them whose place was taken again: they say how long one takes.
    worked: u64,
    /// The number of those among them whose place was taken again.
    repeated: u64,
    /// Runs that are over and had not started.
    never_started: HashSet<RunId>,
    first_start: Option<Timestamp>,
    last: Timestamp,
    last_event: Timestamp,
    /// Ends from before are counted and not told: they are of an earlier life of the tree.
    since: Timestamp,
    /// The time in which no supervisor held the tree.
    dead: Duration,
    /// The time for which the tree was paused, without the pause that has not ended.
    paused: Duration,
    /// The time that all completed runs have taken, from their first start to their end.
    taken: Duration,
    /// The usage and cost of the runs that are over.
    used: (Usage, Cost),
    /// Runs that ended because what they belong to was stopped, by the reason: how many, and the first.
    stopped: Vec<(Reason, u64, Failure)>,
    /// The last runs that failed by themselves, and the number of those before them.
    failures: (VecDeque<Failure>, u64),
    /// The tree, and what holds it back.
    root: Option<RootId>,
    holds: Holds,
    pub(super) back_offs: BackOffs,
}

#[derive(Clone, Debug)]
struct Live {
    name: String,
    status: RunStatus,
    /// The start of this attempt.
    started: Option<Timestamp>,
    /// True if it has had an attempt.
    has_started: bool,
    /// True if it has the place of a run that ended without an answer.
    is_again: bool,
    is_parked: bool,
    last_sign: Timestamp,
    /// The time after which it is ended without a sign of life.
    idle_limit: Option<Duration>,
    used: (Usage, Cost),
}

/// A run is named as slow where it takes so many times as long as the mean of those that have completed …
const SLOW: u32 = 3;
/// … and at least so long.
const SLOW_FROM: Duration = Duration::from_secs(5);
/// So many failures are named again at the end.
const NAMED_AGAIN: usize = 5;
/// A run is named as slow after so long where too few have completed to tell.
const SLOW_ALONE: Duration = Duration::from_secs(60);
/// The number of characters that are shown of a fault of a service.
const SHOWN_OF_FAULT: usize = 60;
/// As many runs tell how long one takes.
const ENOUGH: u64 = 3;

/// A run that ended, and not well.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    name: String,
    status: RunStatus,
    why: String,
}

impl Tally {
    /// Nothing counted yet. `expected` is the number of runs, where it is known beforehand.
    pub fn new(expected: Option<u64>) -> Self {
        Self { expected, ..Self::default() }
    }

    /// Counts what happened before this moment without a word about it.
    pub fn since(self, since: Timestamp) -> Self {
        Self { since, ..self }
    }

    /// True while what happened in an earlier life of the tree is read.
    pub(super) fn reads_back(&self) -> bool {
        self.last_event < self.since
    }

    /// True if what happens at this moment is told.
    pub(super) fn is_told(&self, at: Timestamp) -> bool {
        at >= self.since
    }

    /// Takes in one event; gives the failure it tells of. Runs that were stopped are counted by [`stopped`](Self::stopped).
    pub(super) fn apply(&mut self, event: &Event) -> Option<Failure> {
        if matches!(event.kind, EventKind::Reopened) && self.first_start.is_some() {
            // Not since the last moment that was told: while the record is read back that is now.
            let dead = event.at.since(self.last_event);
            self.dead += dead;
            for live in self.live.values_mut() {
                live.started = live.started.map(|started| started.plus(dead));
                live.last_sign = live.last_sign.plus(dead);
            }
        }
        if let EventKind::Unpaused | EventKind::Reopened = event.kind {
            // The pause of a supervisor that died ends with what it said last.
            let is_back = matches!(event.kind, EventKind::Reopened);
            self.paused += self.pause(if is_back { self.last_event } else { event.at });
        }
        self.last_event = event.at;
        self.last = self.last.max(event.at);
        if let Some(live) = self.live.get_mut(&event.run)
            && !matches!(event.kind, EventKind::Alive)
        {
            live.last_sign = event.at;
        }
        self.root = Some(event.root);
        self.holds.apply(event);
        self.back_offs.apply(event);
        match &event.kind {
            EventKind::Admitted(admitted) => self.admit(event.at, event.run, admitted),
            EventKind::Starting => {
                self.move_to(event.run, RunStatus::Starting);
                if let Some(live) = self.live.get_mut(&event.run) {
                    live.started.get_or_insert(event.at);
                    live.has_started = true;
                    self.first_start.get_or_insert(event.at);
                }
            }
            EventKind::Resumed { after, .. } => {
                self.move_to(event.run, RunStatus::Queued);
                if let Some(live) = self.live.get_mut(&event.run) {
                    (live.started, live.is_parked) = (None, after.is_some());
                    self.parked += u64::from(live.is_parked);
                }
            }
            EventKind::Used { usage, cost } => {
                if let Some(live) = self.live.get_mut(&event.run) {
                    live.used = (*usage, *cost);
                }
            }
            EventKind::RequestSettled { usage, cost, .. } => {
                if let Some(live) = self.live.get_mut(&event.run) {
                    live.used = (live.used.0 + *usage, live.used.1.with_request(*cost));
                }
            }
            EventKind::Started { .. } | EventKind::Returned => {
                self.move_to(event.run, RunStatus::Running);
            }
            EventKind::Waiting => self.move_to(event.run, RunStatus::Waiting),
            // The command that opened the tree says how the root ended.
            EventKind::Ended(ending) => {
                let failure = self.end(event.run, ending);
                let told = event.run != event.root.run() && self.is_told(event.at);
                return self.unless_stopped(&ending.reason, failure.filter(|_| told)?);
            }
            _ => {}
        }
        None
    }

    /// Returns the reasons why the tree is held back. Where all is over nothing is left that could be.
    pub(super) fn held(&self) -> impl Iterator<Item = Hold<'_>> {
        let root = self.root.filter(|_| self.ended() < self.total());
        root.into_iter().flat_map(|root| Hold::of_tree(self.holds.of(root)))
    }

    /// The length of the pause that has not ended, as of this moment. Before the first start there was no work to interrupt.
    fn pause(&self, now: Timestamp) -> Duration {
        let paused = self.root.and_then(|root| self.holds.of(root).paused_since);
        let since = paused.filter(|_| self.first_start.is_some());
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Runs that are over, well or not.
    pub fn ended(&self) -> u64 {
        self.completed + self.failed + self.cancelled.len() as u64
    }

    /// Runs that completed.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Runs that are over and did not complete, without those that were cancelled.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// As many as were expected, or have been admitted, if that is more.
    pub fn total(&self) -> u64 {
        let admitted = self.ended() + self.live.len() as u64;
        self.expected.unwrap_or(0).max(admitted)
    }

    /// Returns the part of the total that completed, in percent; 0 of nothing. What failed or was cancelled is not done.
    pub fn percent(&self) -> u64 {
        (self.completed * 100).checked_div(self.total()).unwrap_or(0)
    }

    /// From the first start to the last event, or the last moment that was told; less the time in which no supervisor held the tree.
    pub fn elapsed(&self) -> Duration {
        let elapsed = self.first_start.map_or(Duration::ZERO, |first| self.last.since(first));
        elapsed.saturating_sub(self.dead)
    }

    /// Takes in that it is this moment now.
    pub(super) fn at(&mut self, now: Timestamp) {
        self.last = self.last.max(now);
    }

    /// The time since the last event of each run that holds a slot.
    pub(super) fn silences(&self) -> HashMap<RunId, Duration> {
        let holds = |live: &Live| matches!(live.status, RunStatus::Starting | RunStatus::Running);
        let holders = self.live.iter().filter(|(_, live)| holds(live));
        holders.map(|(run, live)| (*run, self.last.since(live.last_sign))).collect()
    }

    /// The mean time that a completed run took, where there are enough to tell.
    fn mean(&self) -> Option<Duration> {
        (self.completed >= ENOUGH)
            .then(|| self.taken / u32::try_from(self.completed).unwrap_or(u32::MAX))
    }

    /// The runs that work, and the time since each began to.
    fn at_work(&self) -> impl Iterator<Item = (&Live, Duration)> {
        let works = |live: &&Live| matches!(live.status, RunStatus::Starting | RunStatus::Running);
        let at_work = self.live.values().filter(works);
        at_work.filter_map(|live| Some((live, self.last.since(live.started?))))
    }

    /// True if a run that has worked for so long takes much longer than those before it; where too few have completed, longer than a
    /// minute.
    fn is_slow(&self, age: Duration) -> bool {
        age >= self.mean().map_or(SLOW_ALONE, |mean| SLOW_FROM.max(mean * SLOW))
    }

    /// The run that has run for longest, and for how long, where that is much longer than those before it took.
    fn slow(&self) -> Option<(&Live, Duration)> {
        self.at_work().max_by_key(|it| it.1).filter(|(_, age)| self.is_slow(*age))
    }

    /// The name of the run that takes much longer than those before it.
    pub(super) fn slowest(&self) -> Option<String> {
        self.slow().map(|(slow, _)| slow.name.clone())
    }

    /// The time that is left: from the rate while runs are in line, then from how long one takes. None where that is not known,
    /// or all that run have taken longer than that: those in line wait until one of them ends. A run in the place of another one
    /// that gave no answer is not like those that completed, so nothing is known of the last of these.
    fn left(&self, rate: f64) -> Option<Duration> {
        let is_slow = |age| self.mean().is_some() && self.is_slow(age);
        if self.running > 0 && self.at_work().all(|(_, age)| is_slow(age)) {
            return None;
        }
        let in_line = self.total() - self.ended() - self.running - self.waiting;
        if in_line > 0 {
            let left = self.total() - self.ended();
            let left = Duration::try_from_secs_f64(left as f64 / rate).ok()?;
            // Nothing says that one which has taken longer than that ends by then.
            let slow = self.slow().filter(|_| self.mean().is_some());
            return Some(left).filter(|left| slow.is_none_or(|(_, age)| age < *left));
        }
        if self.at_work().any(|(live, _)| live.is_again) {
            return None;
        }
        let (mean, started) =
            (self.mean()?, self.live.values().filter_map(|live| live.started).max()?);
        mean.checked_sub(self.last.since(started)).filter(|left| !left.is_zero())
    }

    /// Usage and cost of all.
    fn total_used(&self) -> (Usage, Cost) {
        self.live.values().fold(self.used, |sum, live| (sum.0 + live.used.0, sum.1 + live.used.1))
    }

    fn admit(&mut self, at: Timestamp, run: RunId, admitted: &Admitted) {
        if admitted.parent.is_none() && admitted.runtime.is_none() {
            return;
        }
        if let Some(before) = admitted.instead {
            // What came of its place before does not count any more.
            if !self.cancelled.remove(&before) {
                self.failed = self.failed.saturating_sub(1);
            }
            self.repeated += u64::from(!self.never_started.remove(&before));
        }
        let name = name(&admitted.agent, admitted.label.as_deref());
        let seconds = Some(admitted.grant.idle_timeout_seconds).filter(|seconds| *seconds > 0);
        let live = Live {
            name,
            status: RunStatus::Queued,
            started: None,
            has_started: false,
            is_again: admitted.instead.is_some(),
            is_parked: false,
            last_sign: at,
            idle_limit: seconds.map(Duration::from_secs),
            used: (Usage::default(), Cost::NONE),
        };
        if self.live.insert(run, live).is_none() {
            self.queued += 1;
        }
    }

    fn move_to(&mut self, run: RunId, status: RunStatus) {
        let Some(live) = self.live.get_mut(&run) else { return };
        let before = std::mem::replace(&mut live.status, status);
        self.parked -= u64::from(std::mem::take(&mut live.is_parked));
        *self.count(before) -= 1;
        *self.count(status) += 1;
    }

    fn end(&mut self, run: RunId, ending: &Ending) -> Option<Failure> {
        let live = self.live.remove(&run)?;
        *self.count(live.status) -= 1;
        self.parked -= u64::from(live.is_parked);
        if live.has_started {
            self.worked += 1;
        } else {
            self.never_started.insert(run);
        }
        self.used = (self.used.0 + ending.usage, self.used.1 + ending.cost);
        match why(ending) {
            None => {
                self.completed += 1;
                self.taken += live.started.map_or(Duration::ZERO, |since| self.last.since(since));
                None
            }
            Some(why) => {
                match ending.status() {
                    RunStatus::Cancelled => drop(self.cancelled.insert(run)),
                    _ => self.failed += 1,
                }
                Some(Failure { name: live.name, status: ending.status(), why })
            }
        }
    }

    /// Keeps a failure that is none of the run itself, and gives every other one.
    fn unless_stopped(&mut self, reason: &Reason, failure: Failure) -> Option<Failure> {
        let is_of_tree = matches!(
            reason,
            Reason::Cancelled { .. }
                | Reason::Deadline
                | Reason::ParkLimit { .. }
                | Reason::BudgetPool { .. }
                | Reason::NeedFailed { .. }
        );
        if !is_of_tree {
            let (last, before) = &mut self.failures;
            last.push_back(failure.clone());
            if last.len() > NAMED_AGAIN {
                last.pop_front();
                *before += 1;
            }
            return Some(failure);
        }
        match self.stopped.iter_mut().find(|(known, ..)| known == reason) {
            Some((_, count, _)) => *count += 1,
            None => self.stopped.push((reason.clone(), 1, failure)),
        }
        None
    }

    /// Returns lines that name the last runs which failed by themselves before the tree was stopped by the operator or its deadline;
    /// none where it was not.
    pub(super) fn failures_before(&self, style: Style) -> Vec<String> {
        let is_of_tree = |(reason, ..): &(Reason, u64, Failure)| {
            matches!(
                reason,
                Reason::Cancelled { by: CancelledBy::Operator }
                    | Reason::Deadline
                    | Reason::ParkLimit { .. }
            )
        };
        let (last, before) = &self.failures;
        if last.is_empty() || !self.stopped.iter().any(is_of_tree) {
            return Vec::new();
        }
        let all = number::count(*before + last.len() as u64);
        let when = if self.dead.is_zero() { "before that" } else { "since it was resumed" };
        let head = match before {
            0 => format!("{all} failed {when}:"),
            _ => format!("{all} failed {when}; the last {}:", last.len()),
        };
        iter::once(head).chain(last.iter().map(|failure| failure.text(style))).collect()
    }

    /// Returns a line for each reason for which runs were stopped: the run, or how many there were.
    pub(super) fn stopped(&self) -> impl Iterator<Item = Failure> {
        self.stopped.iter().map(|(reason, count, first)| match count {
            1 => first.clone(),
            count => {
                let why = reason_beside(first.status, &reason.to_string());
                Failure { name: format!("{} runs", number::count(*count)), why, ..first.clone() }
            }
        })
    }

    fn count(&mut self, status: RunStatus) -> &mut u64 {
        match status {
            RunStatus::Waiting => &mut self.waiting,
            RunStatus::Starting | RunStatus::Running => &mut self.running,
            RunStatus::Idle | RunStatus::Queued => &mut self.queued,
            RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::TimedOut
            | RunStatus::Cancelled
            | RunStatus::Lost
            | RunStatus::ClientGone => unreachable!("a run that is over is not kept as a live one"),
        }
    }

    /// So many runs as a number per second, once there are enough to tell. A pause is no time in which they could have started.
    fn per_second(&self, runs: u64) -> Option<f64> {
        let paused = self.paused + self.pause(self.last);
        let seconds = self.elapsed().saturating_sub(paused).as_secs_f64();
        (runs >= 2 && seconds > 0.0).then(|| runs as f64 / seconds)
    }
}

/// A part of the line. Where the line is too long, those of the least weight are left out first.
struct Part {
    text: String,
    weight: u8,
}

impl Tally {
    /// Returns the line in so many columns at most, as far as the parts that matter least can be left out of it.
    pub(super) fn within(&self, columns: usize) -> String {
        let mut parts = self.parts();
        let width =
            |parts: &[Part]| -> usize { parts.iter().map(|part| part.text.chars().count()).sum() };
        while width(&parts) > columns {
            let least = parts.iter().enumerate().min_by_key(|(_, part)| part.weight);
            match least.map(|(at, part)| (at, part.weight)) {
                Some((at, weight)) if weight < Part::STAYS => drop(parts.remove(at)),
                _ => break,
            }
        }
        parts.iter().map(|part| part.text.as_str()).collect()
    }

    fn parts(&self) -> Vec<Part> {
        let total = self.total();
        let mut parts = Vec::new();
        let mut part = |weight: u8, text: String| parts.push(Part { text, weight });
        let done = format!("{} of {} done", number::count(self.completed), number::count(total));
        part(Part::STAYS, done);
        let counts = [
            (self.running, "running"),
            (self.waiting, "waiting"),
            // Runs that are expected and not yet admitted count as queued.
            (total - self.ended() - self.running - self.waiting - self.parked, "queued"),
            (self.parked, "parked"),
            (self.failed, "failed"),
            (self.cancelled.len() as u64, "cancelled"),
        ];
        for (count, word) in counts.into_iter().filter(|(count, _)| *count > 0) {
            part(Part::STAYS, format!("  {} {word}", number::count(count)));
        }
        for held in self.held() {
            part(Part::STAYS, format!("  {}", held.brief(self.last)));
        }
        if let Some(BackOff { why, .. }) = self.back_offs.told() {
            let count = number::count(self.back_offs.count());
            part(Part::STAYS, format!("  {count} held by the service"));
            let why: String = neutral::line(why).chars().take(SHOWN_OF_FAULT).collect();
            part(0, format!(" ({why})"));
        }
        if self.first_start.is_some() {
            part(3, format!("  in {}", number::duration(self.elapsed())));
        }
        let goes_on = self.ended() < total && self.held().next().is_none();
        if let Some(left) =
            self.per_second(self.worked).filter(|_| goes_on).and_then(|rate| self.left(rate))
        {
            part(4, format!("  {} left", number::duration(left)));
        }
        if let Some((slow, age)) = self.slow() {
            part(6, format!("  slowest: {} for {}", slow.name, number::duration(age)));
            let silent = number::duration(self.last.since(slow.last_sign));
            let limit = slow.idle_limit.map(number::duration);
            let limit = limit.map(|limit| format!(" of at most {limit}")).unwrap_or_default();
            part(2, format!(", silent for {silent}{limit}"));
        }
        // A place counts once, as in the number that is done.
        match self.per_second(self.worked.saturating_sub(self.repeated)) {
            None => {}
            Some(rate @ 100.0..) => part(1, format!("  {}/s", number::count(rate as u64))),
            Some(rate @ 1.0..) => part(1, format!("  {rate:.1}/s")),
            Some(rate) => part(1, format!("  {:.1}/min", rate * 60.0)),
        }
        let (usage, cost) = self.total_used();
        if let Some(used) = used(&usage, &cost).filter(|used| used != number::NOT_REPORTED) {
            part(5, format!("  {used}"));
        }
        parts
    }
}

impl Part {
    /// The weight of what is never left out.
    const STAYS: u8 = u8::MAX;
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().iter().try_for_each(|part| f.write_str(&part.text))
    }
}

impl Failure {
    pub(super) fn text(&self, style: Style) -> String {
        format!("{}  {}  {}", style.status(self.status), self.name, self.why)
    }
}
