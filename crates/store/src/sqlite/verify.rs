//! Proving a record.

use offshoot_model::{ContentHash, EventKind, RootId};
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
    let number: Option<i64> = view
        .prepare_cached("SELECT number FROM roots WHERE root = ?1")?
        .query_row([RunColumn(root.run())], |row| row.get(0))
        .optional()?;
    let Some(number) = number else { return Ok(Ok(Link::START.proof(0))) };
    // It was found by an index, which is a copy: this is the line itself.
    let (last, head, named): (u64, Link, RunColumn) = view
        .prepare_cached("SELECT last_seq, chain, root FROM roots WHERE number = ?1")?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if named.0 != root.run() {
        return Ok(Err(StoreError::Tampered { root, seq: 1 }));
    }
    let mut select = view.prepare_cached(
        "SELECT seq, run, at, body, kind, chain, key, root FROM events WHERE root = ?1 ORDER BY seq",
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
        // Kind and key are written twice, so that they can be searched: the text is what counts.
        let kind_fits = row.get_ref(4)?.as_str_or_null().ok().flatten() == Some(event.kind.name());
        let key = match &event.kind {
            EventKind::Admitted(admitted) => Some(admitted.key.as_str()),
            _ => None,
        };
        let key_fits = row.get_ref(6)?.as_str_or_null().is_ok_and(|found| found == key);
        let root_fits = row.get(7).is_ok_and(|found: i64| found == number);
        let link_fits = row.get(5).is_ok_and(|found: Link| found == link);
        if event.seq != proven + 1 || !link_fits || !kind_fits || !key_fits || !root_fits {
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
