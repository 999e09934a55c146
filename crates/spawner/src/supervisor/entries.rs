//! The live runs, as the supervisor holds them beside the machine.

use std::sync::Arc;

use offshoot_runtime::{LetterBox, Runtime, StopHandle, UsageProbe};
use thin_vec::ThinVec;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::attempt_watch::AttemptWatch;
use crate::machine::RunIndex;
use crate::message::{FanEvent, FanId};
use crate::request::Prepared;
use crate::request::inherited_model::InheritedModel;

/// The live runs by their place in the tree.
#[derive(Default)]
pub(super) struct Entries(Vec<Option<Box<Entry>>>);

/// A live run, seen from outside the machine.
#[derive(Default)]
pub(super) struct Entry {
    /// Data for the next start: once the run has started, for another attempt, where it may have one.
    pub(super) launch: Option<Box<Prepared>>,
    /// The record that must be durable before it may start.
    pub(super) admitted: u64,
    /// The attempt that runs; none before it starts.
    pub(super) attempt: Option<Box<Attempt>>,
    /// True if the run was asked to stop before it was started.
    pub(super) stopped: bool,
    pub(super) follower: Option<Follower>,
    pub(super) post: Post,
    /// The model choice that runs below inherit; most runs have none.
    pub(super) model_choice: Option<Arc<InheritedModel>>,
}

/// The links to an attempt that runs. A run in line has none, because queues hold many.
pub(super) struct Attempt {
    pub(super) stop: StopHandle,
    /// Asks what it has used up to now.
    pub(super) usage: UsageProbe,
    /// The watch over its activity.
    pub(super) watch: AttemptWatch,
    /// The task; none after it has told its end, so that its memory is free before the record is written.
    pub(super) task: Option<AgentTask>,
}

/// The task of an attempt, which ends with this value at the latest.
// A `JoinSet` would allocate for each task once more, and lock when one ends; each says by itself that it is over.
pub(super) struct AgentTask(AbortHandle);

impl AgentTask {
    #[expect(clippy::disallowed_methods, reason = "the supervisor owns the tasks of its runs")]
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work).abort_handle())
    }
}

impl Drop for AgentTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The letter box of a run.
pub(super) enum Post {
    /// Letters to a run that has not started.
    Held(ThinVec<Arc<str>>),
    /// The open box of a run that reads its letters.
    Open(LetterBox),
}

/// The receiver of the end of one piece.
#[derive(Clone)]
pub(super) struct Follower {
    pub(super) fan: FanId,
    pub(super) place: u32,
    pub(super) told: mpsc::UnboundedSender<FanEvent>,
}

impl Default for Post {
    fn default() -> Self {
        Self::Held(ThinVec::new())
    }
}

impl Post {
    pub(super) fn put(&mut self, letter: Arc<str>) {
        match self {
            Self::Held(letters) => letters.push(letter),
            Self::Open(letters) => letters.put(letter),
        }
    }

    /// The run starts: what was held for it comes first.
    pub(super) fn open(&mut self, letters: LetterBox) {
        if let Self::Held(held) = self {
            held.drain(..).for_each(|letter| letters.put(letter));
        }
        *self = Self::Open(letters);
    }
}

impl Entry {
    /// Prepares another start.
    pub(super) fn again(&mut self, continues: bool) {
        let launch =
            self.launch.as_mut().expect("a run that may be retried kept no data for another start");
        launch.continues = continues;
        (self.attempt, self.post) = (None, Post::default());
    }

    /// Prepares the next start on another runtime.
    pub(super) fn fall_back(&mut self, runtime: Arc<dyn Runtime>, model: Option<&str>) {
        let launch = self.launch.as_mut();
        let launch = launch.expect("a run that may fall back kept no data for another start");
        launch.fall_back(runtime, model);
        self.model_choice.clone_from(&launch.model_choice);
    }

    /// Sets the letters that the run reads first.
    pub(super) fn with_letters(self, letters: Vec<Arc<str>>) -> Self {
        Self { post: Post::Held(letters.into()), ..self }
    }

    pub(super) fn of(launch: Box<Prepared>, admitted: u64, follower: Option<Follower>) -> Self {
        let model_choice = launch.model_choice.clone();
        Self { launch: Some(launch), admitted, follower, model_choice, ..Self::default() }
    }
}

impl Entries {
    pub(super) fn insert(&mut self, run: RunIndex, entry: Entry) {
        if self.0.len() <= run.get() {
            self.0.resize_with(run.get() + 1, || None);
        }
        self.0[run.get()] = Some(Box::new(entry));
    }

    pub(super) fn get(&self, run: RunIndex) -> Option<&Entry> {
        self.0.get(run.get())?.as_deref()
    }

    /// Returns the attempt of a run that runs.
    pub(super) fn attempt(&self, run: RunIndex) -> Option<&Attempt> {
        self.get(run)?.attempt.as_deref()
    }

    pub(super) fn get_mut(&mut self, run: RunIndex) -> Option<&mut Entry> {
        self.0.get_mut(run.get())?.as_deref_mut()
    }

    pub(super) fn remove(&mut self, run: RunIndex) -> Option<Box<Entry>> {
        self.0.get_mut(run.get())?.take()
    }

    /// Returns the runs that meet a condition, in the order of their admission.
    pub(super) fn which(&self, holds: impl Fn(&Entry) -> bool) -> Vec<RunIndex> {
        let live = self.0.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_ref()?)));
        live.filter(|(_, entry)| holds(entry)).map(|(at, _)| RunIndex::new(at)).collect()
    }
}
