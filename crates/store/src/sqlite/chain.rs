//! Reading the rows of a tree along its hash chain.

use std::sync::Arc;

use offshoot_model::{ContentHash, Event, RootId, SessionKey, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};

use super::column::{RunColumn, TimeColumn};
use super::row::{self, Digest, Link};
use crate::StoreError;
use crate::page::{Page, Place, Stored, key_of};

/// The columns that [`Chain::read`] reads, in this order.
pub(super) const COLUMNS: &str = "events.seq, events.run, events.at, events.body, events.kind, events.key, events.chain, events.root";

/// The result of proving a hash chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The number of events.
    pub events: u64,
    /// The last link. A copy of it that is kept elsewhere shows later whether these events are still the same.
    pub link: ContentHash,
}

/// The end of a tree's chain, as its line says it; nothing is proven by that alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// The tree.
    pub root: RootId,
    /// The number of events of the tree.
    pub events: u64,
    /// The link of the last one.
    pub link: ContentHash,
}

/// The state of reading the chain of one tree.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    root: RootId,
    /// The number of the tree in the tables.
    pub(super) number: i64,
    /// The number of the last event.
    pub(super) seq: u64,
    /// The link of the last event; none where its row is not there to be asked.
    link: Option<Link>,
    last_at: Option<Timestamp>,
    /// The time and the key of the tree by its first event; none where the reading began after that event.
    opening: Option<(Timestamp, Option<SessionKey>)>,
    /// True if the root was over when the last event was read; none where the reading began after the first event.
    ended: Option<bool>,
}

impl Chain {
    /// The chain of a tree, from its beginning.
    pub(super) const fn start(root: RootId, number: i64) -> Self {
        Self {
            root,
            number,
            seq: 0,
            link: Some(Link::START),
            last_at: None,
            opening: None,
            ended: Some(false),
        }
    }

    /// The chain of a tree, from the event after the one numbered `seq`.
    pub(super) fn after(
        connection: &Connection,
        root: RootId,
        number: i64,
        seq: u64,
    ) -> rusqlite::Result<Self> {
        if seq == 0 {
            return Ok(Self::start(root, number));
        }
        let link: Option<Link> = connection
            .prepare_cached("SELECT chain FROM events WHERE root = ?1 AND seq = ?2")?
            .query_row((number, seq.cast_signed()), |row| Ok(row.get(0).ok()))
            .optional()?
            .flatten();
        Ok(Self::before(root, number, seq + 1, link))
    }

    /// The chain of a tree, from the event numbered `seq`; with the link of the event before it, where that is known.
    pub(super) fn before(root: RootId, number: i64, seq: u64, link: Option<Link>) -> Self {
        match seq {
            0 | 1 => Self::start(root, number),
            _ => {
                let seq = seq - 1;
                Self { root, number, seq, link, last_at: None, opening: None, ended: None }
            }
        }
    }

    /// Reads the next row of [`COLUMNS`] into a page: its event, or why it is not what was recorded. After an error the chain goes
    /// on from what the row says, so that one change is one error.
    pub(super) fn read(&mut self, row: &Row<'_>, into: &mut Page) -> rusqlite::Result<()> {
        let (root, expected) = (self.root, self.seq + 1);
        let seq: u64 = row.get(0)?;
        let stored: Option<Link> = row.get(6).ok();
        let digest = digest(root, seq, row);
        let linked = self.link.zip(digest).map(|(link, digest)| link.next(&digest));
        let holds = match self.link {
            Some(_) => linked.is_some() && linked == stored,
            None => stored.is_some(),
        };
        (self.seq, self.link) = (seq, stored);
        self.last_at = row.get(2).ok().map(|TimeColumn(at)| at);
        let stored = match row::stored(root, seq, row) {
            Ok(stored) => stored,
            // A row that is damaged is an error in its place, and the next one is read all the same.
            Err(error) => {
                into.push(Err(StoreError::Unreadable { root, seq, source: Arc::new(error) }), None);
                return Ok(());
            }
        };
        let key = row.get_ref(5)?.as_str_or_null();
        let root_fits = row.get(7).is_ok_and(|found: i64| found == self.number);
        let fits = holds && seq == expected && key.is_ok() && root_fits;
        let fault = (!fits).then_some(expected);
        let stored = Stored { key: key.ok().flatten(), ..stored };
        if seq != 1 && stored.place.run != root.run() {
            into.push_text(stored, fault);
            return Ok(());
        }
        // Of the root the end of the chain is compared.
        let (event, fault) = stored.found(fault);
        if let Ok(event) = &event {
            if seq == 1 {
                self.opening = Some((event.at, key_of(&event.kind).cloned()));
            }
            self.ended = self.ended.map(|ended| row::ends(event).unwrap_or(ended));
        }
        into.push(event, fault);
        Ok(())
    }

