//! Runs that need the answers of others.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RunId;

/// A run whose answer another run needs before it starts.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Need {
    /// The name of the needed run, as the one that needs it knows it.
    pub name: Arc<str>,
    /// The needed run; none where it was refused.
    pub run: Option<RunId>,
}

/// The fate of a run when one that it needs does not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::AsRefStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum OnNeedFailed {
    /// The run ends without having started.
    #[default]
    Skip,
    /// The run starts without that answer, once all that it needs is over.
    Run,
}

impl OnNeedFailed {
    /// True if the run is skipped, which the record need not say.
    pub fn is_skip(&self) -> bool {
        *self == Self::Skip
    }
}

impl Need {
    /// The start of the name of a context variable that holds an answer.
    const PREFIX: &str = "need_";

    /// Answers up to this size stand in the record, and their files are copies of it.
    pub const COPIED_BYTES: u64 = 4096;

    /// Returns the name of the context variable that holds the answer.
    pub fn variable(name: &str) -> String {
        format!("{}{name}", Self::PREFIX)
    }

    /// True if a context variable of this name may hold an answer.
    pub fn is_variable(name: &str) -> bool {
        name.starts_with(Self::PREFIX)
    }
}
