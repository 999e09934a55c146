//! A machine as its record left it, and the fate of the runs that were alive then.
//!
//! ```text
//!   events ──▶ Recall::apply, one by one ──▶ Recall::reopen(now) ──▶ Machine, [Effect], who is to be prepared
//!              what was decided, never again decided        what becomes of the living
//! ```
//!
//! The record holds decisions, so reading it back decides nothing: what was granted stays granted, what was spent stays
//! spent. Only then, with nothing of the tree running, it is decided about each run that was alive, in `reopen.rs`.

mod again;
mod past;
mod reopen;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_model::{
    Admitted, AgentId, Cost, Ending, Envelope, Event, EventKind, InputRange, Origin, Payload,
    PiecesAgain, Reason, RequestEnding, RootId, RunId, SpawnRequest, Timestamp, Usage,
};
use offshoot_policy::{Admission, Fallback, Lineage, RuntimeFacts, Terms};

use super::admission::Entrant;
use super::apply::{Applied, Closed};
use super::metered::with_request;
use super::run::{Live, RunIndex, SlotState};
use super::{Effect, Machine};
use crate::kept_values::{KeptValue, ValuesBySession};
use crate::run_spec::priced;
use crate::workspaces::LeftChanges;

pub use again::{NewLimits, NotReopened, Unanswered};
pub(crate) use past::{EndedPiece, Past};

use again::{OverPiece, Reopening};

/// Access to runtimes and stored tasks, for reading a record back.
pub(crate) trait Library {
    /// Returns the facts of a runtime; none where the runtime is not here any more.
    fn facts(&self, runtime: &str) -> Option<Arc<RuntimeFacts>>;

    /// Returns the runtimes that may take over runs of an agent on this runtime; none for most agents.
    fn fallbacks(&self, agent: &AgentId, on: &str) -> Option<Arc<[Fallback]>>;

    /// The text of a task; as much as there is of one that cannot be read.
    fn task(&self, task: &Payload) -> Arc<str>;
}

/// A tree on its way back.
pub(crate) struct Recall {
    machine: Machine,
    /// Data of live runs that is needed until their fate is decided.
    about: HashMap<RunIndex, About>,
    /// The last run of each piece that is over, by its place.
    over: BTreeMap<u32, OverPiece>,
    /// The agent of the root.
    agent: AgentId,
    /// The runtime of the root; none where it only holds pieces.
    runtime: Option<Arc<str>>,
    /// The root as it was when it ended, where it only held pieces.
    root: Option<Box<Live>>,
    /// The choice with which the operator goes on with a root that is over.
    reopening: Option<Reopening>,
    /// The label that a piece must have to run, as the operator has said it last; any where absent.
    only: Option<Arc<str>>,
    /// The number of bytes of what came of them that may still be held. The rest is read again when it is asked for.
    room: u64,
    /// The part of a file that each piece reads, by its place.
    inputs: Vec<(u32, InputRange)>,
    /// Runs whose results were handed over. The record does not say if their folders are gone.
    handed_over: Vec<RunIndex>,
    /// The kept values of the runs that live.
    kept_values: ValuesBySession,
    /// The letters to the runs that live.
    letters: HashMap<RunIndex, Vec<Payload>>,
    /// Changes that interrupted attempts have left in folders of their own.
    changes: LeftChanges,
    last_at: Timestamp,
}

/// Data of a run that lives, from its record.
struct About {
    admitted: Box<Admitted>,
    facts: Option<Arc<RuntimeFacts>>,
    /// True if the attempt that stands in line was started.
    started: bool,
    /// True if that attempt goes on where the last one was.
    continues: bool,
    used: Option<(Usage, Cost)>,
    /// The part of that which earlier attempts have used.
    used_before: Option<(Usage, Cost)>,
    /// The part of it that was charged for what the last attempt may have used, of which it had told nothing.
    charged: Option<(Usage, Cost)>,
    /// True if the changes of the last attempt are on record, and no attempt was started since.
    has_changes: bool,
}

impl About {
    /// Takes in the charge of a request of it.
    fn has_used(&mut self, request: (Usage, Cost)) {
        self.used = Some(with_request(self.used.unwrap_or_default(), request));
    }

    /// An attempt begins.
    fn begins(&mut self) {
        (self.started, self.charged, self.has_changes) = (true, None, false);
    }

    /// Returns what it has used, where its last attempt was cut off.
    fn cut_off(&self, live: &Live) -> (Usage, Cost) {
        match self.charged {
            Some(charged) => live.cut_off_and_charged(self.used, charged),
            None => live.cut_off(self.used),
        }
    }

