//! An admission: what a run is, and what a later start of it needs.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_session_key::{AgentId, SessionKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Cleanup, ContentHash, ContextEntry, Grant, JsonText, Payload, Rules, RunId, SpawnRequest,
};

/// All that is known of a run when it is created, and all that a later start needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Admitted {
    /// The session key.
    #[schemars(with = "String")]
    pub key: SessionKey,
    /// The run that asked for this one; none for a root.
    pub parent: Option<RunId>,
    /// The running agent, which the key of a deep session does not name.
    #[schemars(with = "String")]
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The origin of the request.
    pub origin: Origin,
    /// A short name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// The runtime; none for a root that only holds pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Arc<str>>,
    /// The task: text while it is small, a reference otherwise.
    pub task: Payload,
    /// For a piece: what was cut out of which file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputRange>,
    /// For a piece: its place among all pieces that the root's owner asked for, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// The other fields of the request; none where the root's plan has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub particulars: Option<Box<Particulars>>,
    /// The terms.
    pub grant: Arc<Grant>,
    /// The limits on its own spawns, where they are not those of its parent. A root always has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Arc<Rules>>,
    /// The treatment of the session once its result was handed over.
    #[serde(default, skip_serializing_if = "Cleanup::is_keep")]
    pub cleanup: Cleanup,
    /// For a root: so many minutes after its last event it is shown only on request. Never where
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_after_minutes: Option<u64>,
    /// For a root: the plan it was opened with, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<JsonText>,
}

/// The fields of a request beside its task, as far as a later start of the same run needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Particulars {
    /// The values it may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextEntry>,
    /// A command of the caller's choosing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Arc<[String]>>,
    /// Another model than the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another thinking level than the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Another folder to work in than that of the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Arc<PathBuf>>,
    /// The requested treatment of the session. The treatment that holds stands beside this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
}

impl Particulars {
    /// Returns the fields of a request; none where it asked for nothing but its task.
    pub fn of(request: &SpawnRequest, folder: Option<Arc<PathBuf>>) -> Option<Box<Self>> {
        let SpawnRequest { context, command, model, thinking, cleanup, .. } = request;
        let particulars = Self {
            context: context.clone(),
            command: command.clone(),
            model: model.clone(),
            thinking: thinking.clone(),
            folder,
            cleanup: *cleanup,
        };
        particulars.unless_empty()
    }

    /// Only what was chosen for it alone; none where nothing was.
    pub fn chosen(request: &SpawnRequest) -> Option<Box<Self>> {
        let SpawnRequest { model, thinking, cleanup, .. } = request;
        let (model, thinking, cleanup) = (model.clone(), thinking.clone(), *cleanup);
        Self { model, thinking, cleanup, ..Self::default() }.unless_empty()
    }

    fn unless_empty(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// The origin of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The operator opened a tree.
    Root,
    /// A piece of the operator's own map or fanout: not counted as a spawn.
    Piece,
    /// An agent asked.
    Agent,
}

/// Part of a file that a piece reads. The file is not copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputRange {
    /// Absolute, and without symbolic links when it was cut: later it is not opened over one.
    pub path: Arc<PathBuf>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Of these bytes, taken while cutting.
    pub hash: Option<ContentHash>,
}

impl fmt::Display for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.agent)?;
        if let Some(label) = self.label.as_deref().map(str::trim).filter(|label| !label.is_empty())
        {
            write!(f, ": {label}")?;
        }
        write!(f, " (depth {}), ", self.depth)?;
        match (self.origin, self.parent) {
            (Origin::Root, _) | (_, None) => f.write_str("opened by the operator"),
            (Origin::Piece, Some(_)) => f.write_str("a piece"),
            (Origin::Agent, Some(parent)) => write!(f, "asked for by {parent}"),
        }
    }
}
