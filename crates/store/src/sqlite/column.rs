//! Our words as columns.

use offshoot_model::{RunId, SessionKey, Timestamp};
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};

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
