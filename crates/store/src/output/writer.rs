//! The thread that writes what agents say into its files.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use offshoot_model::{RootId, RunId, Timestamp};
use tokio::sync::oneshot;

use super::frame::{self, HEAD, Kind};
use super::keeper::{OutputKeeper, Shared};
use super::slot::{EntryHead, SlotHead};
use super::{AttemptId, OUTPUT, OutputBounds, SMALL};
use crate::DataFolder;
use crate::below::Below;

/// The length of a round: bytes that were said are on their way to a file after two at the latest, and after `kill -9` no more is missing.
const ROUND: Duration = Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "a thread that waits for jobs no longer than this")]
fn now() -> Instant {
    Instant::now()
}

/// Entries up to this size are gathered before they are written.
const GATHERED: usize = 256 * 1024;

/// One thing to write.
pub(super) enum Job {
    /// More of a slot.
    Slot { run: RunId, attempt: AttemptId, head: SlotHead, added: Vec<u8> },
    /// The end of an attempt, with all that it said where it has no file.
    Ended { run: RunId, attempt: AttemptId, at: Timestamp, total: u64, frames: Option<Vec<u8>> },
    /// Rounds are to be counted.
    Count,
    /// Answered once all that came before is written.
    Settle(oneshot::Sender<()>),
}

pub(super) struct Writer {
    folder: DataFolder,
    root: RootId,
    bounds: OutputBounds,
    underway: Arc<AtomicUsize>,
    /// The folder of the tree, once something was written.
    place: Option<Below>,
    /// The file of those that say little.
    small: Option<File>,
    /// Entries that are not written yet.
    gathered: Vec<u8>,
    /// The bytes that are kept of the tree.
    used: u64,
    /// Attempts with a file of which something was not written.
    cut: HashSet<AttemptId>,
    /// True once it was logged that nothing can be written.
    failed: bool,
    /// The attempts that live; the thread ends with them.
    keeper: Weak<Shared>,
    /// The end of the round, while rounds are counted.
    round_ends: Option<Instant>,
}

impl Writer {
    pub(super) fn new(
        folder: DataFolder,
        root: RootId,
        bounds: OutputBounds,
        underway: Arc<AtomicUsize>,
        keeper: Weak<Shared>,
    ) -> Self {
        Self {
            folder,
            root,
            bounds,
            underway,
            place: None,
            small: None,
            gathered: Vec::new(),
            used: 0,
            cut: HashSet::new(),
            failed: false,
            keeper,
            round_ends: None,
        }
    }

