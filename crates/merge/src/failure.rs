//! A result that did not complete, as it is listed beside an answer.

use std::sync::Arc;

use offshoot_model::{Envelope, RunStatus};
use serde::Serialize;

/// A piece that did not complete, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, derive_more::Display)]
#[display("{key}: {message}")]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The place in the request, from 0.
    pub index: u32,
    /// The name of the piece.
    pub key: Arc<str>,
    /// The state in which it ended.
    pub status: RunStatus,
    /// The reason in words.
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
