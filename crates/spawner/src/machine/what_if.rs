//! A tree that ran, once more with other numbers of slots: what a higher `maxConcurrent` would have given.
//!
//! The slots and lines of the machine hand out what the record says was wanted: each run asks for its children, waits and works for as
//! long as it did. The machine as a whole cannot be driven so: it would decide again about budgets, retries and deadlines, and
//! the record holds what these decisions were and not what they were made of.
//!
//! ```text
//!   events ──▶ a script of each run: work 2 s, ask for b, wait for b, work 1 s
//!   script × slots ──▶ the time until the last run has ended
//! ```
//!
//! Work takes as long as it took. Pauses by the operator and breakers are left out, and so is that programs that run at the same time
//! share processors and the patience of services.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use offshoot_model::{Admitted, Event, EventKind, Rules, RunId, Timestamp};

use super::queue::{Next, Place, Queue};
use super::run::RunIndex;
use super::slots::{Caps, Lease, Part, Position, Slots};

/// The scripts of the runs of one tree. Takes the events of the tree in their order.
#[derive(Clone, Debug, Default)]
pub struct WhatIf {
    runs: Vec<Script>,
    index: HashMap<RunId, usize>,
    opened: Timestamp,
    /// True if a supervisor died, and what followed does not hang together with what was before.
    interrupted: bool,
}

/// The life of a run, as far as slots bound it.
#[derive(Clone, Debug)]
struct Script {
    parent: Option<usize>,
    depth: u32,
    /// The rules for what is below it.
    rules: Rules,
    /// True if it holds pieces and no slot.
    is_holder: bool,
    /// The runs that must be over before it stands in line.
    after: Vec<usize>,
    /// The time from the opening of the tree to its admission, for a root and a child of a run that holds no slot.
    asked_at: Duration,
    steps: Vec<Step>,
    now: Now,
}

#[derive(Clone, Debug)]
enum Step {
    /// Holds a slot for so long.
    Work(Duration),
    /// Asks for this child.
    Ask(usize),
    /// Lends its slot until these are over, and stands in line for it.
    Wait(Vec<usize>),
    /// Lends its slot for so long, and stands in line for it.
    Rest(Duration),
    /// Has no slot for so long, and stands in line like a new run.
    Again(Duration),
}

/// The state of a run in the record so far.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Now {
    InLine,
    Works { since: Timestamp },
    Waits { since: Timestamp },
    Over { at: Timestamp, started: bool },
}

