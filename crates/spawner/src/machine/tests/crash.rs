//! A supervisor that dies with everything in it, and the one that reads its record back.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{AgentId, EventKind, Origin, Payload, PiecesAgain, Timestamp, Tree};
use offshoot_policy::budget::Unit;
use offshoot_policy::{Fallback, RuntimeFacts};

use super::super::run::{Run, SlotState};
use super::super::{
    Input, Library, Machine, NewLimits, NotReopened, Recall, Recalled, RunIndex, Waiting,
};
use super::host_slots::OtherTrees;
use super::world::World;

/// The wish of the operator to go on with a tree that is over.
#[derive(Clone, Debug, Default)]
pub(super) struct GoOn {
    pub(super) again: PiecesAgain,
    pub(super) limits: NewLimits,
}

impl World {
    /// The supervisor dies, and a new one reads the record back. What was counted is counted the same; then it goes on.
    pub(super) fn crash(&mut self) {
        self.die(Duration::ZERO);
        while self.claim() {}
    }

    /// Crashes in the same way, with some time in between. The owner asks for its pieces again one by one, with
    /// [`World::claim`].
    pub(super) fn die(&mut self, dead: Duration) {
        let recall = self.read_back();
        if !recall.is_over() {
            self.count_what_it_interrupts();
            self.taken_over(recall, dead, Recall::reopen);
            self.assert_traces();
        }
    }

    /// The supervisor dies, and after some time the operator cancels what it has left.
    pub(super) fn die_and_cancel(&mut self, dead: Duration) {
        let recall = self.read_back();
        self.count_what_it_interrupts();
        self.taken_over(recall, dead, Recall::cancel);
    }

    /// Crashes in the same way, and the next supervisor knows something more before it goes on.
    pub(super) fn die_and(&mut self, prepare: impl FnOnce(&mut Recall)) {
        let mut recall = self.read_back();
        prepare(&mut recall);
        self.taken_over(recall, Duration::ZERO, Recall::reopen);
    }

    /// The number of runs that stand in line after the end of the run that asked for them.
    pub(super) fn queued_orphans(&self) -> usize {
        let is_over = |at: RunIndex| self.machine.runs.live(at).is_none();
        let is_orphan = |run: &&Run| {
            let is_queued = run.live().is_some_and(|live| live.phase == SlotState::Queued);
            is_queued && run.parent.is_some_and(is_over)
        };
        self.machine.runs.iter().filter(is_orphan).count()
    }

    /// Counts the runs in states that are hard to read back.
    fn count_what_it_interrupts(&mut self) {
        let mut found = vec!["queued orphan at a crash"; self.queued_orphans()];
        for live in self.machine.runs.iter().filter_map(Run::live) {
            if live.stopping.is_some() {
                found.push("stopping at a crash");
            }
            if live.terms.deadline_seconds().is_some() {
                found.push("deadline at a crash");
            }
        }
        for what in found {
            self.saw(what);
        }
    }

    /// Crashes, and the next supervisor finds the runtime with these facts.
    pub(super) fn die_and_find(&mut self, facts: Arc<RuntimeFacts>) {
        // The record is read back as it was written first.
        drop(self.read_back());
        self.facts = facts;
        let recall = self.read_again();
        self.taken_over(recall, Duration::ZERO, Recall::reopen);
    }

    /// Checks that a run is told of the runs above it as the record says.
    fn assert_traces(&self) {
        let tree = Tree::of(&self.ledger.events);
        for run in (0..self.machine.runs.len()).map(RunIndex::new) {
            let Some(session) = self.machine.session(run) else { continue };
            let node = tree.get(self.machine.id(run)).expect("it was admitted");
            assert_eq!(session.delegation.trace, tree.trace(node));
            assert_eq!(session.delegation.recursion_depth, node.depth);
        }
    }

    /// The operator goes on with a tree that is over, after some time.
    pub(super) fn reopen(&mut self, wish: GoOn, dead: Duration) -> Result<(), NotReopened> {
        let mut recall = self.read_back();
        let GoOn { again, limits } = wish;
        recall.go_on(again)?;
        recall.give(limits)?;
        self.taken_over(recall, dead, Recall::reopen);
        Ok(())
    }

    /// The tree as a reader of its record knows it.
    pub(super) fn read_back(&self) -> Recall {
        let recall = self.read_again();
        self.assert_same(recall.machine());
        recall
    }

    pub(super) fn read_again(&self) -> Recall {
        let root = self.ledger.root;
        let EventKind::Admitted(admitted) = &self.record[0].kind else {
            panic!("a record begins with the admission of its root");
        };
        let mut recall = Recall::new(self.config.clone(), root, admitted, u64::MAX);
        recall.machine_mut().watch_memory();
        recall.machine_mut().share_host_slots();
        if self.limits.shares_probes {
            recall.machine_mut().share_probes();
        }
        for event in self.record.clone() {
            recall.apply(event, self).expect("the record fits together");
        }
        recall
    }

