//! An event as a row, and the chain that ties the rows of a tree together.

use std::sync::Arc;

use offshoot_model::{Event, EventKind, RootId, RunId, SessionKey, Timestamp};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, ToSql};

use crate::StoreError;

/// The hash that covers a row and all rows of its tree before it. A tree begins with [`Link::START`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Link([u8; 32]);

impl Link {
    pub(super) const START: Self = Self([0; 32]);

    /// The next link: BLAKE3 of the last one and the row. The only part without a fixed length comes last, so no two
    /// rows give the same bytes.
    pub(super) fn next(&self, event: &Event, body: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(event.root.run().as_bytes());
        hasher.update(&event.seq.to_le_bytes());
        hasher.update(event.run.as_bytes());
        hasher.update(&event.at.as_micros().to_le_bytes());
        hasher.update(body.as_bytes());
        Self(*hasher.finalize().as_bytes())
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

/// A run id in a column of 16 bytes.
pub(super) struct RunColumn(pub(super) RunId);

impl ToSql for RunColumn {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
    }
}

impl FromSql for RunColumn {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 16]>::column_result(value).map(|bytes| Self(RunId::from_bytes(bytes)))
    }
}

/// A moment in a column of 64 bits. SQLite's are signed: the bits are kept, not the sign.
pub(super) struct TimeColumn(pub(super) Timestamp);

impl ToSql for TimeColumn {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(Value::Integer(self.0.as_micros().cast_signed())))
    }
}

impl FromSql for TimeColumn {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(|bits| Self(Timestamp::from_micros(bits.cast_unsigned())))
    }
}

/// A session's address in a column of text.
pub(super) struct KeyColumn(pub(super) SessionKey);

impl FromSql for KeyColumn {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        SessionKey::parse(value.as_str()?).map(Self).map_err(FromSqlError::other)
    }
}

/// The text that is stored of an event.
pub(super) fn body(event: &Event) -> Result<String, StoreError> {
    serde_json::to_string(&event.kind).map_err(|error| StoreError::Unrecordable {
        root: event.root,
        seq: event.seq,
        source: Arc::new(error),
    })
}

/// Reads an event from a row `seq, run, at, body`.
pub(super) fn event(root: RootId, row: &Row<'_>) -> rusqlite::Result<Result<Event, StoreError>> {
    let seq: u64 = row.get(0)?;
    let RunColumn(run) = row.get(1)?;
    let TimeColumn(at) = row.get(2)?;
    let kind = kind(root, seq, row.get_ref(3)?.as_str()?);
    Ok(kind.map(|kind| Event { root, seq, at, run, kind }))
}

/// What an event's stored text says.
pub(super) fn kind(root: RootId, seq: u64, body: &str) -> Result<EventKind, StoreError> {
    serde_json::from_str(body).map_err(|error| StoreError::Unreadable {
        root,
        seq,
        source: Arc::new(error),
    })
}