impl WhatIf {
    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        if let EventKind::Admitted(admitted) = &event.kind {
            return self.admit(event, admitted);
        }
        let at = event.at;
        let Some(&run) = self.index.get(&event.run) else { return };
        match &event.kind {
            EventKind::Starting | EventKind::Returned => {
                if let Now::Waits { since } = self.runs[run].now {
                    self.end_wait(run, since, at);
                }
                self.runs[run].now = Now::Works { since: at };
            }
            EventKind::Waiting => {
                self.end_work(run, at);
                self.runs[run].now = Now::Waits { since: at };
            }
            EventKind::Resumed { wait_ms, .. } => {
                self.end_work(run, at);
                let wait = Duration::from_millis(wait_ms.unwrap_or_default());
                self.runs[run].steps.push(Step::Again(wait));
                self.runs[run].now = Now::InLine;
            }
            EventKind::Ended(_) => {
                match self.runs[run].now {
                    Now::Waits { since } => self.end_wait(run, since, at),
                    _ => self.end_work(run, at),
                }
                let started = !self.runs[run].steps.is_empty();
                self.runs[run].now = Now::Over { at, started };
            }
            EventKind::Reopened => self.interrupted = true,
            _ => {}
        }
    }

    /// Returns the slots that the tree had; none of a tree that is not over, or that more than one supervisor held.
    pub fn slots(&self) -> Option<u32> {
        let is_over = |run: &Script| matches!(run.now, Now::Over { .. });
        let known = !self.interrupted && self.runs.iter().all(is_over);
        self.runs.first().filter(|_| known).map(|root| root.rules.max_concurrent)
    }

    /// Returns the time from the opening of the tree to the end of its last run, as it was.
    pub fn time(&self) -> Duration {
        let over = self.runs.iter().filter(|run| !run.is_holder).filter_map(|run| match run.now {
            Now::Over { at, .. } => Some(at.since(self.opened)),
            _ => None,
        });
        over.max().unwrap_or_default()
    }

    /// Returns the same time with so many slots.
    pub fn with_slots(&self, slots: u32) -> Duration {
        Play::new(self, slots.max(1)).play()
    }

    fn admit(&mut self, event: &Event, admitted: &Admitted) {
        let run = self.runs.len();
        let parent = admitted.parent.and_then(|parent| self.index.get(&parent).copied());
        let inherited = parent.map(|parent| self.runs[parent].rules);
        let rules = admitted.rules.as_deref().copied().or(inherited).unwrap_or_default();
        if parent.is_none() {
            self.opened = event.at;
        }
        let needed = admitted.needs.iter().filter_map(|need| self.index.get(&need.run?).copied());
        let mut after: Vec<usize> = needed.collect();
        let mut asked_at = event.at.since(self.opened);
        if let Some(parent) = parent.filter(|&parent| self.runs[parent].is_holder) {
            // What a merge asks follows from the results that it is asked about.
            if admitted.merges().is_some() {
                asked_at = Duration::ZERO;
                after.extend((0..run).filter(|&other| {
                    let other = &self.runs[other];
                    other.parent == Some(parent) && matches!(other.now, Now::Over { .. })
                }));
            }
        } else if let Some(parent) = parent {
            if let Now::Works { .. } = self.runs[parent].now {
                self.end_work(parent, event.at);
                self.runs[parent].now = Now::Works { since: event.at };
            }
            self.runs[parent].steps.push(Step::Ask(run));
        }
        let is_holder = admitted.runtime.is_none();
        self.index.insert(event.run, run);
        self.runs.push(Script {
            parent,
            depth: admitted.depth,
            rules,
            is_holder,
            after,
            asked_at,
            steps: Vec::new(),
            now: Now::InLine,
        });
    }

    fn end_work(&mut self, run: usize, at: Timestamp) {
        if let Now::Works { since } = self.runs[run].now {
            self.runs[run].steps.push(Step::Work(at.since(since)));
        }
    }

    /// A wait is over. The record does not say for what it was: the children that ended within it ended it.
    fn end_wait(&mut self, run: usize, since: Timestamp, at: Timestamp) {
        let ended = |&child: &usize| {
            let child = &self.runs[child];
            let is_within = |over: Timestamp| over >= since && over <= at;
            child.parent == Some(run) && matches!(child.now, Now::Over { at, .. } if is_within(at))
        };
        let children: Vec<usize> = (run + 1..self.runs.len()).filter(ended).collect();
        let step = match children.is_empty() {
            true => Step::Rest(at.since(since)),
            false => Step::Wait(children),
        };
        self.runs[run].steps.push(step);
    }
}

/// A replay.
struct Play<'a> {
    scripts: &'a [Script],
    runs: Vec<Player>,
    slots: Slots,
    queue: Queue,
    /// The moments at which runs go on; equal ones in the order in which they were named.
    due: BinaryHeap<Reverse<(Duration, usize, usize)>>,
    named: usize,
    now: Duration,
    last_end: Duration,
}

/// A run that is replayed.
struct Player {
    position: Position,
    /// The part in which its children are counted.
    below: Option<Part>,
    next: usize,
    lease: Option<Lease>,
    state: State,
    /// The number of runs that must be over before it goes on.
    open: usize,
    /// The runs that go on when it is over.
    watchers: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Not asked for.
    Unknown,
    /// Asked for, and held until what it needs is over.
    Held,
    /// Works, or is in a line.
    Lives,
    /// Has no slot until its time comes: in a wait, or before another attempt.
    Rests,
    StandsAgain,
    Over,
}

impl<'a> Play<'a> {
    fn new(what_if: &'a WhatIf, total: u32) -> Self {
        let scripts = &what_if.runs[..];
        let per_level = scripts.first().and_then(|root| root.rules.max_concurrent_per_level);
        let player = |script: &Script| Player {
            position: Position { part: Part::TREE, depth: script.depth },
            below: None,
            next: 0,
            lease: None,
            state: State::Unknown,
            open: 0,
            watchers: Vec::new(),
        };
        Self {
            scripts,
            runs: scripts.iter().map(player).collect(),
            slots: Slots::new(Caps { total, per_level }),
            queue: Queue::default(),
            due: BinaryHeap::new(),
            named: 0,
            now: Duration::ZERO,
            last_end: Duration::ZERO,
        }
    }

    fn play(mut self) -> Duration {
        for (run, script) in self.scripts.iter().enumerate() {
            let asked_here = script.parent.is_none_or(|parent| self.scripts[parent].is_holder);
            if asked_here && !script.is_holder {
                self.call_at(script.asked_at, run);
            }
        }
        while let Some(Reverse((at, _, run))) = self.due.pop() {
            self.now = at;
            match self.runs[run].state {
                State::Unknown => self.ask(run),
                State::Rests => self.return_to_line(run),
                State::StandsAgain => self.stand_in_line(run),
                State::Held | State::Lives => self.go_on(run),
                State::Over => {}
            }
            self.schedule();
        }
        self.last_end
    }

