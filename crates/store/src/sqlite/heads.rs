//! The ends of the records of all trees, within one transaction.
//!
//! Read from the tables each time: another process may have written since, and one look-up is nothing beside a flush.

use std::collections::HashMap;

use offshoot_model::{RootId, SessionKey, Timestamp};
use rusqlite::{CachedStatement, OptionalExtension, Transaction, params};

use super::column::{RunColumn, TimeColumn};
use super::row::{Link, Row};
use crate::StoreError;
use crate::order::check_order;

/// The ends of the trees that a transaction writes to.
pub(super) struct Heads<'a> {
    transaction: &'a Transaction<'a>,
    insert: CachedStatement<'a>,
    heads: HashMap<RootId, Head>,
}

/// The end of one record.
struct Head {
    /// The tree's number in the tables; none before its first event.
    number: Option<i64>,
    last: u64,
    last_at: Timestamp,
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

    /// Writes the rows of one call, or none of them. The outer error is the end of the transaction, the inner one
    /// of this call alone.
    pub(super) fn write(&mut self, rows: &[Row]) -> rusqlite::Result<Result<(), StoreError>> {
        for row in rows {
            if !self.heads.contains_key(&row.place.root) {
                self.heads.insert(row.place.root, load(self.transaction, row.place.root)?);
            }
        }
        let order = rows.iter().map(|row| (row.place.root, row.place.seq));
        match check_order(order, |root| self.heads[&root].last) {
            Ok(()) => rows.iter().try_for_each(|row| self.insert(row)).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Writes down where the records end now.
    pub(super) fn store(&self) -> rusqlite::Result<()> {
        let mut update = self.transaction.prepare_cached(
            "UPDATE roots SET last_seq = ?2, chain = ?3, ended = ?4, last_at = ?5 WHERE number = ?1",
        )?;
        // One without a number was only looked for.
        for head in self.heads.values().filter(|head| head.number.is_some()) {
            let last_at = TimeColumn(head.last_at);
            update.execute(params![head.number, head.last, head.link, head.ended, last_at])?;
        }
        Ok(())
    }

    fn insert(&mut self, row: &Row) -> rusqlite::Result<()> {
        let head = self.heads.get_mut(&row.place.root).expect("loaded before the check");
        let number = match head.number {
            Some(number) => number,
            None => *head.number.insert(open(self.transaction, row)?),
        };
        head.last = row.place.seq;
        head.last_at = row.place.at;
        head.link = head.link.next(&row.digest);
        head.ended = row.ends.unwrap_or(head.ended);
        self.insert.execute(params![
            number,
            row.place.seq,
            RunColumn(row.place.run),
            TimeColumn(row.place.at),
            row.kind,
            row.key.as_ref().map(SessionKey::as_str),
            row.body,
            head.link,
        ])?;
        Ok(())
    }
}

fn load(transaction: &Transaction<'_>, root: RootId) -> rusqlite::Result<Head> {
    let recorded = transaction
        .prepare_cached(
            "SELECT number, last_seq, chain, ended, last_at FROM roots WHERE root = ?1",
        )?
        .query_row([RunColumn(root.run())], |row| {
            Ok(Head {
                number: Some(row.get(0)?),
                last: row.get(1)?,
                link: row.get(2)?,
                ended: row.get(3)?,
                last_at: row.get::<_, TimeColumn>(4)?.0,
            })
        })
        .optional()?;
    Ok(recorded.unwrap_or(Head {
        number: None,
        last: 0,
        last_at: Timestamp::EPOCH,
        link: Link::START,
        ended: false,
    }))
}

/// Gives a tree its number. The rest of the line is written when the transaction knows it.
fn open(transaction: &Transaction<'_>, first: &Row) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "INSERT INTO roots (root, key, opened_at, last_seq, chain, ended)
             VALUES (?1, ?2, ?3, 0, x'', 0)",
        )?
        .insert(params![
            RunColumn(first.place.root.run()),
            first.key.as_ref().map(SessionKey::as_str),
            TimeColumn(first.place.at),
        ])
}
