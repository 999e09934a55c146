//! A result that did not complete, as it is listed beside an answer.

use std::fmt;
use std::sync::Arc;

use offshoot_model::{Envelope, RunStatus};
use serde::Serialize;

/// Which piece, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Its place in the request, from 0.
    pub index: u32,
    /// Its name.
    pub key: Arc<str>,
    /// How it ended.
    pub status: RunStatus,
    /// Why, in words.
    pub message: String,
}

impl Failure {
    pub(crate) fn of(index: u32, key: Arc<str>, envelope: &Envelope) -> Self {
        let message = match &envelope.error {
            Some(error) => error.message.clone(),
            None => envelope.status.to_string(),
        };
        Self { index, key, status: envelope.status, message }
    }
}

impl fmt::Display for Failure {
    /// `key: why`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}
