//! Proving a record.

use offshoot_model::{ContentHash, RootId};
use rusqlite::{Connection, OptionalExtension};

use super::column::RunColumn;
use super::row::{self, Digest, Link};
use crate::StoreError;

/// What a hash chain proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How many events.
    pub events: u64,
    /// The last link. Whoever keeps it elsewhere can tell later that these events are still the same.
    pub link: ContentHash,
}

/// Recomputes every link of a tree's chain; what it proves, or the first event that does not fit.
pub(super) fn record(
    connection: &Connection,
    root: RootId,
) -> rusqlite::Result<Result<Proof, StoreError>> {
    // One view of both tables: the record may grow meanwhile.
    let view = connection.unchecked_transaction()?;
    let head: Option<(i64, u64, Link)> = view
        .prepare_cached("SELECT number, last_seq, chain FROM roots WHERE root = ?1")?
        .query_row([RunColumn(root.run())], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((number, last, head)) = head else { return Ok(Ok(Link::START.proof(0))) };
    let mut select = view.prepare_cached(
        "SELECT seq, run, at, body, kind, chain FROM events WHERE root = ?1 ORDER BY seq",
    )?;
    let mut rows = select.query([number])?;
    let (mut proven, mut link) = (0, Link::START);
    while let Some(row) = rows.next()? {
        let tampered = StoreError::Tampered { root, seq: proven + 1 };
        let event = match row::event(root, row)? {
            Ok(event) => event,
            Err(error) => return Ok(Err(error)),
        };
        link = link.next(&Digest::of(&event, row.get_ref(3)?.as_str()?));
        // The kind is written twice, so that it can be searched: the text is what counts.
        let kind_fits = row.get_ref(4)?.as_str()? == event.kind.name();
        if event.seq != proven + 1 || link != row.get(5)? || !kind_fits {
            return Ok(Err(tampered));
        }
        proven = event.seq;
    }
    match proven == last && link == head {
        true => Ok(Ok(link.proof(proven))),
        false => Ok(Err(StoreError::Tampered { root, seq: proven + 1 })),
    }
}

impl Link {
    fn proof(self, events: u64) -> Proof {
        Proof { events, link: self.hash() }
    }
}
