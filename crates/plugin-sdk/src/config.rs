//! Settings, as JSON until a type is asked for.

use serde::de::DeserializeOwned;

use crate::Error;

/// Settings of a plugin, a runtime or a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config(String);

impl Config {
    /// Of JSON text; nothing at all is an empty object.
    pub fn new(json: impl Into<String>) -> Self {
        let json: String = json.into();
        Self(if json.trim().is_empty() { "{}".to_owned() } else { json })
    }

    /// The JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// As a type of yours. Write `#[serde(deny_unknown_fields)]` on it, so that a slip is told.
    ///
    /// # Errors
    /// [`Error::invalid`] with the place where the two differ.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.0).map_err(|error| Error::invalid(format!("settings: {error}")))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new("")
    }
}