    /// Takes in that another runtime runs it, with a model of its own.
    fn fell_back(
        &mut self,
        runtime: Arc<str>,
        model: Option<Arc<str>>,
        facts: Option<Arc<RuntimeFacts>>,
    ) {
        (self.admitted.runtime, self.facts) = (Some(runtime), facts);
        let particulars = self.admitted.particulars.get_or_insert_default();
        particulars.model = model.as_deref().map(str::to_owned);
        (particulars.command, particulars.thinking) = (None, None);
    }
}

/// A run that stands in line, or would if its owner had said how to start it.
pub(crate) struct Waiting {
    pub(crate) run: RunIndex,
    pub(crate) admitted: Box<Admitted>,
    /// True if the runtime continues where the run was.
    pub(crate) continues: bool,
    /// Letters that may not have reached it.
    pub(crate) letters: Vec<Payload>,
}

/// A tree that has been read back.
pub(crate) struct Recalled {
    pub(crate) machine: Machine,
    pub(crate) effects: Vec<Effect>,
    /// Runs to prepare. Pieces among them stand in line once their owner has claimed them.
    pub(crate) waiting: Vec<Waiting>,
    /// Pieces that are over.
    pub(crate) over: Vec<(u32, RunId, Past)>,
    /// Pieces that are to run again and have not been admitted since, by their place.
    pub(crate) again: HashMap<u32, RunId>,
    /// Of the pieces that were never admitted, only those with this label may run; all of them where absent.
    pub(crate) only: Option<Arc<str>>,
    /// Pieces that have ended just now: their end is among the effects.
    pub(crate) ending: Vec<EndedPiece>,
    /// The kept values of the runs that live. A run that begins anew keeps them.
    pub(crate) kept_values: ValuesBySession,
}

/// A record that does not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} of the record speaks of the run {run}, which was never admitted")]
pub struct Unknown {
    /// The number of the event.
    pub seq: u64,
    /// The run that is not known.
    pub run: RunId,
}

impl Recall {
    /// The machine of the tree, to be told what the tree shares with others from here on.
    pub(crate) fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// An empty tree, to which its events are told. Of what came of its pieces it holds so many bytes.
    pub(crate) fn new(config: Config, root: RootId, admitted: &Admitted, room: u64) -> Self {
        Self {
            machine: Machine::new(config, root, &admitted.agent),
            about: HashMap::new(),
            over: BTreeMap::new(),
            agent: admitted.agent.clone(),
            runtime: admitted.runtime.clone(),
            root: None,
            reopening: None,
            only: None,
            room,
            inputs: Vec::new(),
            handed_over: Vec::new(),
            kept_values: ValuesBySession::new(),
            letters: HashMap::new(),
            changes: LeftChanges::new(),
            last_at: Timestamp::EPOCH,
        }
    }

    /// Takes in the changes that interrupted attempts have left.
    pub(crate) fn left(&mut self, changes: LeftChanges) {
        self.changes = changes;
    }

