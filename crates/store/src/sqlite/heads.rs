//! Where the record of each tree ends, within one transaction.
//!
//! Read from the tables each time: another process may have written since, and one look-up is nothing beside a flush.

use std::collections::HashMap;

use offshoot_model::{Event, EventKind, RootId};
use rusqlite::{CachedStatement, OptionalExtension, Transaction, params};

use super::row::{Link, RunColumn, TimeColumn, body};
use crate::StoreError;
use crate::order::check_order;

/// The ends of the trees that a transaction writes to.
pub(super) struct Heads<'a> {
    transaction: &'a Transaction<'a>,
    insert: CachedStatement<'a>,
    heads: HashMap<RootId, Head>,
}

/// Where one record ends.
struct Head {
    /// The tree's number in the tables; none before its first event.
    number: Option<i64>,
    last: u64,
    link: Link,
    ended: bool,
}

impl<'a> Heads<'a> {
    pub(super) fn new(transaction: &'a Transaction<'a>) -> rusqlite::Result<Self> {
        let insert = transaction.prepare_cached(
            "INSERT INTO events (root, seq, run, at, kind, key, body, chain)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        Ok(Self { transaction, insert, heads: HashMap::new() })
    }

    /// Writes the events of one call, or none of them. The outer error is the end of the transaction, the inner one
    /// of this call alone.
    pub(super) fn write(&mut self, events: &[Event]) -> rusqlite::Result<Result<(), StoreError>> {
        for event in events {
            if !self.heads.contains_key(&event.root) {
                self.heads.insert(event.root, load(self.transaction, event.root)?);
            }
        }
        let bodies = check_order(events, |root| self.heads[&root].last)
            .and_then(|()| events.iter().map(body).collect::<Result<Vec<_>, _>>());
        match bodies {
            Ok(bodies) => self.insert(events, &bodies).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Writes down where the records end now.
    pub(super) fn store(&self) -> rusqlite::Result<()> {
        let mut update = self.transaction.prepare_cached(
            "UPDATE roots SET last_seq = ?2, chain = ?3, ended = ?4 WHERE number = ?1",
        )?;
        // One without a number was only looked for.
        for head in self.heads.values().filter(|head| head.number.is_some()) {
            update.execute(params![head.number, head.last, head.link, head.ended])?;
        }
        Ok(())
    }

    fn insert(&mut self, events: &[Event], bodies: &[String]) -> rusqlite::Result<()> {
        for (event, body) in events.iter().zip(bodies) {
            let head = self.heads.get_mut(&event.root).expect("loaded before the check");
            let number = match head.number {
                Some(number) => number,
                None => *head.number.insert(open(self.transaction, event)?),
            };
            head.last = event.seq;
            head.link = head.link.next(event, body);
            head.ended |=
                event.run == event.root.run() && matches!(event.kind, EventKind::Ended(_));
            self.insert.execute(params![
                number,
                event.seq,
                RunColumn(event.run),
                TimeColumn(event.at),
                event.kind.name(),
                key(event),
                body,
                head.link,
            ])?;
        }
        Ok(())
    }
}

fn load(transaction: &Transaction<'_>, root: RootId) -> rusqlite::Result<Head> {
    let recorded = transaction
        .prepare_cached("SELECT number, last_seq, chain, ended FROM roots WHERE root = ?1")?
        .query_row([RunColumn(root.run())], |row| {
            Ok(Head {
                number: Some(row.get(0)?),
                last: row.get(1)?,
                link: row.get(2)?,
                ended: row.get(3)?,
            })
        })
        .optional()?;
    Ok(recorded.unwrap_or(Head { number: None, last: 0, link: Link::START, ended: false }))
}

/// Gives a tree its number. The rest of the line is written when the transaction knows it.
fn open(transaction: &Transaction<'_>, first: &Event) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "INSERT INTO roots (root, key, opened_at, last_seq, chain, ended)
             VALUES (?1, ?2, ?3, 0, x'', 0)",
        )?
        .insert(params![RunColumn(first.root.run()), key(first), TimeColumn(first.at)])
}

fn key(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::Admitted(admitted) => Some(admitted.key.as_str()),
        _ => None,
    }
}