    fn call_at(&mut self, at: Duration, run: usize) {
        self.due.push(Reverse((at, self.named, run)));
        self.named += 1;
    }

    /// A run is asked for.
    fn ask(&mut self, run: usize) {
        let script = &self.scripts[run];
        if let Some(parent) = script.parent {
            self.runs[run].position.part = self.part_below(parent);
        }
        self.runs[run].state = State::Held;
        if self.watch(run, &script.after) > 0 {
            return;
        }
        if self.starts(run) {
            self.stand_in_line(run);
        } else {
            self.is_over(run);
        }
    }

    /// Lets a run go on when these are over; returns how many are not.
    fn watch(&mut self, run: usize, others: &[usize]) -> usize {
        for &other in others {
            if self.runs[other].state != State::Over {
                self.runs[other].watchers.push(run);
                self.runs[run].open += 1;
            }
        }
        self.runs[run].open
    }

    /// False of a run that never started: it ends when all that it needs is over.
    fn starts(&self, run: usize) -> bool {
        matches!(self.scripts[run].now, Now::Over { started: true, .. })
    }

    fn stand_in_line(&mut self, run: usize) {
        let parent = self.scripts[run].parent.map(RunIndex::new);
        let place = Place { parent, position: self.runs[run].position };
        self.runs[run].state = State::Lives;
        self.queue.push(&self.slots, place, RunIndex::new(run));
    }

    fn return_to_line(&mut self, run: usize) {
        self.runs[run].state = State::Lives;
        self.queue.push_returning(&self.slots, self.runs[run].position, RunIndex::new(run));
    }

    /// As the machine does at the end of each of its steps.
    fn schedule(&mut self) {
        while self.slots.any_free() {
            let Some(Next::Returning(run) | Next::New(run, _)) = self.queue.pop(&self.slots) else {
                return;
            };
            let position = self.runs[run.get()].position;
            let lease = self.slots.take(run, position);
            self.runs[run.get()].lease =
                Some(lease.expect("the queue chose a run without a free slot"));
            self.go_on(run.get());
        }
    }

    /// Takes the next steps of a run that holds a slot, up to one that takes time.
    fn go_on(&mut self, run: usize) {
        while let Some(step) = self.scripts[run].steps.get(self.runs[run].next) {
            self.runs[run].next += 1;
            match step {
                Step::Work(time) => return self.call_at(self.now + *time, run),
                Step::Ask(child) => self.ask(*child),
                Step::Wait(children) => {
                    if self.watch(run, children) > 0 {
                        self.runs[run].state = State::Rests;
                        return self.give_back(run);
                    }
                }
                Step::Rest(time) => {
                    self.runs[run].state = State::Rests;
                    self.give_back(run);
                    return self.call_at(self.now + *time, run);
                }
                Step::Again(time) => {
                    self.runs[run].state = State::StandsAgain;
                    self.give_back(run);
                    return self.call_at(self.now + *time, run);
                }
            }
        }
        self.give_back(run);
        self.last_end = self.now;
        self.is_over(run);
    }

    fn give_back(&mut self, run: usize) {
        if let Some(lease) = self.runs[run].lease.take() {
            self.slots.give_back(lease);
        }
    }

    fn is_over(&mut self, run: usize) {
        // One that never started may end another that needs it, and so on down a long chain.
        let mut over = vec![run];
        while let Some(run) = over.pop() {
            self.runs[run].state = State::Over;
            for watcher in std::mem::take(&mut self.runs[run].watchers) {
                self.runs[watcher].open -= 1;
                if self.runs[watcher].open > 0 {
                    continue;
                }
                match self.runs[watcher].state {
                    State::Held if self.starts(watcher) => self.stand_in_line(watcher),
                    State::Held => over.push(watcher),
                    _ => self.return_to_line(watcher),
                }
            }
        }
    }

    /// The part in which the children of a run are counted: one of its own where its own values bind them.
    fn part_below(&mut self, run: usize) -> Part {
        if let Some(part) = self.runs[run].below {
            return part;
        }
        let caps = |rules: &Rules| Caps {
            total: rules.max_concurrent,
            per_level: rules.max_concurrent_per_level,
        };
        let own = caps(&self.scripts[run].rules);
        let around = self.runs[run].position.part;
        let parent = self.scripts[run].parent;
        let part = match parent.map(|parent| caps(&self.scripts[parent].rules)) {
            Some(here) if here != own => self.slots.add(around, own),
            _ => around,
        };
        *self.runs[run].below.insert(part)
    }
}

#[cfg(test)]
mod tests;
