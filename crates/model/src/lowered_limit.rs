//! A limit of which a child got less than was asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{GovernedBy, JsonText};

/// A limit of which a child got less than its request asked for. The request was admitted all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoweredLimit {
    /// The field of the request.
    pub field: String,
    /// The value that was asked for.
    pub asked: JsonText,
    /// The value that holds.
    pub granted: JsonText,
    /// The setting that decided; none where the session that asks was given less than its settings allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governed_by: Option<Box<GovernedBy>>,
}

impl fmt::Display for LoweredLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, asked, granted, governed_by } = self;
        let (asked, granted) = (asked.as_str(), granted.as_str());
        write!(f, "{field}: asked for {asked}, granted {granted}, by ")?;
        match governed_by {
            Some(setting) => setting.fmt(f),
            None => f.write_str("what the session that asks was given"),
        }
    }
}
