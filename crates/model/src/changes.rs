//! Changes that a run made in a folder of its own.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Isolation, PathText, VariableRef, number, path_text};

/// The changes of a run that worked in a folder of its own, as one patch.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The isolation of the run.
    pub isolation: Isolation,
    /// The folder whose files the patch names: the top of the repository, or the folder that was copied.
    #[serde(with = "path_text")]
    #[schemars(with = "PathText")]
    pub of: Arc<PathBuf>,
    /// The commit to which the patch applies; none for a copy whose files were no commit.
    pub base: Option<Arc<str>>,
    /// The patch in the form of git, with binary files; none where nothing was changed.
    pub patch: Option<VariableRef>,
    /// The number of files that the patch changes.
    pub files: u32,
    /// Facts that a reader of the patch has to know: what is not in it, and links that lead out of the folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Arc<str>>,
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.files {
            0 => f.write_str("no file")?,
            1 => f.write_str("1 file")?,
            files => write!(f, "{} files", number::count(files.into()))?,
        }
        match &self.base {
            Some(base) => write!(f, " since commit {}", base.get(..12).unwrap_or(base)),
            None => f.write_str(" since the copy was made"),
        }
    }
}
