//! Everything a runtime needs to start one run.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{MeterPass, Pass};
use offshoot_model::{
    AgentId, AgentSummary, DelegationContext, Grant, InputRange, JsonText, OutputFormat, RootId,
    RunId, SessionKey, VariableRef,
};

/// One run to start. The strings that all pieces of a map have in common are shared, not copied.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The run.
    pub run: RunId,
    /// The tree of the run.
    pub root: RootId,
    /// The session key.
    pub key: SessionKey,
    /// The agent.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The runs above it, and the request at the top; empty where that is not known.
    pub delegation: DelegationContext,
    /// The task of the run.
    pub task: Arc<str>,
    /// Values it may read.
    pub context: Vec<ContextFile>,
    /// A JSON file that lists these values, name → path, size, type; none where there are none.
    pub context_manifest: Option<PathBuf>,
    /// The standard input of a command.
    pub input: Input,
    /// For runtimes that start any program: first the program.
    pub command: Option<Arc<[String]>>,
    /// Exit codes that mean success; empty means 0 alone.
    pub ok_exit: Arc<[i32]>,
    /// The format of standard output.
    pub output: OutputFormat,
    /// The form that the answer must have, as a JSON Schema. The engine compares the answer with it in any case.
    pub schema: Option<JsonText>,
    /// The folder in which the run works.
    pub working_folder: Arc<PathBuf>,
    /// A folder of its own, for its task file and context. Made by the first that writes into it.
    pub run_folder: PathBuf,
    /// The folder for output that does not fit in memory.
    pub spool_folder: Arc<PathBuf>,
    /// The model, where one was chosen.
    pub model: Option<Arc<str>>,
    /// The thinking level, where one was chosen.
    pub thinking: Option<Arc<str>>,
    /// The agent's own instructions.
    pub system_prompt: Option<Arc<str>>,
    /// The agents that it may start by name, in a few words each; those of its grant.
    pub sub_agents: Arc<[AgentSummary]>,
    /// The terms.
    pub grant: Arc<Grant>,
    /// True if the run was interrupted and continues, for a runtime that can.
    pub continues: bool,
    /// The way to its supervisor; none where nothing listens.
    pub pass: Option<Pass>,
    /// The way to its model, where the meter counts what it uses.
    pub meter: Option<MeterPass>,
}

impl Launch {
    /// A launch with a task and nothing else, of a run that does not exist: for tests.
    pub fn bare(task: impl Into<Arc<str>>) -> Self {
        let zero = "00000000-0000-0000-0000-000000000000";
        let run: RunId = zero.parse().expect("it is a UUID");
        let nowhere = Arc::new(PathBuf::from("/nonexistent"));
        Self {
            run,
            root: RootId::new(run),
            key: SessionKey::parse("agent:main:subagent:test").expect("the key is malformed"),
            agent: AgentId::main(),
            depth: 1,
            delegation: DelegationContext::default(),
            task: task.into(),
            context: Vec::new(),
            context_manifest: None,
            input: Input::Prompt,
            command: None,
            ok_exit: Arc::from([]),
            output: OutputFormat::Text,
            schema: None,
            working_folder: Arc::new(PathBuf::from("/")),
            run_folder: nowhere.to_path_buf(),
            spool_folder: nowhere,
            model: None,
            thinking: None,
            system_prompt: None,
            sub_agents: Arc::from([]),
            grant: Arc::new(Grant::unbounded()),
            pass: None,
            meter: None,
            continues: false,
        }
    }

    /// Returns the tickets of the run, which are to be struck out of what is recorded.
    pub fn tickets(&self) -> impl Iterator<Item = String> {
        let door = self.pass.as_ref().map(|pass| pass.ticket.to_string());
        door.into_iter().chain(self.meter.as_ref().map(|meter| meter.ticket.to_string()))
    }

    /// True if the terms allow a child. Admission has the last word: this says whether to offer the means.
    pub fn may_spawn(&self) -> bool {
        let Grant { may_spawn, max_depth, tools, .. } = &*self.grant;
        *may_spawn && self.depth < *max_depth && tools.permits("spawn")
    }
}

/// A named value as the run sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// The name it is known by.
    pub name: Arc<str>,
    /// The file to read.
    pub path: PathBuf,
    /// The value behind it.
    pub value: VariableRef,
}

/// The source of standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The task, byte for byte, then the context blocks.
    Prompt,
    /// A piece of a file. The task travels in the environment. The path is for opening and no name for people: the engine holds
    /// the file open until the run is over, and names its descriptor below `/proc`, so that no agent can replace it.
    Piece(InputRange),
    /// No input.
    Empty,
}
