//! The needs of a runtime for the start of one run: the first argument of `start`.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{
    AgentId, AgentSummary, DelegationContext, Grant, InputRange, JsonText, RootId, RunId,
    SessionKey, VariableRef, path_text,
};
use offshoot_runtime::{ContextFile, Input, Launch, MeterPass, MeterProtocols, OutputFormat, Pass};
use serde::{Deserialize, Serialize};

use super::word::{self, Word};
use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// The document of a launch.
///
/// # Errors
/// [`AbiError::INVALID`] where it cannot be written.
pub fn encode(launch: Launch) -> Result<String, AbiError> {
    to_json(&Document::from(launch), "launch")
}

/// The launch of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<Launch, AbiError> {
    from_json::<Document>(json, "launch").map(Launch::from)
}

#[serde_with::skip_serializing_none]
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
    delegation: Option<DelegationContext>,
    task: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    context: Vec<Value>,
    #[serde(default, with = "path_text")]
    context_manifest: Option<PathBuf>,
    #[serde(with = "Source")]
    input: Input,
    command: Option<Arc<[String]>>,
    #[serde(default, skip_serializing_if = "<[i32]>::is_empty")]
    ok_exit: Arc<[i32]>,
    output: Word<Format>,
    schema: Option<JsonText>,
    #[serde(with = "path_text")]
    working_folder: Arc<PathBuf>,
    #[serde(with = "path_text")]
    run_folder: PathBuf,
    #[serde(with = "path_text")]
    spool_folder: Arc<PathBuf>,
    model: Option<Arc<str>>,
    thinking: Option<Arc<str>>,
    system_prompt: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "<[AgentSummary]>::is_empty")]
    sub_agents: Arc<[AgentSummary]>,
    #[serde(with = "terms")]
    grant: Arc<Grant>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continues: bool,
    pass: Option<Way>,
    meter: Option<Meter>,
}

#[derive(Serialize, Deserialize)]
struct Value {
    name: Arc<str>,
    #[serde(with = "path_text")]
    path: PathBuf,
    #[serde(with = "word::Reference")]
    value: VariableRef,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Input", rename_all = "camelCase")]
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

    use offshoot_model::{AgentId, BudgetGrant, Grant, MicroUsd, Pooled, Rights};
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
        /// A launch says what the run may use: where that comes from is the supervisor's.
        #[serde(skip)]
        default_usd: Option<MicroUsd>,
        #[serde(skip)]
        pooled: Pooled,
        #[serde(default, skip_serializing_if = "is_none")]
        run_timeout_seconds: u64,
        #[serde(default, skip_serializing_if = "is_none")]
        idle_timeout_seconds: u64,
        grace_seconds: u64,
        #[serde(default, skip_serializing_if = "is_none")]
        max_output_bytes: u64,
        #[serde(default, skip_serializing_if = "is_none")]
        max_memory_bytes: u64,
        #[serde(default, skip_serializing_if = "is_none")]
        max_open_files: u64,
        #[serde(default, skip_serializing_if = "is_none")]
        max_cpu_seconds: u64,
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
    #[serde(with = "path_text")]
    socket: Arc<PathBuf>,
    ticket: Arc<str>,
}

/// The way to its model through the meter: the base address of each protocol for which there is a provider, and the ticket that stands in
/// place of the key.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meter {
    ticket: Arc<str>,
    anthropic: Option<String>,
    openai: Option<String>,
    gemini: Option<String>,
    output_tokens: Option<u64>,
}

/// The end of the base address of OpenAI's programs.
const OPENAI_VERSION: &str = "/v1";

impl From<MeterPass> for Meter {
    fn from(pass: MeterPass) -> Self {
        let MeterProtocols { anthropic, openai, gemini } = pass.protocols;
        Self {
            anthropic: anthropic.then(|| pass.base()),
            openai: openai.then(|| pass.openai_base()),
            gemini: gemini.then(|| pass.base()),
            output_tokens: pass.output_tokens,
            ticket: pass.ticket,
        }
    }
}

impl From<Meter> for MeterPass {
    fn from(meter: Meter) -> Self {
        let Meter { ticket, anthropic, openai, gemini, output_tokens } = meter;
        let protocols = MeterProtocols {
            anthropic: anthropic.is_some(),
            openai: openai.is_some(),
            gemini: gemini.is_some(),
        };
        let of_openai = openai.map(|base| base.trim_end_matches(OPENAI_VERSION).to_owned());
        let address = anthropic.or(gemini).or(of_openai).unwrap_or_default().into();
        let (own_login, key_variable) = (false, None);
        Self { address, ticket, own_login, key_variable, protocols, output_tokens }
    }
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
            delegation: Some(launch.delegation).filter(|known| !known.trace.is_empty()),
            task: launch.task,
            context: context
                .map(|ContextFile { name, path, value }| Value { name, path, value })
                .collect(),
            context_manifest: launch.context_manifest,
            input: launch.input,
            command: launch.command,
            ok_exit: launch.ok_exit,
            output: Word::Known(match launch.output {
                OutputFormat::Text => Format::Text,
                OutputFormat::Json => Format::Json,
            }),
            schema: launch.schema,
            working_folder: launch.working_folder,
            run_folder: launch.run_folder,
            spool_folder: launch.spool_folder,
            model: launch.model,
            thinking: launch.thinking,
            system_prompt: launch.system_prompt,
            sub_agents: launch.sub_agents,
            grant: launch.grant,
            continues: launch.continues,
            pass: launch.pass.map(|Pass { socket, ticket }| Way { socket, ticket }),
            meter: launch.meter.map(Meter::from),
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
            delegation: document.delegation.unwrap_or_default(),
            task: document.task,
            context: context
                .map(|Value { name, path, value }| ContextFile { name, path, value })
                .collect(),
            context_manifest: document.context_manifest,
            input: document.input,
            command: document.command,
            ok_exit: document.ok_exit,
            output: match document.output {
                Word::Known(Format::Json) => OutputFormat::Json,
                // Any answer is text.
                Word::Known(Format::Text) | Word::Other(_) => OutputFormat::Text,
            },
            schema: document.schema,
            working_folder: document.working_folder,
            run_folder: document.run_folder,
            spool_folder: document.spool_folder,
            model: document.model,
            thinking: document.thinking,
            system_prompt: document.system_prompt,
            sub_agents: document.sub_agents,
            grant: document.grant,
            continues: document.continues,
            pass: document.pass.map(|Way { socket, ticket }| Pass { socket, ticket }),
            meter: document.meter.map(MeterPass::from),
        }
    }
}