    /// Compares the end of what was read with the line of the tree; to be asked in the same view.
    pub(super) fn check_end(
        &self,
        connection: &Connection,
    ) -> rusqlite::Result<Result<(), StoreError>> {
        let tampered = StoreError::Tampered { root: self.root, seq: self.seq + 1 };
        let line = connection
            .prepare_cached(
                "SELECT last_seq, chain, ended, last_at, opened_at, key, root FROM roots
                 WHERE number = ?1",
            )?
            .query_row([self.number], |row| {
                let last: u64 = row.get(0)?;
                // Nothing was asked for but what comes after the end.
                if self.last_at.is_none() && self.seq >= last {
                    return Ok(true);
                }
                let opening = self.opening.as_ref().is_none_or(|(at, key)| {
                    row.get(4).is_ok_and(|TimeColumn(found)| found == *at)
                        && row.get_ref(5).is_ok_and(|found| {
                            let key = key.as_ref().map(SessionKey::as_str);
                            found.as_str_or_null().is_ok_and(|found| found == key)
                        })
                });
                // The index, by which the row was found, is a copy: the row itself is compared.
                let root = row.get(6).is_ok_and(|RunColumn(run)| run == self.root.run());
                let link =
                    self.link.is_some_and(|link| row.get(1).is_ok_and(|found: Link| found == link));
                let ended = self
                    .ended
                    .is_none_or(|ended| row.get(2).is_ok_and(|found: bool| found == ended));
                let last_at = self
                    .last_at
                    .is_none_or(|at| row.get(3).is_ok_and(|TimeColumn(found)| found == at));
                Ok(self.seq == last && root && link && ended && last_at && opening)
            })
            .optional()?;
        // Without a line the tree was removed meanwhile.
        Ok(if line.unwrap_or(true) { Ok(()) } else { Err(tampered) })
    }

    /// Returns what was proven, once the end fits.
    pub(super) fn proof(&self) -> Proof {
        Proof { events: self.seq, link: self.link.unwrap_or(Link::START).hash() }
    }
}

/// The ends of the chains of all trees, or of one, in the order in which the trees were opened.
pub(super) fn heads(
    connection: &Connection,
    only: Option<RootId>,
) -> rusqlite::Result<Vec<ChainHead>> {
    let only = only.map(|root| RunColumn(root.run()));
    connection
        .prepare_cached(
            "SELECT root, last_seq, chain FROM roots WHERE ?1 IS NULL OR root = ?1 ORDER BY number",
        )?
        .query_map([only], |row| {
            let (RunColumn(run), link): (_, Link) = (row.get(0)?, row.get(2)?);
            Ok(ChainHead { root: RootId::new(run), events: row.get(1)?, link: link.hash() })
        })?
        .collect()
}

/// The number of the event of a tree that has this link.
pub(super) fn place(
    connection: &Connection,
    root: RootId,
    link: ContentHash,
) -> rusqlite::Result<Option<u64>> {
    let Some(number) = super::look::number(connection, root)? else { return Ok(None) };
    connection
        .prepare_cached("SELECT seq FROM events WHERE root = ?1 AND chain = ?2")?
        .query_row((number, link.as_bytes()), |row| row.get(0))
        .optional()
}

/// Reads a whole tree in one view, and proves its chain; the first event that does not fit is the answer, but whatever
/// can be read is handed over.
pub(super) fn prove(
    connection: &Connection,
    root: RootId,
    mut each: impl FnMut(Result<Event, StoreError>),
) -> rusqlite::Result<Result<Proof, StoreError>> {
    // One view of both tables: the record may grow meanwhile.
    let view = connection.unchecked_transaction()?;
    let Some(number) = super::look::number(&view, root)? else {
        return Ok(Ok(Chain::start(root, 0).proof()));
    };
    let mut chain = Chain::start(root, number);
    let mut select =
        view.prepare_cached(&format!("SELECT {COLUMNS} FROM events WHERE root = ?1 ORDER BY seq"))?;
    let mut rows = select.query([number])?;
    let (mut page, mut broken) = (Page::default(), None);
    while let Some(row) = rows.next()? {
        chain.read(row, &mut page)?;
        let (event, fault) = page.pop().expect("a row is an entry");
        if let Some(error) = fault.as_ref().or(event.as_ref().err()) {
            broken.get_or_insert_with(|| error.clone());
        }
        each(event);
    }
    let end = chain.check_end(&view)?;
    Ok(match broken {
        Some(error) => Err(error),
        None => end.map(|()| chain.proof()),
    })
}

fn digest(root: RootId, seq: u64, row: &Row<'_>) -> Option<Digest> {
    let (RunColumn(run), TimeColumn(at)) = (row.get(1).ok()?, row.get(2).ok()?);
    Some(Digest::of(Place { root, seq, run, at }, row.get_ref(3).ok()?.as_str().ok()?))
}
