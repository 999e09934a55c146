//! The needs of a runtime for the start of one run: the first argument of `start`.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{AgentId, Grant, InputRange, RootId, RunId, SessionKey, VariableRef};
use offshoot_runtime::{ContextFile, Input, Launch, OutputFormat, Pass};
use serde::{Deserialize, Serialize};

use super::word::{self, Word};
use super::{Must, Version, from_json, text_path, to_json};
use crate::AbiError;

/// The document of a launch.
///
/// # Errors
/// [`AbiError::INVALID`] where a path is not UTF-8: JSON has no other text.
pub fn encode(launch: Launch) -> Result<String, AbiError> {
    paths_are_text(&launch)?;
    to_json(&Document::from(launch), "launch")
}

fn paths_are_text(launch: &Launch) -> Result<(), AbiError> {
    text_path("the working folder", &launch.working_folder)?;
    text_path("the folder of the run", &launch.run_folder)?;
    text_path("the folder for large output", &launch.spool_folder)?;
    if let Input::Piece(range) = &launch.input {
        text_path("the input", &range.path)?;
    }
    if let Some(pass) = &launch.pass {
        text_path("the supervisor's socket", &pass.socket)?;
    }
    launch.context_manifest.iter().try_for_each(|path| text_path("the list of values", path))?;
    launch.context.iter().try_for_each(|value| text_path("a value", &value.path))
}

/// The launch of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<Launch, AbiError> {
    from_json::<Document>(json, "launch").map(Launch::from)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    run: RunId,
    root: RootId,
    key: SessionKey,
    agent: AgentId,
    depth: u32,
    task: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    context: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_manifest: Option<PathBuf>,
    input: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Arc<[String]>>,
    #[serde(default, skip_serializing_if = "<[i32]>::is_empty")]
    ok_exit: Arc<[i32]>,
    output: Word<Format>,
    working_folder: Arc<PathBuf>,
    run_folder: PathBuf,
    spool_folder: Arc<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_prompt: Option<Arc<str>>,
    #[serde(with = "terms")]
    grant: Arc<Grant>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continues: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pass: Option<Way>,
}

#[derive(Serialize, Deserialize)]
struct Value {
    name: Arc<str>,
    path: PathBuf,
    #[serde(with = "word::Reference")]
    value: VariableRef,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Source {
    Prompt,
    Piece(InputRange),
    Empty,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Format {
    Text,
    Json,
}

/// The terms as they cross: what bounds nothing is left out.
mod terms {
    use std::sync::Arc;

    use offshoot_model::{AgentId, BudgetGrant, Grant, Rights};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", remote = "Grant")]
    struct Terms {
        max_depth: u32,
        may_spawn: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<AgentId>,
        #[serde(default, skip_serializing_if = "permits_all")]
        tools: Arc<Rights>,
        #[serde(default, skip_serializing_if = "bounds_nothing")]
        budget: BudgetGrant,
        #[serde(default, skip_serializing_if = "is_none")]
        run_timeout_seconds: u64,
        #[serde(default, skip_serializing_if = "is_none")]
        idle_timeout_seconds: u64,
        grace_seconds: u64,
        #[serde(default, skip_serializing_if = "is_none")]
        max_output_bytes: u64,
    }

    fn permits_all(tools: &Rights) -> bool {
        tools.allow.is_none() && tools.deny.is_empty()
    }

    fn bounds_nothing(budget: &BudgetGrant) -> bool {
        budget.tokens.is_none() && budget.usd.is_none()
    }

    fn is_none(seconds: &u64) -> bool {
        *seconds == 0
    }

    pub(super) fn serialize<S: Serializer>(
        grant: &Arc<Grant>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Terms::serialize(grant, serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Grant>, D::Error> {
        Terms::deserialize(deserializer).map(Arc::new)
    }
}

/// The way to the supervisor. The ticket crosses in memory only.
#[derive(Serialize, Deserialize)]
struct Way {
    socket: Arc<PathBuf>,
    ticket: Arc<str>,
}

impl From<Launch> for Document {
    fn from(launch: Launch) -> Self {
        let context = launch.context.into_iter();
        Self {
            v: Version,
            must: Must,
            run: launch.run,
            root: launch.root,
            key: launch.key,
            agent: launch.agent,
            depth: launch.depth,
            task: launch.task,
            context: context
                .map(|ContextFile { name, path, value }| Value { name, path, value })
                .collect(),
            context_manifest: launch.context_manifest,
            input: match launch.input {
                Input::Prompt => Source::Prompt,
                Input::Piece(range) => Source::Piece(range),
                Input::Empty => Source::Empty,
            },
            command: launch.command,
            ok_exit: launch.ok_exit,
            output: Word::Known(match launch.output {
                OutputFormat::Text => Format::Text,
                OutputFormat::Json => Format::Json,
            }),
            working_folder: launch.working_folder,
            run_folder: launch.run_folder,
            spool_folder: launch.spool_folder,
            model: launch.model,
            thinking: launch.thinking,
            system_prompt: launch.system_prompt,
            grant: launch.grant,
            continues: launch.continues,
            pass: launch.pass.map(|Pass { socket, ticket }| Way { socket, ticket }),
        }
    }
}

impl From<Document> for Launch {
    fn from(document: Document) -> Self {
        let context = document.context.into_iter();
        Self {
            run: document.run,
            root: document.root,
            key: document.key,
            agent: document.agent,
            depth: document.depth,
            task: document.task,
            context: context
                .map(|Value { name, path, value }| ContextFile { name, path, value })
                .collect(),
            context_manifest: document.context_manifest,
            input: match document.input {
                Source::Prompt => Input::Prompt,
                Source::Piece(range) => Input::Piece(range),
                Source::Empty => Input::Empty,
            },
            command: document.command,
            ok_exit: document.ok_exit,
            output: match document.output {
                Word::Known(Format::Json) => OutputFormat::Json,
                // Any answer is text.
                Word::Known(Format::Text) | Word::Other(_) => OutputFormat::Text,
            },
            working_folder: document.working_folder,
            run_folder: document.run_folder,
            spool_folder: document.spool_folder,
            model: document.model,
            thinking: document.thinking,
            system_prompt: document.system_prompt,
            grant: document.grant,
            continues: document.continues,
            pass: document.pass.map(|Way { socket, ticket }| Pass { socket, ticket }),
        }
    }
}
