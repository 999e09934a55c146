//! The account of a service: what shares one quota.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The account under which a runtime calls its service. Runs of one account share its quotas.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The name of the runtime.
    pub runtime: Arc<str>,
    /// A fingerprint of the credential, by which two accounts of one runtime are told apart: a keyed hash, from which the credential
    /// cannot be found. Absent where the runtime does not know its credential.
    pub credential: Option<Arc<str>>,
}

impl Account {
    /// The account of a runtime that does not know its credential.
    pub fn of_runtime(runtime: impl Into<Arc<str>>) -> Self {
        Self { runtime: runtime.into(), credential: None }
    }

    /// The account of a runtime with this credential, of which only a hash with this key is kept.
    pub fn of_credential(runtime: impl Into<Arc<str>>, key: &[u8; 32], credential: &[u8]) -> Self {
        let hash = blake3::keyed_hash(key, credential).to_hex();
        // Half of it: enough to tell the few accounts of one user apart.
        Self { credential: Some(hash[..32].into()), ..Self::of_runtime(runtime) }
    }
}

/// The name of the runtime, which says enough to a reader.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_leaves_no_trace_but_a_hash() {
        let of = |key: u8, credential: &str| {
            Account::of_credential("claude", &[key; 32], credential.as_bytes())
        };
        let account = of(1, "sk-secret");
        assert_eq!(account, of(1, "sk-secret"));
        assert_ne!(account, of(1, "sk-other"));
        assert_ne!(account, of(2, "sk-secret"), "without the key it cannot be guessed");
        let json = serde_json::to_string(&account).expect("plain data");
        assert!(!json.contains("secret"), "{json}");
        assert_eq!(account.to_string(), "claude");
    }
}
