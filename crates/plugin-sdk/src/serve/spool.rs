//! Answers of runs that are too long for a line: files in the folder that the host has for them.

use std::fs;
use std::path::PathBuf;

use offshoot_plugin_abi::{AbiError, Outcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The folder for large output, of a launch.
pub(super) fn folder(launch: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Launch {
        spool_folder: Option<PathBuf>,
    }
    serde_json::from_str::<Launch>(launch).ok()?.spool_folder
}

/// Writes the body into a file, and names it in the head.
pub(super) fn write(
    outcome: &Outcome,
    folder: Option<PathBuf>,
    number: u64,
) -> Result<Outcome, AbiError> {
    let bytes = outcome.body.len();
    let failed = |why: String| {
        let message = format!("an answer of {bytes} bytes is too long for a line: {why}");
        AbiError::new(AbiError::LIMIT, message)
    };
    let folder = folder.ok_or_else(|| failed("there is no folder for large output".to_owned()))?;
    let path = folder.join(format!("plugin-{}-{number}", std::process::id()));
    fs::write(&path, &outcome.body)
        .map_err(|error| failed(format!("{}: {error}", path.display())))?;
    let head: Result<Map<String, Value>, _> = serde_json::from_str(&outcome.head_json);
    let mut head = head.map_err(|error| failed(error.to_string()))?;
    let kind = head.get("output").cloned().unwrap_or_default();
    head.insert("output".to_owned(), json!({"file": {"path": path, "kind": kind}}));
    let head_json = Value::Object(head).to_string().into();
    Ok(Outcome { head_json, body: Vec::new().into() })
}
