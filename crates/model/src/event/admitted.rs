//! An admission: what a run is, and what a later start of it needs.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_session_key::{AgentId, SessionKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Cleanup, ContentHash, ContextEntry, Grant, Isolation, JsonText, Need, OnNeedFailed,
    OutputFormat, PathText, Payload, Rules, RunId, SpawnRequest, TaskType, path_text,
};

/// All that is known of a run when it is created, and all that a later start needs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Admitted {
    /// The session key.
    #[schemars(with = "String")]
    pub key: SessionKey,
    /// The run that asked for this one; none for a root.
    #[serialize_always]
    pub parent: Option<RunId>,
    /// The running agent, which the key of a deep session does not name.
    #[schemars(with = "String")]
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The origin of the request.
    pub origin: Origin,
    /// A short name for people.
    pub label: Option<Arc<str>>,
    /// The runtime; none for a root that only holds pieces.
    pub runtime: Option<Arc<str>>,
    /// The task: text while it is small, a reference otherwise.
    pub task: Payload,
    /// For a piece: what was cut out of which file.
    pub input: Option<InputRange>,
    /// For a piece: its place among all pieces that the root's owner asked for, from 0.
    pub place: Option<u32>,
    /// For a piece that runs again: the run that had its place, and ended without an answer.
    pub instead: Option<RunId>,
    /// For a piece: the runs whose answers it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The fate of the run when one that it needs does not complete.
    #[serde(default, skip_serializing_if = "OnNeedFailed::is_skip")]
    pub on_need_failed: OnNeedFailed,
    /// The other fields of the request; none where the root's plan has them.
    pub particulars: Option<Box<Particulars>>,
    /// The terms.
    pub grant: Arc<Grant>,
    /// The limits on its own spawns, where they are not those of its parent. A root always has them.
    pub rules: Option<Arc<Rules>>,
    /// The treatment of the session once its result was handed over.
    #[serde(default, skip_serializing_if = "Cleanup::is_keep")]
    pub cleanup: Cleanup,
    /// For a root: so many minutes after its last event it is shown only on request. Never where
    /// absent.
    pub archive_after_minutes: Option<u64>,
    /// For a root: the plan it was opened with, as JSON.
    pub plan: Option<JsonText>,
}

/// The fields of a request beside its task, as far as a later start of the same run needs them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Particulars {
    /// The type of the task.
    #[serde(rename = "type")]
    pub task_type: Option<TaskType>,
    /// The values it may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextEntry>,
    /// A command of the caller's choosing.
    pub command: Option<Arc<[String]>>,
    /// Another model than the configured one.
    pub model: Option<String>,
    /// Another thinking level than the configured one.
    pub thinking: Option<String>,
    /// Another folder to work in than that of the tree.
    #[serde(with = "path_text")]
    #[schemars(with = "Option<PathText>")]
    pub folder: Option<Arc<PathBuf>>,
    /// Other exit codes that mean success than those of the tree.
    pub ok_exit: Option<Arc<[i32]>>,
    /// Another format of the answer than that of the tree.
    pub output: Option<OutputFormat>,
    /// The form that its answer must have, as a JSON Schema.
    pub schema: Option<JsonText>,
    /// The folder in which it works, where that is one of its own.
    pub isolation: Option<Isolation>,
    /// The requested treatment of the session. The treatment that holds stands beside this.
    pub cleanup: Option<Cleanup>,
    /// Of a run whose agent was chosen, and not named: the stems of words that its task has in common with what is said of the agent.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub chosen_by: Arc<[String]>,
    /// Of a run that a merge has asked for: the hash of all that it was asked, by which a later start knows it again.
    pub merges: Option<ContentHash>,
}

impl Admitted {
    /// Returns the type of the task, where the request named one.
    pub fn task_type(&self) -> Option<&TaskType> {
        self.particulars.as_ref()?.task_type.as_ref()
    }

    /// Returns the words by which the agent was chosen; none where it was named.
    pub fn chosen_by(&self) -> Option<&[String]> {
        self.particulars.as_ref().map(|it| &*it.chosen_by).filter(|words| !words.is_empty())
    }

    /// Returns the hash of what the run was asked, if a merge has asked for it: its answer is no result of a piece or a child.
    pub fn merges(&self) -> Option<ContentHash> {
        self.particulars.as_ref()?.merges
    }
}

impl Particulars {
    /// Returns the fields of a request; none where it asked for nothing but its task.
    pub fn of(request: &SpawnRequest, folder: Option<Arc<PathBuf>>) -> Option<Box<Self>> {
        let all = Self {
            context: request.context.clone(),
            command: request.command.clone(),
            folder,
            ok_exit: request.ok_exit.clone(),
            output: request.output,
            ..Self::of_it_alone(request)
        };
        all.unless_empty()
    }

    /// Only what was chosen for it alone; none where nothing was.
    pub fn chosen(request: &SpawnRequest) -> Option<Box<Self>> {
        Self::of_it_alone(request).unless_empty()
    }

    fn of_it_alone(request: &SpawnRequest) -> Self {
        Self {
            task_type: request.task_type.clone(),
            model: request.model.clone(),
            thinking: request.thinking.clone(),
            schema: request.schema.clone(),
            isolation: request.isolation.clone(),
            cleanup: request.cleanup,
            chosen_by: Arc::clone(&request.chosen_by),
            merges: request.merges,
            ..Self::default()
        }
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

/// Part of a file that a piece reads. The file itself is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputRange {
    /// Absolute, and without symbolic links when it was cut: later it is not opened over one.
    #[serde(with = "path_text")]
    #[schemars(with = "PathText")]
    pub path: Arc<PathBuf>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// The first so many bytes of the file come before them: lines that are repeated in every piece.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub header: u64,
    /// Of the header and these bytes, taken while cutting.
    pub hash: Option<ContentHash>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields in by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl InputRange {
    /// Returns the number of bytes that the piece has with its header.
    pub fn size(&self) -> u64 {
        self.header.saturating_add(self.length)
    }
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
        }?;
        if let Some(before) = self.instead {
            write!(f, ", in the place of {before}")?;
        }
        match self.chosen_by() {
            Some(words) => write!(f, ", its agent chosen by the words: {}", words.join(", ")),
            None => Ok(()),
        }
    }
}
