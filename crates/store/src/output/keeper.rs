//! The output of the attempts that live, on its way to the files.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use offshoot_model::{RootId, RunId, Stream, Timestamp, last_line};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::frame::{self, Frame, HEAD, Kind};
use super::slot::{SlotHead, Slots};
use super::writer::{Job, Writer};
use super::{AttemptId, OutputBounds};
use crate::DataFolder;

/// Bytes on their way to the files. What comes on top of them is dropped, and missing where the disk does not keep up.
const UNDERWAY: usize = 64 * 1024 * 1024;

/// A slot that has room for less begins no frame of a longer part.
const LEAST: usize = 128;

/// Keeps what the agents of one tree say. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("OutputKeeper({:?})", _0.root)]
pub struct OutputKeeper(pub(super) Arc<Shared>);

pub(super) struct Shared {
    folder: DataFolder,
    root: RootId,
    bounds: OutputBounds,
    slots: Slots,
    /// The thread that writes, once there is something to write.
    jobs: OnceLock<Option<Sender<Job>>>,
    attempts: AtomicU32,
    /// The attempts that have not ended.
    live: Mutex<HashMap<AttemptId, Arc<Attempt>>>,
    /// The number of times that something was said.
    said: AtomicU64,
    /// Told of it, where there is a listener.
    news: watch::Sender<()>,
    /// Bytes that are on their way to the files.
    underway: Arc<AtomicUsize>,
    /// True while the thread counts rounds: something was said that is not on its way to a file.
    counts: AtomicBool,
    /// The number of the round.
    round: AtomicU32,
}

struct Attempt {
    run: RunId,
    id: AttemptId,
    state: Mutex<State>,
}

/// The slot that is being filled.
#[derive(Debug, Default)]
struct State {
    frames: Vec<u8>,
    /// So many bytes of the frames are on their way to the file.
    handed: usize,
    number: u32,
    /// The round in which the first of the other bytes were said.
    round: u32,
    /// The bytes that were said before this slot.
    before: u64,
    /// The bytes that were said.
    total: u64,
    /// True if it has a file, or will have one.
    has_file: bool,
    /// True if something of this slot is on its way to the file.
    begun: bool,
    /// True if a part of this slot was dropped, so that nothing behind it can be written.
    dropped: bool,
    ended: bool,
}

/// The output of one attempt of a run. It ends with [`end`](Self::end); where it is dropped without, its end is missing.
#[derive(Clone, derive_more::Debug)]
#[debug("AttemptOutput({:?})", attempt.run)]
pub struct AttemptOutput {
    keeper: OutputKeeper,
    attempt: Arc<Attempt>,
}

impl OutputKeeper {
    /// A keeper for one tree. Nothing is made before something is said.
    pub fn new(folder: &DataFolder, root: RootId, bounds: OutputBounds) -> Self {
        Self(Arc::new(Shared {
            folder: folder.clone(),
            root,
            bounds,
            slots: Slots::of(bounds),
            jobs: OnceLock::new(),
            attempts: AtomicU32::new(0),
            live: Mutex::default(),
            said: AtomicU64::new(0),
            news: watch::Sender::default(),
            underway: Arc::default(),
            counts: AtomicBool::new(false),
            round: AtomicU32::new(0),
        }))
    }

    /// A new attempt of a run; none where nothing is to be kept.
    pub fn begin(&self, run: RunId, now: Timestamp) -> Option<AttemptOutput> {
        if self.0.bounds.run == 0 || self.0.bounds.tree == 0 {
            return None;
        }
        let id = AttemptId::new(now, self.0.attempts.fetch_add(1, Ordering::Relaxed));
        let attempt = Arc::new(Attempt { run, id, state: Mutex::default() });
        self.0.live.lock().insert(id, Arc::clone(&attempt));
        Some(AttemptOutput { keeper: self.clone(), attempt })
    }

