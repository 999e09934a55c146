//! An event as a row, and the chain that ties the rows of a tree together.

use std::sync::Arc;

use offshoot_model::{ContentHash, Event, EventKind, RootId, SessionKey};
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};

use super::column::{RunColumn, TimeColumn};
use crate::StoreError;
use crate::page::{Place, Stored, key_of};

/// An event, ready to be written. Made by the caller that appends, so that the one writing thread has less to do.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) place: Place,
    /// The word for what happened.
    pub(super) kind: &'static str,
    /// The address of an admitted run.
    pub(super) key: Option<SessionKey>,
    /// True if the root of the tree is over from here on, and false if it is not; none where nothing changes.
    pub(super) ends: Option<bool>,
    /// The event as JSON.
    pub(super) body: String,
    pub(super) digest: Digest,
}

/// The hash of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest([u8; 32]);

/// The hash that covers a row and all rows of its tree before it. A tree begins with [`Link::START`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link([u8; 32]);

impl Row {
    pub(super) fn new(event: &Event) -> Result<Self, StoreError> {
        let body = serde_json::to_string(&event.kind).map_err(|error| {
            StoreError::Unrecordable { root: event.root, seq: event.seq, source: Arc::new(error) }
        })?;
        let &Event { root, seq, at, run, .. } = event;
        let place = Place { root, seq, run, at };
        Ok(Self {
            place,
            kind: event.kind.name(),
            digest: Digest::of(place, &body),
            ends: ends(event),
            body,
            key: key_of(&event.kind).cloned(),
        })
    }
}

impl Digest {
    /// The only part without a fixed length comes last, so no two rows give the same bytes.
    pub(super) fn of(Place { root, seq, run, at }: Place, body: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(root.run().as_bytes());
        hasher.update(&seq.to_le_bytes());
        hasher.update(run.as_bytes());
        hasher.update(&at.as_micros().to_le_bytes());
        hasher.update(body.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }
}

impl Link {
    pub(super) const START: Self = Self([0; 32]);

    /// The link as a hash like any other.
    pub(super) fn hash(self) -> ContentHash {
        ContentHash::from_bytes(self.0)
    }

    /// The link of the next row: the BLAKE3 hash of this link and the row's digest.
    pub(super) fn next(&self, row: &Digest) -> Self {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0);
        bytes[32..].copy_from_slice(&row.0);
        Self(*blake3::hash(&bytes).as_bytes())
    }
}

impl ToSql for Link {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
    }
}

impl FromSql for Link {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Self)
    }
}

/// Returns whether the root of the tree is over after this event; none where nothing changes.
pub(super) fn ends(event: &Event) -> Option<bool> {
    match event.kind {
        _ if event.run != event.root.run() => None,
        EventKind::Ended(_) => Some(true),
        EventKind::RootReopened(_) => Some(false),
        _ => None,
    }
}

/// The parts of a row `seq, run, at, body, kind`, without its key.
pub(super) fn stored<'row>(
    root: RootId,
    seq: u64,
    row: &'row rusqlite::Row<'_>,
) -> rusqlite::Result<Stored<'row>> {
    let (RunColumn(run), TimeColumn(at)) = (row.get(1)?, row.get(2)?);
    // Without a name of its kind it is not what was recorded.
    let kind = row.get_ref(4)?.as_str_or_null().ok().flatten().unwrap_or_default();
    let place = Place { root, seq, run, at };
    Ok(Stored { place, body: row.get_ref(3)?.as_str()?, kind, key: None })
}