    /// Takes in the next event.
    ///
    /// # Errors
    ///
    /// An event about a run of which nothing stands before.
    pub(crate) fn apply(&mut self, event: Event, library: &impl Library) -> Result<(), Unknown> {
        let Event { seq, at, run: id, mut kind, .. } = event;
        (self.machine.seq, self.machine.now) = (seq, at);
        let before = self.last_at;
        self.last_at = before.max(at);
        let facts = match &mut kind {
            EventKind::Admitted(admitted) => self.admitted(seq, id, admitted, library)?,
            _ => None,
        };
        let run = self.machine.find(id).ok_or(Unknown { seq, run: id })?;
        match &mut kind {
            EventKind::Starting => {
                let entry = &self.machine.runs[run];
                if entry.live().is_some() {
                    // The breaker let the run start; the run may have been a probe.
                    let _ = self.machine.books.breakers.start(&entry.agent, id, at);
                }
            }
            EventKind::Waiting => {
                if let Some(live) = self.machine.runs.live_mut(run) {
                    live.clock.pause(at);
                }
            }
            EventKind::Reopened => self.reopened(before),
            EventKind::Resumed { after: None, .. } => self.was_cut_off(run),
            EventKind::Ended(ending) => self.correct(run, ending),
            _ => {}
        }
        let Applied { notices: _, breaker: _, closed } = self.machine.apply(run, &kind);
        if let EventKind::RootReopened(reopened) = &kind {
            self.root_reopened(reopened);
        }
        match kind {
            EventKind::Starting => {
                if let Some(about) = self.about.get_mut(&run) {
                    about.begins();
                }
            }
            EventKind::Resumed { continues, changes, .. } => {
                if let Some(about) = self.about.get_mut(&run) {
                    about.has_changes = changes.is_some();
                    about.used_before = about.used;
                    (about.started, about.continues) = (false, continues);
                }
            }
            EventKind::FellBack { runtime, model, .. } => {
                let facts = library.facts(&runtime);
                if let Some(facts) = &facts {
                    self.machine.run_by(run, facts);
                }
                if let Some(about) = self.about.get_mut(&run) {
                    about.fell_back(runtime, model, facts);
                }
            }
            EventKind::Used { usage, cost } => {
                if let Some(about) = self.about.get_mut(&run) {
                    about.used = Some((usage, cost));
                }
            }
            EventKind::RequestSettled { ending, usage, cost, .. } => {
                if let Some(about) = self.about.get_mut(&run) {
                    about.has_used((usage, cost));
                    if ending == RequestEnding::Lost {
                        about.charged = self.machine.charged_in_full(run, (usage, cost));
                    }
                }
            }
            EventKind::Ended(ending) => {
                self.kept_values.remove(&id);
                self.letters.remove(&run);
                if let Some(closed) = closed {
                    self.ended(run, &ending, closed);
                }
            }
            EventKind::Kept { name, value } => {
                self.kept_values.entry(id).or_default().insert(name, KeptValue { value, at });
            }
            EventKind::Delivered { .. } | EventKind::Undelivered { .. } => {
                self.handed_over.push(run);
            }
            EventKind::Letter { text, .. } => {
                self.letters.entry(run).or_default().push(text);
            }
            EventKind::Admitted(admitted) => {
                // A run that only holds pieces has nothing to start.
                let started = admitted.runtime.is_none() && admitted.parent.is_none();
                let about = About {
                    admitted,
                    facts,
                    started,
                    continues: false,
                    used: None,
                    used_before: None,
                    charged: None,
                    has_changes: false,
                };
                self.about.insert(run, about);
            }
            _ => {}
        }
        Ok(())
    }

    /// The tree as it was.
    #[cfg(test)]
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The part of a file that each piece has read or would read, by its place.
    pub(crate) fn inputs(&self) -> &[(u32, InputRange)] {
        &self.inputs
    }

    /// Returns true if nothing lived when the record ended.
    pub(crate) fn is_over(&self) -> bool {
        self.machine.live == 0
    }

    /// A run that would go on, and whose runtime is not here any more.
    pub(crate) fn missing_runtime(&self) -> Option<(RunId, Arc<str>)> {
        reopen::without_runtime(&self.machine, &self.about).map(|run| {
            let runtime = self.about[&run].admitted.runtime.clone();
            (self.machine.id(run), runtime.expect("a run that needs a runtime names none"))
        })
    }

    /// Returns true if the root goes on; false of one that was cut off and cannot be repeated.
    pub(crate) fn root_goes_on(&self) -> bool {
        reopen::root_goes_on(&self.machine, &self.about)
    }

    /// The agent of the root.
    pub(crate) fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The latest moment on record.
    pub(crate) fn last_at(&self) -> Timestamp {
        self.last_at
    }

