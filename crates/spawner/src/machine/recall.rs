//! A machine as its record left it, and what becomes of whatever was alive then.
//!
//! ```text
//!   events ──▶ Recall::apply, one by one ──▶ Recall::reopen(now) ──▶ Machine, [Effect], who is to be prepared
//!              what was decided, never again decided        what becomes of the living
//! ```
//!
//! The record holds decisions, so reading it back decides nothing: what was granted stays granted, what was spent stays
//! spent. Only then, with nothing of the tree running, is it decided about each run that was alive:
//!
//! | it | and | becomes |
//! |---|---|---|
//! | holds pieces | | goes on holding them |
//! | was being stopped | | over, for the reason it was stopped |
//! | has a parent that is over, lost or begins again | is no piece | lost: nobody is left who asked for it |
//! | had not started | | stands in line as before |
//! | had started | its runtime can go on | stands in line, and goes on where it was |
//! | had started | is to be run again | stands in line, and begins anew |
//! | had started | | lost |
//!
//! From the first step after that everything is as in any other tree.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_config::{Config, OnInterrupt};
use offshoot_model::{
    Admitted, BudgetGrant, Cost, Ending, Envelope, Event, EventKind, MicroUsd, Origin, Payload,
    Reason, RootId, RunId, SpawnRequest, Timestamp, Usage,
};
use offshoot_policy::{Admission, Lineage, RuntimeFacts, Terms};

use super::admission::keeps;
use super::run::{Body, Phase, RunIndex};
use super::timer::Due;
use super::{Effect, Machine};
use crate::names::{Kept, Sessions};

/// What reading a record back needs from outside.
pub(crate) trait Library {
    /// What is known of a runtime; none where it is not here any more.
    fn facts(&self, runtime: &str) -> Option<Arc<RuntimeFacts>>;

    /// The text of a task; as much as there is of one that cannot be read.
    fn task(&self, task: &Payload) -> Arc<str>;
}

/// A tree on its way back.
pub(crate) struct Recall {
    machine: Machine,
    /// What is only needed until it is decided, by the run's place.
    about: HashMap<RunIndex, About>,
    /// Pieces that are over, for whoever asked for them.
    ended: Vec<(u32, Envelope)>,
    /// Whose results were handed over. Whether what else they left is gone, the record does not say.
    handed_over: Vec<RunIndex>,
    /// What those that live call their values.
    names: Sessions,
    opened_at: Timestamp,
    last_at: Timestamp,
}

/// What the record says of a run that lives.
struct About {
    admitted: Box<Admitted>,
    facts: Option<Arc<RuntimeFacts>>,
    started: bool,
    /// Whether the attempt that stands in line goes on where the last one was.
    continues: bool,
    used: Option<(Usage, Cost)>,
}

/// What becomes of a run that was alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Holds,
    WaitsInLine,
    Again { continues: bool },
    Ends,
}

/// A run that stands in line, or would if somebody said what it takes to start it.
pub(crate) struct Waiting {
    pub(crate) run: RunIndex,
    pub(crate) admitted: Box<Admitted>,
    /// Whether its runtime goes on where it was.
    pub(crate) continues: bool,
}

/// A tree that has been read back.
pub(crate) struct Recalled {
    pub(crate) machine: Machine,
    pub(crate) effects: Vec<Effect>,
    /// Runs to prepare. Pieces among them stand in line once their owner has claimed them.
    pub(crate) waiting: Vec<Waiting>,
    /// Pieces that are over.
    pub(crate) ended: Vec<(u32, Envelope)>,
    /// What those that live call their values. One that begins anew keeps what it had put.
    pub(crate) names: Sessions,
}

/// A record that does not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} of the record speaks of the run {run}, which was never admitted")]
pub struct Unknown {
    /// Which event.
    pub seq: u64,
    /// Which run.
    pub run: RunId,
}

impl Recall {
    /// An empty tree, to which its events are told.
    pub(crate) fn new(config: Config, root: RootId, admitted: &Admitted) -> Self {
        Self {
            machine: Machine::new(config, root, &admitted.agent),
            about: HashMap::new(),
            ended: Vec::new(),
            handed_over: Vec::new(),
            names: Sessions::new(),
            opened_at: Timestamp::EPOCH,
            last_at: Timestamp::EPOCH,
        }
    }