    /// Runs until the last sender is gone.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        while let Some(job) = self.next(jobs) {
            self.take(job);
            // Many runs that end at once are one write.
            while self.gathered.len() < GATHERED
                && self.round_ends.is_none_or(|ends| now() < ends)
                && let Ok(job) = jobs.try_recv()
            {
                self.take(job);
            }
            self.write_gathered();
        }
    }

    /// The next job; none once the last sender is gone.
    fn next(&mut self, jobs: &Receiver<Job>) -> Option<Job> {
        loop {
            let Some(ends) = self.round_ends else { return jobs.recv().ok() };
            // However many jobs there are, a round ends.
            if now() >= ends {
                let keeper = self.keeper.upgrade().map(OutputKeeper);
                let goes_on = keeper.is_some_and(|keeper| keeper.end_round());
                self.round_ends = goes_on.then(|| now() + ROUND);
                continue;
            }
            match jobs.recv_timeout(ends.saturating_duration_since(now())) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Slot { run, attempt, head, added } => {
                self.underway.fetch_sub(added.len(), Ordering::Relaxed);
                if !self.cut.contains(&attempt) && !self.slot(run, attempt, head, &added) {
                    self.cut.insert(attempt);
                }
            }
            Job::Ended { run, attempt, at, total, frames } => {
                self.underway.fetch_sub(frames.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
                let was_cut = self.cut.remove(&attempt);
                match frames {
                    Some(frames) if self.has_room(frames.len()) => {
                        self.entry(run, attempt, &frames)
                    }
                    None if !was_cut => {}
                    // That it said something is kept beyond the bound: the entry says how much is missing.
                    Some(_) | None => {
                        let mut end = Vec::with_capacity(HEAD + size_of::<u64>());
                        frame::push(&mut end, Kind::End, at, &total.to_le_bytes());
                        self.entry(run, attempt, &end);
                    }
                }
            }
            Job::Count => drop(self.round_ends.get_or_insert_with(|| now() + ROUND)),
            Job::Settle(done) => {
                self.write_gathered();
                // No receiver waits any more.
                let _ = done.send(());
            }
        }
    }

    /// Writes more of a slot; false where it is not kept.
    fn slot(&mut self, run: RunId, attempt: AttemptId, head: SlotHead, added: &[u8]) -> bool {
        let is_new = head.number < head.slots.all;
        if is_new && !self.has_room(added.len()) {
            return false;
        }
        let place = head.slots.place(head.number);
        let from = head.filled as usize - added.len();
        let write = |folder: &Below| {
            let file = folder.open_or_make(&format!("{run}-{attempt}"))?;
            if from == 0 {
                // A reader must not take the frames of the slot that was here for those of this one.
                file.write_all_at(&SlotHead { filled: 0, ..head }.encode(), place)?;
            }
            file.write_all_at(added, place + (SlotHead::BYTES + from) as u64)?;
            file.write_all_at(&head.encode(), place)
        };
        let written = self.place().and_then(|folder| write(&folder));
        self.used += if is_new { added.len() as u64 } else { 0 };
        self.is_well(written)
    }

    fn entry(&mut self, run: RunId, attempt: AttemptId, frames: &[u8]) {
        let filled = u32::try_from(frames.len()).expect("an entry is smaller than a slot");
        self.gathered.extend_from_slice(&EntryHead { run, attempt, filled }.encode());
        self.gathered.extend_from_slice(frames);
        self.used += frames.len() as u64;
    }

    fn write_gathered(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        let gathered = std::mem::take(&mut self.gathered);
        let written = self.small().and_then(|mut file| file.write_all(&gathered));
        if !self.is_well(written) {
            // Half an entry ends what can be read of a file: the next one goes into another.
            self.small = None;
        }
        self.gathered = gathered;
        self.gathered.clear();
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        // Looked at once: a tree that is taken over may have said much before.
        let _ = self.place();
        self.used + bytes as u64 <= self.bounds.tree
    }

    /// The folder of the tree, made where it is missing.
    fn place(&mut self) -> io::Result<Below> {
        if let Some(place) = &self.place {
            return Ok(place.clone());
        }
        let name = format!("{OUTPUT}/{}", self.root);
        let place = self.folder.below.make_folder(name)?;
        self.used += place.entries()?.iter().map(|(_, there)| there.length()).sum::<u64>();
        Ok(self.place.insert(place).clone())
    }

    fn small(&mut self) -> io::Result<&File> {
        let place = self.place()?;
        if self.small.is_none() {
            let count = place.entries()?.len();
            // A supervisor that had the tree before may have left half an entry: each has files of its own.
            let mut at = count;
            let file = loop {
                match place.create_new(&format!("{SMALL}{at:08}")) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => at += 1,
                    made => break made?,
                }
            };
            self.small = Some(file);
        }
        Ok(self.small.as_ref().expect("it is open by now"))
    }

    fn is_well(&mut self, written: io::Result<()>) -> bool {
        let Err(error) = written else { return true };
        if !std::mem::replace(&mut self.failed, true) {
            tracing::warn!(%error, "what agents say cannot be kept");
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_round_ends_however_many_jobs_there_are() {
        let folder = DataFolder::temporary().expect("the system has room for a folder");
        let root = RootId::new(RunId::from_bytes([1; 16]));
        let bounds = OutputBounds { run: 1 << 20, tree: 1 << 20 };
        let mut writer = Writer::new(folder, root, bounds, Arc::default(), Weak::new());
        writer.round_ends = Some(now());
        let (jobs, received) = channel();
        (0..2).for_each(|_| jobs.send(Job::Count).expect("it is received"));
        assert!(writer.next(&received).is_some());
        assert_eq!(writer.round_ends, None, "nothing waits for another round");
    }
}