    fn taken_over(
        &mut self,
        recall: Recall,
        dead: Duration,
        goes_on: fn(Recall, Timestamp) -> Recalled,
    ) {
        self.now = self.now.plus(dead);
        let Recalled { machine, effects, waiting, over, again, ending, kept_values, only: _ } =
            goes_on(recall, self.now);
        self.again = again.into_iter().collect();
        self.kept_values = kept_values;
        let goes_on = |waiting: &Waiting| waiting.continues.then_some(waiting.run);
        self.going_on = waiting.iter().filter_map(goes_on).collect();
        self.machine = machine;
        self.hosts.values_mut().for_each(OtherTrees::forget);
        self.actors.clear();
        self.open_look = None;
        self.asked_turns.clear();
        self.ledger.forget_turns();
        self.stopping.clear();
        self.open_waits.clear();
        self.letters_held.clear();
        self.past_attempts.clear();
        self.requests.clear();
        let going_on: Vec<_> = self.going_on.iter().map(|&run| self.machine.id(run)).collect();
        self.memory.crash(|run| going_on.contains(&run));
        for Waiting { run, letters, .. } in &waiting {
            let number = |letter: &Payload| match letter {
                Payload::Text(text) => text.strip_prefix("letter ")?.parse().ok(),
                Payload::Json(_) | Payload::Stored(_) => None,
            };
            let numbers = letters.iter().map(|it| number(it).expect("a letter of ours")).collect();
            self.letters_held.insert(*run, numbers);
        }
        let lives = |run: &RunIndex| waiting.iter().any(|waiting| waiting.run == *run);
        for (place, run) in &self.places {
            let is_over = over.iter().any(|(over, ..)| over == place)
                || ending.iter().any(|ended| (ended.place, ended.run) == (*place, *run));
            let runs_again = self.again.get(place) == Some(&self.machine.id(*run));
            assert!(
                is_over || lives(run) || runs_again,
                "a piece that stands in the record is not run again"
            );
        }
        self.book(effects);
        let pieces = waiting.iter().filter(|waiting| waiting.admitted.origin == Origin::Piece);
        self.unclaimed = pieces.map(|waiting| waiting.run).collect();
    }

    /// The owner asks for one more of its pieces again; answers whether there was one.
    pub(super) fn claim(&mut self) -> bool {
        let Some(run) = self.unclaimed.pop() else { return false };
        self.step(Input::Claimed { run, asked: None });
        true
    }

    fn assert_same(&self, read: &Machine) {
        assert_eq!(read.seq, self.machine.seq);
        assert_eq!(read.live, self.machine.live);
        assert_eq!(read.books.spawns, self.machine.books.spawns, "what was spawned was spawned");
        assert_eq!(read.runs.len(), self.machine.runs.len());
        for (read, was) in read.runs.iter().zip(self.machine.runs.iter()) {
            assert_eq!((read.id, read.parent), (was.id, was.parent));
            let places = |run: &Run| (run.position, run.below);
            assert_eq!(places(read), places(was), "each is counted where it was counted");
            assert_eq!(read.children, was.children);
            assert_eq!(read.live().is_some(), was.live().is_some());
            let of = |run: &Run| {
                let live = run.live()?;
                // A run that holds pieces is not stopped by being asked; the owner that takes it over decides anew.
                let stopping = live.stopping.clone().filter(|_| live.phase != SlotState::Holder);
                Some((
                    live.live_children.clone(),
                    live.earlier_children,
                    live.attempt,
                    live.faults,
                    live.announces,
                    live.takes_turns,
                    (live.resumes, live.cost, live.memory, live.account.clone()),
                    live.fallbacks.as_ref().map(|fallbacks| fallbacks.next),
                    live.started_at.is_some() || live.attempt > 1,
                    live.refusals.as_ref().map_or(0, |refusals| refusals.recorded),
                    (live.reports.clone(), live.tool_uses.clone(), live.backoff.clone()),
                    stopping,
                ))
            };
            assert_eq!(of(read), of(was));
        }
        for agent in
            ["main", "a", "b", "c"].map(|agent| AgentId::parse(agent).expect("the text is no id"))
        {
            let gate = |machine: &Machine| machine.books.breakers.gate(&agent, self.now);
            assert_eq!(gate(read), gate(&self.machine), "what fails again and again is left alone");
        }
        let quotas = |machine: &Machine| machine.books.quotas.clone();
        assert_eq!(quotas(read), quotas(&self.machine), "a wall stands, whoever holds the tree");
        for run in self.machine.runs.iter() {
            for unit in Unit::ALL {
                let balance = |machine: &Machine| machine.books.ledger.balance(run.id, unit);
                assert_eq!(balance(read), balance(&self.machine), "what was spent was spent");
            }
        }
    }
}

impl Library for World {
    fn facts(&self, runtime: &str) -> Option<Arc<RuntimeFacts>> {
        Some(self.facts_of_runtime(runtime))
    }

    fn fallbacks(&self, _agent: &AgentId, _on: &str) -> Option<Arc<[Fallback]>> {
        self.fallbacks()
    }

    fn task(&self, _task: &Payload) -> Arc<str> {
        unreachable!("the tasks of this world are short")
    }
}