    /// Takes in the next event.
    ///
    /// # Errors
    ///
    /// An event about a run of which nothing stands before.
    pub(crate) fn apply(&mut self, event: Event, library: &impl Library) -> Result<(), Unknown> {
        let Event { seq, at, run: id, kind, .. } = event;
        self.machine.seq = seq;
        self.last_at = self.last_at.max(at);
        let kind = match kind {
            EventKind::Admitted(admitted) => {
                self.admitted(at, seq, id, admitted, library)?;
                return Ok(());
            }
            kind => kind,
        };
        let run = self.machine.find(id).ok_or(Unknown { seq, run: id })?;
        match kind {
            EventKind::Starting => {
                let live = self.machine.runs[run.get()].live_mut();
                if let Some(live) = live {
                    live.started_at = Some(at);
                }
                if let Some(about) = self.about.get_mut(&run) {
                    about.started = true;
                }
            }
            EventKind::Resumed { attempt, continues, after } => {
                let entry = &mut self.machine.runs[run.get()];
                let earlier = entry.children.len();
                if let Some(live) = entry.live_mut() {
                    live.attempt = attempt;
                    live.faults += u32::from(after.is_some());
                    if !continues {
                        live.earlier_children = u32::try_from(earlier).expect("fewer than runs");
                    }
                }
                if let Some(about) = self.about.get_mut(&run) {
                    (about.started, about.continues) = (false, continues);
                }
            }
            EventKind::Used { usage, cost } => {
                // Whoever was told by this was told then.
                let _ = self.machine.books.ledger.charge(id, &usage, &cost);
                if let Some(about) = self.about.get_mut(&run) {
                    about.used = Some((usage, cost));
                }
            }
            EventKind::BudgetRaised { tokens, micro_usd } => {
                let usd = MicroUsd::from_micros(micro_usd);
                let more = BudgetGrant { tokens: Some(tokens), usd: Some(usd) };
                self.machine.books.ledger.raise(id, more);
            }
            EventKind::Stopping { reason } => {
                if let Some(live) = self.machine.runs[run.get()].live_mut() {
                    live.stopping = Some(reason);
                }
            }
            EventKind::Ended(ending) => {
                self.names.remove(&id);
                self.ended(at, run, id, *ending);
            }
            EventKind::Kept { name, value } => {
                self.names.entry(id).or_default().insert(name, Kept { value, at });
            }
            EventKind::Delivered { .. } | EventKind::Undelivered { .. } => {
                self.machine.forget_result(run);
                self.handed_over.push(run);
            }
            EventKind::Removal { error } => {
                self.machine.runs[run.get()].not_removed = error.is_some();
            }
            EventKind::Admitted(_)
            | EventKind::Refused { .. }
            | EventKind::Started { .. }
            | EventKind::Progress { .. }
            | EventKind::Reported { .. }
            | EventKind::Waiting
            | EventKind::Returned
            | EventKind::BudgetNotice
            | EventKind::Overrun { .. }
            | EventKind::StallLent
            | EventKind::Reopened
            | EventKind::Merged(_)
            | EventKind::TurnEnded { .. }
            | EventKind::Letter { .. } => {}
        }
        Ok(())
    }

    /// The tree as it was.
    #[cfg(test)]
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether anything lived when the record ended.
    pub(crate) fn is_over(&self) -> bool {
        self.machine.live == 0
    }

    /// The latest moment on record.
    pub(crate) fn last_at(&self) -> Timestamp {
        self.last_at
    }

