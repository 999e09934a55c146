//! Proving a record.

use offshoot_model::RootId;
use rusqlite::{Connection, OptionalExtension};

use super::column::RunColumn;
use super::row::{self, Digest, Link};
use crate::StoreError;

/// Recomputes every link of a tree's chain; the number of events, or the first one that does not fit.
pub(super) fn record(
    connection: &Connection,
    root: RootId,
) -> rusqlite::Result<Result<u64, StoreError>> {
    // One view of both tables: the record may grow meanwhile.
    let view = connection.unchecked_transaction()?;
    let head: Option<(i64, u64, Link)> = view
        .prepare_cached("SELECT number, last_seq, chain FROM roots WHERE root = ?1")?
        .query_row([RunColumn(root.run())], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((number, last, head)) = head else { return Ok(Ok(0)) };
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
        true => Ok(Ok(proven)),
        false => Ok(Err(StoreError::Tampered { root, seq: proven + 1 })),
    }
}
