//! The rows of a record, inserted without anything around them.

use std::borrow::Cow;
use std::path::Path;

use offshoot_model::{Event, EventKind};
use rusqlite::{Connection, params};

use crate::Result;
use crate::comparison::timed;

/// The moment at which the text of the rows and the chain of their hashes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// Before the time is taken. The hashes are zero.
    Before,
    /// Between the inserts.
    Meanwhile,
}

/// Inserts the events in so many transactions, each flushed to the disk, into a table like that of the record. Answers
/// the seconds it took.
pub(crate) fn bare(folder: &Path, events: &[Event], transactions: u64, made: Made) -> Result<f64> {
    let mut connection = Connection::open(folder.join("bare.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // As the record is tuned, so that it is not its tuning that is measured.
    connection.pragma_update(None, "wal_autocheckpoint", 4096)?;
    connection.execute_batch(
        "CREATE TABLE events (
             root INTEGER NOT NULL, seq INTEGER NOT NULL, run BLOB NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL,
             key TEXT, body TEXT NOT NULL, chain BLOB NOT NULL, PRIMARY KEY (root, seq)
         ) WITHOUT ROWID;
         CREATE INDEX sessions ON events (key) WHERE key IS NOT NULL;
         CREATE INDEX milestones ON events (run, kind) WHERE kind IN ('admitted', 'ended');",
    )?;
    let mut rows: Vec<(&Event, Option<String>)> = Vec::with_capacity(events.len());
    for event in events {
        let before = made == Made::Before;
        rows.push((event, before.then(|| serde_json::to_string(&event.kind)).transpose()?));
    }
    let mut chain = [0; blake3::OUT_LEN];
    let group = rows.len().div_ceil(transactions.max(1) as usize).max(1);
    let (seconds, ()) = timed(|| {
        for group in rows.chunks(group) {
            let transaction = connection.transaction()?;
            let mut insert = transaction
                .prepare_cached("INSERT INTO events VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
            for (event, body) in group {
                let key = match &event.kind {
                    EventKind::Admitted(admitted) => Some(admitted.key.as_str()),
                    _ => None,
                };
                let (seq, at) = (event.seq as i64, event.at.as_micros() as i64);
                let (run, kind) = (event.run.as_bytes(), event.kind.name());
                let body = match body {
                    Some(body) => Cow::Borrowed(body),
                    None => {
                        let body = serde_json::to_string(&event.kind)?;
                        let row =
                            blake3::Hasher::new().update(&chain).update(body.as_bytes()).finalize();
                        chain = row.into();
                        Cow::Owned(body)
                    }
                };
                insert.execute(params![seq, run, at, kind, key, body, chain])?;
            }
            drop(insert);
            transaction.commit()?;
        }
        Ok(())
    })?;
    Ok(seconds)
}
