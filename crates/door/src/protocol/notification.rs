//! The messages that are sent without a request.

use serde::{Deserialize, Serialize};

use super::{Progress, RequestId};

/// From the client: the parameters of [`CANCEL_REQUEST`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CancelRequest {
    /// The request that is not wanted any more.
    pub(crate) id: RequestId,
}

/// From the server: the parameters of [`PROGRESS`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestProgress {
    /// The request that goes on.
    pub(crate) id: RequestId,
    /// The progress.
    pub(crate) progress: Progress,
}

pub(crate) const CANCEL_REQUEST: &str = "cancel_request";
pub(crate) const PROGRESS: &str = "progress";