    /// Returns the number of times that something was said.
    pub fn said(&self) -> u64 {
        self.0.said.load(Ordering::SeqCst)
    }

    /// Waits until something was said after the first `seen` times. Never ends where nothing more is
    /// said.
    pub async fn said_after(&self, seen: u64) {
        let mut news = self.0.news.subscribe();
        loop {
            if self.said() > seen {
                return;
            }
            news.changed().await.expect("the sender lives as long as its keeper");
        }
    }

    /// Writes what was said up to now, also of attempts that live.
    pub async fn settle(&self) {
        let live: Vec<Arc<Attempt>> = self.0.live.lock().values().cloned().collect();
        for attempt in live {
            let mut state = attempt.state.lock();
            if !state.ended {
                self.hand_over(&attempt, &mut state);
            }
        }
        if self.0.jobs.get().is_some() {
            let (done, settled) = oneshot::channel();
            self.send(Job::Settle(done));
            // An error says that the thread is gone, and with it what it had.
            let _ = settled.await;
        }
    }

    /// Sends the rest of a slot to the file.
    fn hand_over(&self, attempt: &Attempt, state: &mut State) {
        let State { frames, handed, number, before, has_file, begun, dropped, .. } = state;
        if *handed == frames.len() || *dropped {
            return;
        }
        let added = frames[*handed..].to_vec();
        let filled = u32::try_from(frames.len()).expect("a slot is small");
        let head = SlotHead { slots: self.0.slots, number: *number, filled, before: *before };
        let underway = self.0.underway.fetch_add(added.len(), Ordering::Relaxed);
        *has_file = true;
        if underway > UNDERWAY {
            self.0.underway.fetch_sub(added.len(), Ordering::Relaxed);
            *dropped = true;
            return;
        }
        (*handed, *begun) = (frames.len(), true);
        let (run, id) = (attempt.run, attempt.id);
        self.send(Job::Slot { run, attempt: id, head, added });
    }

    /// A round is over: what was said before it began, and is still not on its way to a file, is sent there. Returns true if there is
    /// more to send.
    pub(super) fn end_round(&self) -> bool {
        // What is said from here on has the thread count again.
        self.0.counts.store(false, Ordering::SeqCst);
        let round = self.0.round.fetch_add(1, Ordering::SeqCst);
        let live: Vec<Arc<Attempt>> = self.0.live.lock().values().cloned().collect();
        let mut is_more = false;
        for attempt in live {
            let mut state = attempt.state.lock();
            if !state.ended && state.handed < state.frames.len() && !state.dropped {
                match state.round < round {
                    true => self.hand_over(&attempt, &mut state),
                    false => is_more = true,
                }
            }
        }
        is_more && !self.0.counts.swap(true, Ordering::SeqCst)
    }

    /// Has the thread count rounds, if it does not.
    fn count(&self) {
        if !self.0.counts.load(Ordering::SeqCst) && !self.0.counts.swap(true, Ordering::SeqCst) {
            self.send(Job::Count);
        }
    }

    fn tell(&self) {
        self.0.said.fetch_add(1, Ordering::SeqCst);
        if self.0.news.receiver_count() > 0 {
            self.0.news.send_replace(());
        }
    }

    fn send(&self, job: Job) {
        let start = || {
            let (jobs, received) = channel();
            let Shared { folder, root, bounds, underway, .. } = &*self.0;
            let keeper = Arc::downgrade(&self.0);
            let writer = Writer::new(folder.clone(), *root, *bounds, Arc::clone(underway), keeper);
            let thread = std::thread::Builder::new().name("offshoot-output".to_owned());
            match thread.spawn(move || writer.run(&received)) {
                Ok(_) => Some(jobs),
                Err(error) => {
                    tracing::warn!(%error, "no thread to keep what agents say");
                    None
                }
            }
        };
        if let Some(jobs) = self.0.jobs.get_or_init(start) {
            // The thread ends with its last sender.
            let _ = jobs.send(job);
        }
    }
}

