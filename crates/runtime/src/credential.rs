//! The key or login by which a runtime authenticates itself to its service.

/// The parts of a credential, and of what says for which service it is. They are never shown: only a keyed hash of them leaves the
/// process.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("Credential([redacted])")]
pub struct Credential(Vec<u8>);

impl Credential {
    /// A credential of these parts, in this order.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut bytes = Vec::new();
        for part in parts {
            // With its length, so that no two lists of parts read alike.
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        Self(bytes)
    }

    /// The bytes, for the hash.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
