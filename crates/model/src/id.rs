//! Ids are types: a run is not a root, and neither is a hash.

use std::str::FromStr;

use offshoot_session_key::SessionKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::Timestamp;

/// One run of one agent. A version 7 UUID, so that ids sort by the time they were minted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema, derive_more::Debug, derive_more::Display)]
#[debug("RunId({self})")]
#[serde(transparent)]
#[schemars(extend("pattern" = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))]
pub struct RunId(#[schemars(with = "String")] Uuid);

/// A whole tree, named by the run id of its root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema, derive_more::Debug, derive_more::Display)]
#[debug("RootId({self})")]
#[serde(transparent)]
pub struct RootId(RunId);

/// The BLAKE3 hash of a value: its address in the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(SerializeDisplay, DeserializeFromStr)]
#[derive(JsonSchema, derive_more::Debug, derive_more::Display)]
#[debug("ContentHash({self})")]
#[display("{}", blake3::Hash::from_bytes(self.0))]
#[schemars(from = "String", extend("pattern" = "^[0-9a-f]{64}$"))]
pub struct ContentHash([u8; 32]);

/// One delivery of one result: `announce:v1:{child key}:{run id}`. Stable, so that a repetition is recognised.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema, derive_more::Display)]
#[serde(transparent)]
#[schemars(extend("pattern" = "^announce:v1:"))]
pub struct DeliveryId(String);

/// A text that is not an id of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct ParseIdError {
    text: String,
    expected: &'static str,
}

impl RunId {
    /// The length of an id as text.
    pub const TEXT_BYTES: usize = Hyphenated::LENGTH;

    /// Ids are minted by the owner of the clock and the random source, and handed in.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID behind the id.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// The id as text, without an allocation.
    pub fn encode(self, buffer: &mut [u8; Self::TEXT_BYTES]) -> &str {
        self.0.hyphenated().encode_lower(buffer)
    }

    /// The sixteen bytes, for compact storage.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Back from [`RunId::as_bytes`].
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl RunId {
    /// The moment at which the id was made, where it tells: ids of ours do.
    pub fn made_at(&self) -> Option<Timestamp> {
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        let micros = seconds.checked_mul(1_000_000)?.checked_add(u64::from(nanoseconds) / 1000)?;
        Some(Timestamp::from_micros(micros))
    }
}

impl RootId {
    /// The tree whose root is this run.
    pub const fn new(run: RunId) -> Self {
        Self(run)
    }

    /// The root's own run.
    pub const fn run(&self) -> RunId {
        self.0
    }
}

impl ContentHash {
    /// Hashes a value that is in memory anyway. Files are hashed while they are read, by the store.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// A hash computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl DeliveryId {
    /// The id of the delivery of `run`'s result.
    pub fn new(child: &SessionKey, run: RunId) -> Self {
        Self(format!("announce:v1:{child}:{run}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text)
            .map(Self)
            .map_err(|_| ParseIdError { text: text.to_owned(), expected: "a run id (a UUID)" })
    }
}

impl FromStr for ContentHash {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| ParseIdError {
            text: text.to_owned(),
            expected: "a content hash (64 hexadecimal digits)",
        })
    }
}