    /// Decides about whatever was alive.
    pub(crate) fn reopen(self, now: Timestamp) -> Recalled {
        let Self { mut machine, mut about, ended, handed_over, names, opened_at, last_at } = self;
        // A clock that was set back would make later events earlier than those on record.
        let now = now.max(last_at);
        let mut effects = Vec::new();
        machine.record(now, RunIndex::ROOT, EventKind::Reopened, &mut effects);
        handed_over.into_iter().for_each(|run| machine.clean_up(run, &mut effects));
        let terms = machine.runs[0].live().map(|root| Arc::clone(&root.terms));
        if let Some(seconds) = terms.and_then(|terms| terms.deadline_seconds()) {
            // The time in which nobody held the tree does not count.
            let left = Duration::from_secs(seconds).saturating_sub(last_at.since(opened_at));
            machine.timers.arm(now.plus(left), Due::Deadline);
        }
        let fates = fates(&machine, &about);
        let mut order: Vec<RunIndex> = fates.keys().copied().collect();
        order.sort_unstable();
        // Leaves first, so that whoever is over has nothing below it that is not.
        for &run in order.iter().rev().filter(|run| fates[run] == Fate::Ends) {
            let live = machine.runs[run.get()].live().expect("it lives");
            let reason = live.stopping.as_deref().cloned().unwrap_or(Reason::Interrupted);
            let (usage, cost) = about.get(&run).and_then(|about| about.used).unwrap_or_default();
            let ending = Ending { usage, cost, ..Ending::of(reason) };
            machine.finished(now, run, ending, &mut effects);
        }
        let mut waiting = Vec::new();
        for run in order {
            if matches!(fates[&run], Fate::Holds | Fate::Ends) {
                continue;
            }
            let About { admitted, mut continues, used, .. } =
                about.remove(&run).expect("whoever lives was told of");
            if let Fate::Again { continues: goes_on } = fates[&run] {
                continues = goes_on;
                if !continues {
                    machine.begin_anew(now, run, &mut effects);
                }
                let live = machine.runs[run.get()].live_mut().expect("it lives");
                live.attempt += 1;
                let kind = EventKind::Resumed { attempt: live.attempt, continues, after: None };
                machine.record(now, run, kind, &mut effects);
            }
            let live = machine.runs[run.get()].live_mut().expect("it lives");
            (live.phase, live.started_at) = (Phase::Queued, None);
            live.earlier = used.map(Box::new);
            match admitted.origin {
                // Its owner has to say what it takes to run it.
                Origin::Piece => {
                    machine.queued += 1;
                    machine.unclaimed.insert(run);
                }
                Origin::Root | Origin::Agent => machine.stand_in_line(run),
            }
            waiting.push(Waiting { run, admitted, continues });
        }
        machine.schedule(now, &mut effects);
        Recalled { machine, effects, waiting, ended, names }
    }

    fn admitted(
        &mut self,
        at: Timestamp,
        seq: u64,
        id: RunId,
        admitted: Box<Admitted>,
        library: &impl Library,
    ) -> Result<(), Unknown> {
        let machine = &mut self.machine;
        let parent = match admitted.parent {
            Some(parent) => Some(machine.find(parent).ok_or(Unknown { seq, run: parent })?),
            None => None,
        };
        let particulars = admitted.particulars.clone().unwrap_or_default();
        let request = SpawnRequest {
            task: match (&admitted.task, admitted.origin) {
                (Payload::Text(task), _) => Arc::clone(task),
                // The long task of a piece is read by nobody but the piece.
                (_, Origin::Piece) => Arc::default(),
                (task, _) => library.task(task),
            },
            context: particulars.context,
            command: particulars.command,
            ..SpawnRequest::default()
        };
        // A parent that was over keeps neither terms nor lineage: what it asked for before that lives under its own.
        let above = parent.and_then(|parent| machine.runs[parent.get()].live());
        let (terms, lineage) = match above {
            Some(parent) => (
                parent.terms.child(&machine.config, &admitted.agent),
                parent.lineage.child(admitted.agent.clone(), &request),
            ),
            None => (
                Terms::root(&machine.config, &admitted.agent),
                Lineage::root(admitted.agent.clone(), &request),
            ),
        };
        let announces = admitted.origin == Origin::Agent
            && above.is_some_and(|parent| parent.phase != Phase::Holder);
        let admission = Admission {
            agent: admitted.agent.clone(),
            depth: admitted.depth,
            origin: admitted.origin,
            terms,
            grant: Arc::clone(&admitted.grant),
            lineage,
        };
        machine.books.reserve(id, admitted.parent, &admission, at);
        let facts = admitted.runtime.as_deref().map(|name| library.facts(name));
        let holds = parent.is_none() && facts.is_none();
        let phase = if holds { Phase::Holder } else { Phase::Lent };
        let mut live = super::admission::live(admitted.key.clone(), &admission, phase);
        let facts = facts.flatten();
        live.takes_turns = facts.as_ref().is_some_and(|facts| facts.turns);
        live.resumes = facts.as_ref().is_some_and(|facts| facts.resumes);
        live.announces = announces;
        live.started_at = holds.then_some(at);
        if parent.is_none() {
            self.opened_at = at;
        }
        let run = machine.insert(id, parent, admitted.depth, live);
        let above = parent.is_some_and(|parent| machine.runs[parent.get()].keeps);
        let entry = &mut machine.runs[run.get()];
        (entry.cleanup, entry.keeps) = (admitted.cleanup, keeps(above, particulars.cleanup));
        let about = About { admitted, facts, started: holds, continues: false, used: None };
        self.about.insert(run, about);
        Ok(())
    }