impl AttemptOutput {
    /// Keeps what was said, without waiting.
    pub fn said(&self, at: Timestamp, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (keeper, attempt) = (&self.keeper, &*self.attempt);
        let mut state = attempt.state.lock();
        if state.ended {
            return;
        }
        if state.handed == state.frames.len() {
            state.round = keeper.0.round.load(Ordering::SeqCst);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            self.make_room(&mut state, rest.len().min(LEAST));
            let room = keeper.0.slots.room() - state.frames.len() - HEAD;
            let (part, later) = rest.split_at(rest.len().min(room));
            frame::push(&mut state.frames, Kind::Said(stream), at, part);
            state.total += part.len() as u64;
            rest = later;
        }
        drop(state);
        keeper.count();
        keeper.tell();
    }

    /// The last line that was said, of what was not said long ago. Where both streams said something at about the same time it is not
    /// known which came last: then it is that of standard output, and behind it that of standard error.
    pub fn last_words(&self) -> Option<String> {
        let state = self.attempt.state.lock();
        last_words(&state.frames, state.before > 0)
    }

    /// The attempt is over. What is said after that is not kept.
    pub fn end(&self, at: Timestamp) {
        let (keeper, attempt) = (&self.keeper, &*self.attempt);
        let mut state = attempt.state.lock();
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        keeper.0.live.lock().remove(&attempt.id);
        if state.total == 0 {
            return;
        }
        let total = state.total.to_le_bytes();
        self.make_room(&mut state, total.len());
        frame::push(&mut state.frames, Kind::End, at, &total);
        if state.has_file {
            keeper.hand_over(attempt, &mut state);
        }
        let frames = std::mem::take(&mut state.frames);
        let (run, id, total) = (attempt.run, attempt.id, state.total);
        let frames = if state.has_file { None } else { Some(frames) };
        keeper.0.underway.fetch_add(frames.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
        keeper.send(Job::Ended { run, attempt: id, at, total, frames });
    }

    /// Begins another slot where this one has no room for a frame.
    fn make_room(&self, state: &mut State, bytes: usize) {
        if state.frames.len() + HEAD + bytes > self.keeper.0.slots.room() {
            self.keeper.hand_over(&self.attempt, state);
            state.frames.clear();
            state.number = state.number.saturating_add(u32::from(state.begun));
            (state.handed, state.before) = (0, state.total);
            (state.begun, state.dropped) = (false, false);
        }
    }
}

/// Returns the last line of these frames, see [`AttemptOutput::last_words`].
fn last_words(mut frames: &[u8], is_cut: bool) -> Option<String> {
    /// The two streams of a program come by two ways, and are read one after the other.
    const TOGETHER: Duration = Duration::from_secs(1);
    let mut said: [(Timestamp, Vec<u8>); 2] = Default::default();
    while let Some(Frame { kind, at, bytes }) = frame::take(&mut frames) {
        if let Kind::Said(stream) = kind {
            let (last, text) = &mut said[stream as usize];
            if !bytes.trim_ascii().is_empty() {
                *last = at;
            }
            text.extend_from_slice(bytes);
        }
    }
    let [out, error] = said.map(|(at, text)| {
        let text = String::from_utf8_lossy(&text);
        // The beginning of the first line may stand in the slot before.
        let beginning = if is_cut && !text.trim_end().contains('\n') { "… " } else { "" };
        last_line(&text).map(|line| (at, format!("{beginning}{line}")))
    });
    match (out, error) {
        (Some((at, out)), Some((later, error))) => {
            if at.since(later).max(later.since(at)) <= TOGETHER {
                Some(format!("{out}; on standard error: {error}"))
            } else {
                Some(if at > later { out } else { error })
            }
        }
        (out, error) => out.or(error).map(|(_, line)| line),
    }
}
