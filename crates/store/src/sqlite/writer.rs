//! The one thread that writes.
//!
//! ```text
//!  append ─┐
//!  append ─┼─▶ queue ─▶ everything that waits ─▶ one transaction, one flush ─▶ every caller is answered
//!  append ─┘              while it is flushed, or none is urgent, the next ones gather
//! ```
//!
//! A transaction that fails is rolled back, its callers are told why, and the thread goes on with the next: a disk that
//! has space again is used again. What followed the lost events in their tree is refused until they have been appended
//! again, because each event must follow the last recorded one. So the record of a tree never has a gap, and nothing in
//! here has to remember what was lost.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use offshoot_model::{Event, error_chain};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::heads::Heads;
use super::identity;
use super::queue::{COMMIT_DELAY, Queue, Request, now};
use super::row::Row;
use super::schema;
use crate::error::Doing;
use crate::{Commit, DataFolder, StoreError, Urgency};

/// Events that may wait for the disk. The queue has no bound of its own, because `append` must neither block nor lose the
/// order of calls; this bound only keeps a disk that hangs from eating the memory. It is not meant to be met: who appends
/// also waits for the answer before it goes on, so what waits is bounded by what runs. A million events are some ten
/// seconds of writing and a few hundred megabytes. One more is refused with [`StoreError::Overloaded`], like any write that
/// failed.
const QUEUE_EVENTS: usize = 1 << 20;

/// Events in one transaction, unless a single append has more: by then the flush is paid for, and no caller should wait
/// longer for the rows of others.
const TRANSACTION_EVENTS: usize = 16 << 10;

/// A transaction that takes longer than this is a warning: what waits for the record is held up by it.
const SLOW: Duration = Duration::from_secs(1);

/// The handle to the thread. Dropped, it waits until everything that was queued has been written and answered.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Events that were taken and not answered yet.
    waiting: AtomicUsize,
    /// Transactions that were committed.
    commits: AtomicU64,
}

/// The state that the thread owns.
struct Record {
    path: PathBuf,
    folder: DataFolder,
    connection: Option<Connection>,
    counts: Arc<Counts>,
    queue: Arc<Queue>,
}

impl Writer {
    /// Starts the thread. It opens its connection when the first events come.
    pub(super) fn start(folder: &DataFolder) -> Result<Self, StoreError> {
        let path = folder.database();
        let queue = Arc::<Queue>::default();
        let counts = Arc::<Counts>::default();
        let mut record = Record {
            path: path.clone(),
            folder: folder.clone(),
            connection: None,
            counts: Arc::clone(&counts),
            queue: Arc::clone(&queue),
        };
        let thread = std::thread::Builder::new()
            .name("offshoot-record".to_owned())
            .spawn(move || record.run())
            .doing("start a thread to write", &path)?;
        Ok(Self { queue, counts, thread: Some(thread) })
    }

    /// Queues events.
    pub(super) fn append<'a>(
        &self,
        events: impl IntoIterator<Item = &'a Event>,
        urgency: Urgency,
    ) -> Commit {
        let rows = events.into_iter().map(Row::new).collect::<Result<Vec<_>, _>>();
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return Commit::ready(Err(error)),
        };
        let waiting = self.counts.waiting.fetch_add(rows.len(), Ordering::Relaxed);
        // However large it is, a first one is taken.
        if waiting > 0 && waiting + rows.len() > QUEUE_EVENTS {
            self.counts.waiting.fetch_sub(rows.len(), Ordering::Relaxed);
            return Commit::ready(Err(StoreError::Overloaded { waiting }));
        }
        let patience = match urgency {
            Urgency::Now => None,
            Urgency::Soon => Some(COMMIT_DELAY),
        };
        let (request, commit) = Request::new(rows, patience);
        match self.queue.push(request) {
            true => Commit::waiting(commit),
            false => Commit::ready(Err(StoreError::Closed)),
        }
    }

    pub(super) fn commits(&self) -> u64 {
        self.counts.commits.load(Ordering::Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has said so, and its callers were told that it is closed.
            let _ = thread.join();
        }
    }
}

/// Answers all requests, however the thread ends.
impl Drop for Record {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

impl Record {
    fn run(&mut self) {
        while let Some(group) = self.queue.take(TRANSACTION_EVENTS) {
            let events: usize = group.iter().map(|request| request.rows.len()).sum();
            let began = now();
            let written = self.transact(&group);
            let (requests, took) = (group.len(), began.elapsed());
            let ms = took.as_millis() as u64;
            match &written {
                Ok(_) if took >= SLOW => tracing::warn!(requests, events, ms, "slow write"),
                Ok(_) => tracing::debug!(requests, events, ms, "events written"),
                Err(error) => {
                    let error = error_chain(error);
                    tracing::error!(requests, events, ms, error, "events not written");
                }
            }
            let answers = written.unwrap_or_else(|error| {
                // With the connection goes whatever the failure left in it.
                self.connection = None;
                vec![Err(error); group.len()]
            });
            self.counts.waiting.fetch_sub(events, Ordering::Relaxed);
            for (request, answer) in group.into_iter().zip(answers) {
                // An error says that the caller no longer waits.
                let _ = request.answer.send(answer);
            }
        }
        if let Some(connection) = &self.connection {
            // Writes down how far the record has come. Where that fails, the next start does it.
            let _ = identity::check(connection, &self.folder);
        }
    }

    /// Writes what can be written of a group and commits it; one answer for each request.
    fn transact(&mut self, group: &[Request]) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(schema::writer(&self.path)?),
        };
        let _turn = self.folder.turn()?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .doing("write", &self.path)?;
        let answers = write(&transaction, group).doing("write", &self.path)?;
        transaction.commit().doing("write", &self.path)?;
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        Ok(answers)
    }
}

fn write(
    transaction: &Transaction<'_>,
    group: &[Request],
) -> rusqlite::Result<Vec<Result<(), StoreError>>> {
    let mut heads = Heads::new(transaction)?;
    let answers =
        group.iter().map(|request| heads.write(&request.rows)).collect::<rusqlite::Result<_>>()?;
    heads.store()?;
    transaction.execute(identity::COUNT, ())?;
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use offshoot_model::{EventKind, RootId, RunId, Timestamp};

    use super::*;
    use crate::SqliteStore;

    fn event(seq: u64) -> Event {
        let run = RunId::from_bytes([7; 16]);
        let root = RootId::new(run);
        Event { root, seq, at: Timestamp::EPOCH, run, kind: EventKind::Starting }
    }

    #[test]
    fn a_disk_that_hangs_does_not_eat_the_memory() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(home.path()).unwrap();
        drop(SqliteStore::open(&folder).unwrap());
        let writer = Writer::start(&folder).unwrap();
        writer.counts.waiting.store(QUEUE_EVENTS, Ordering::Relaxed);
        let refused = writer.append(&[event(1)], Urgency::Now).wait();
        assert!(
            matches!(refused, Err(StoreError::Overloaded { waiting: QUEUE_EVENTS })),
            "{refused:?}"
        );
        // The refused request did not count, and a later one is taken.
        assert_eq!(writer.counts.waiting.swap(QUEUE_EVENTS - 2, Ordering::Relaxed), QUEUE_EVENTS);
        writer.append(&[event(1), event(2)], Urgency::Now).wait().unwrap();
        assert_eq!(writer.counts.waiting.load(Ordering::Relaxed), QUEUE_EVENTS - 2);
    }
}