    fn ended(&mut self, at: Timestamp, run: RunIndex, id: RunId, ending: Ending) {
        let machine = &mut self.machine;
        let _ = machine.books.ledger.settle(id, &ending);
        let about = self.about.remove(&run);
        let entry = &mut machine.runs[run.get()];
        let Body::Live(live) = std::mem::replace(&mut entry.body, Body::Ended(ending.status()))
        else {
            return;
        };
        let (parent, depth) = (entry.parent, entry.depth);
        machine.live -= 1;
        if let Some(parent) = parent.and_then(|parent| machine.runs[parent.get()].live_mut()) {
            parent.live_children -= 1;
        }
        if live.started_at.is_some() {
            machine.probed(at, id, &live.agent, &live.terms, &ending.reason);
        }
        if live.announces {
            machine.remember_result(run, live.key.clone());
        } else {
            self.handed_over.push(run);
        }
        if let Some(place) = about.and_then(|about| about.admitted.place) {
            let envelope = Envelope::of(&ending, live.key, id, live.agent, depth);
            self.ended.push((place, envelope));
        }
    }
}

/// What becomes of each run that lives. Parents stand before their children, so theirs is known.
fn fates(machine: &Machine, about: &HashMap<RunIndex, About>) -> HashMap<RunIndex, Fate> {
    let mut fates: HashMap<RunIndex, Fate> = HashMap::new();
    for (at, entry) in machine.runs.iter().enumerate() {
        let (run, Some(live)) = (RunIndex::new(at), entry.live()) else { continue };
        let About { admitted, facts, started, .. } = &about[&run];
        let orphaned = entry.parent.is_some_and(|parent| {
            let fate = fates.get(&parent);
            !matches!(fate, Some(Fate::Holds | Fate::WaitsInLine | Fate::Again { continues: true }))
        });
        let resumes = facts.as_ref().is_some_and(|facts| facts.resumes);
        let rerun = live.terms.on_interrupt(admitted.origin) == OnInterrupt::Rerun;
        let fate = match () {
            () if live.phase == Phase::Holder => Fate::Holds,
            () if live.stopping.is_some() || orphaned || facts.is_none() => Fate::Ends,
            () if !started => Fate::WaitsInLine,
            () if resumes => Fate::Again { continues: true },
            () if rerun => Fate::Again { continues: false },
            () => Fate::Ends,
        };
        fates.insert(run, fate);
    }
    fates
}

impl Machine {
    /// A run begins anew: what its earlier attempt had asked for is nothing to it any more.
    fn begin_anew(&mut self, now: Timestamp, run: RunIndex, out: &mut Vec<Effect>) {
        let entry = &mut self.runs[run.get()];
        let earlier_children = entry.children.len();
        let Some(live) = entry.live_mut() else { return };
        live.earlier_children = u32::try_from(earlier_children).expect("fewer than runs");
        let mail = live.mail.take();
        self.return_mail(now, mail, out);
    }

    /// A piece that was read back, and whose owner has said what it takes to run it, takes its place in line.
    pub(super) fn claimed(&mut self, run: RunIndex) {
        let entry = &self.runs[run.get()];
        if self.unclaimed.remove(&run) {
            self.queue.push(entry.depth, entry.parent, run);
        }
    }

    /// The root ends: pieces that nobody has claimed end with it.
    pub(super) fn drop_unclaimed(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        for run in std::mem::take(&mut self.unclaimed) {
            if self.runs[run.get()].live().is_some_and(|live| live.phase == Phase::Queued) {
                self.finished(now, run, Ending::of(Reason::Interrupted), out);
            }
        }
    }
}
