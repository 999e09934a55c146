//! The runtimes that need no plugin, as the configuration has them.

pub mod claude;
pub mod exec;
pub mod openai;

use std::sync::Arc;

use offshoot_config::{FreeForm, Valued};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::HostError;

/// The names of the runtimes that need no plugin.
pub const BUILT_IN: [&str; 3] = [claude::CLAUDE, exec::EXEC, openai::OPENAI];

/// Reads settings of a runtime.
fn settings<T: DeserializeOwned>(name: &str, table: &Valued<FreeForm>) -> Result<T, HostError> {
    let value = Value::Object((*table.value).clone());
    serde_json::from_value(value).map_err(|error| HostError::Settings {
        name: name.to_owned(),
        origin: table.origin.clone(),
        source: Arc::new(error),
    })
}