    fn admitted(
        &mut self,
        seq: u64,
        id: RunId,
        admitted: &mut Admitted,
        library: &impl Library,
    ) -> Result<Option<Arc<RuntimeFacts>>, Unknown> {
        if let Some(place) = admitted.place {
            // What has its place again ends anew.
            self.over.remove(&place);
        }
        let merges = admitted.merges().is_some();
        // Results that a merge has written are no input of the operator's.
        if let (Some(place), Some(input), false) = (admitted.place, &mut admitted.input, merges) {
            // Most pieces read a part of the same file as the one before.
            if let Some((_, last)) = self.inputs.last().filter(|(_, last)| last.path == input.path)
            {
                input.path = Arc::clone(&last.path);
            }
            self.inputs.push((place, input.clone()));
        }
        let machine = &mut self.machine;
        let parent = match admitted.parent {
            Some(parent) => Some(machine.find(parent).ok_or(Unknown { seq, run: parent })?),
            None => None,
        };
        let particulars = admitted.particulars.clone().unwrap_or_default();
        let request = SpawnRequest {
            task: match (&admitted.task, admitted.origin) {
                (Payload::Text(task), _) => Arc::clone(task),
                // Only the piece itself reads its long task.
                (_, Origin::Piece) => Arc::default(),
                (task, _) => library.task(task),
            },
            context: particulars.context,
            command: particulars.command,
            model: particulars.model,
            ..SpawnRequest::default()
        };
        // A parent that was over keeps neither terms nor lineage: what it asked for before that lives under its own.
        let above = parent.and_then(|parent| machine.runs.live(parent));
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
        let admission = Admission {
            agent: admitted.agent.clone(),
            depth: admitted.depth,
            origin: admitted.origin,
            terms,
            grant: Arc::clone(&admitted.grant),
            lineage,
        };
        let holds = parent.is_none() && admitted.runtime.is_none();
        let facts = admitted.runtime.as_deref().and_then(|name| library.facts(name));
        let facts = facts.map(|facts| {
            let agent = machine.config.agent(&admitted.agent);
            let has_own = agent.is_some_and(|agent| agent.command.is_some());
            priced(facts, !has_own && request.command.is_none(), &machine.config)
        });
        let on = admitted.runtime.as_deref();
        let fallbacks = on.and_then(|on| library.fallbacks(&admitted.agent, on));
        let prefix = match (parent, &facts) {
            (Some(parent), Some(facts)) => {
                machine.prefix_of(parent, &admission.agent, &request, facts)
            }
            _ => None,
        };
        machine.admit(Entrant {
            id,
            admitted,
            parent,
            admission: &admission,
            phase: if holds { SlotState::Holder } else { SlotState::Lent },
            facts: facts.as_deref(),
            fallbacks: fallbacks.as_ref(),
            prefix,
        });
        Ok(facts)
    }

    /// Another supervisor has taken the tree, which the last one held until `until`.
    fn reopened(&mut self, until: Timestamp) {
        self.machine.reopened(until);
        // Its part of a pool may be on record where its start is not.
        for (&run, _) in self.about.iter().filter(|(_, about)| !about.started) {
            let id = self.machine.id(run);
            self.machine.books.ledger.return_to_pool(id);
        }
    }

    /// An attempt was interrupted: the usage that it had reported is a lower bound from then on. Its requests are still known here, and are
    /// forgotten as the next attempt begins.
    fn was_cut_off(&mut self, run: RunIndex) {
        let Some(about) = self.about.get_mut(&run).filter(|about| about.started) else { return };
        if let Some(live) = self.machine.runs.live(run) {
            about.used = Some(about.cut_off(live));
        }
    }

    /// Corrects an end that the first versions wrote: zeros where they meant that nothing was known.
    fn correct(&self, run: RunIndex, ending: &mut Ending) {
        let zeros = ending.usage == Usage::default() && ending.cost.is_none();
        if zeros
            && ending.reason == Reason::Interrupted
            && self.about.get(&run).is_some_and(|about| about.started)
            && let Some(live) = self.machine.runs.live(run)
            && live.phase != SlotState::Holder
        {
            (ending.usage, ending.cost) = live.cut_off(None);
        }
    }

    fn ended(&mut self, run: RunIndex, ending: &Ending, closed: Closed) {
        let machine = &self.machine;
        let about = self.about.remove(&run);
        if run == RunIndex::ROOT && self.runtime.is_none() {
            self.root = Some(closed.live);
            return;
        }
        let has_started = closed.live.started_at.is_some();
        let Live { key, announces, .. } = *closed.live;
        if !announces {
            self.handed_over.push(run);
        }
        let Some(About { admitted, .. }) = about else { return };
        let merges = admitted.merges().is_some();
        let Admitted { place: Some(place), label, .. } = *admitted else { return };
        let (seq, entry) = (machine.seq, &machine.runs[run]);
        let envelope = || Envelope::of(ending, key, entry.id, entry.agent.clone(), entry.depth());
        let past = Past::held(seq, ending, &mut self.room, envelope);
        let by_end = |again: &PiecesAgain| again.includes(&ending.reason, has_started, None);
        let piece = OverPiece {
            run: entry.id,
            past,
            label,
            merges,
            has_failed: by_end(&PiecesAgain { failed: true, ..PiecesAgain::default() }),
            was_cancelled: by_end(&PiecesAgain { cancelled: true, ..PiecesAgain::default() }),
            was_too_expensive: matches!(ending.reason, Reason::Budget { .. }),
            again: false,
        };
        self.over.insert(place, piece);
    }
}
