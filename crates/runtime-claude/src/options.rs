//! The options for starting Claude Code: those that hold for all its runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use offshoot_model::AgentId;
use serde::Deserialize;
use serde_json::Value;

use crate::Parking;

/// The options of all runs.
#[derive(Clone, Debug)]
pub struct ClaudeOptions {
    /// The program: a name to be found on `PATH`, or a path.
    pub command: String,
    /// Stands before it: another user, a container.
    pub wrap: Vec<String>,
    /// Our own environment; only permitted names are handed on.
    pub environment: Vec<(OsString, OsString)>,
    /// Further names and patterns that are permitted.
    pub more: Vec<String>,
    /// True if it starts without the user's setup for interactive use; then it asks for an API key.
    pub bare: bool,
    /// Models to try in this order where the chosen one is not to be had.
    pub fallback_models: Vec<String>,
    /// The mode that decides what needs a permission; none leaves it to the user's settings.
    pub permission_mode: Option<String>,
    /// After so many rounds of tools a turn fails.
    pub max_turns: Option<u32>,
    /// The JSON schema that answers must have, as JSON text.
    pub json_schema: Option<String>,
    /// Settings on top of the user's, such as those for compaction.
    pub settings: Option<Value>,
    /// Further servers of tools, by name, in the program's own notation. Those of the user's own set-up are not started.
    pub servers: BTreeMap<String, Value>,
    /// The time in which the program has to exit after its last turn: it saves its session and ends its servers. One that takes
    /// longer is stuck, and is stopped.
    pub linger: Duration,
    /// The treatment of processes whose agents wait for children after a turn.
    pub parking: Parking,
    /// Agents with settings of their own, by id.
    pub agents: BTreeMap<String, AgentOptions>,
    /// The server of our own tools, for runs that have a pass.
    pub own_server: Option<OwnServer>,
}

/// The options of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// Models to try where the chosen one is not to be had; empty leaves those of all.
    pub fallback_models: Vec<String>,
    /// After so many rounds of tools a turn fails; none leaves that of all.
    pub max_turns: Option<u32>,
    /// The settings by which its conversations are summed up when they become long.
    pub compaction: Compaction,
}

/// The settings by which the program sums up a conversation that becomes long. Fields that are not known belong to other programs
/// that read the same settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compaction {
    /// `off` switches it off; every other word leaves it to the program.
    pub mode: Option<String>,
    /// Past so many tokens. The program takes no number below 100000.
    pub at_tokens: Option<u64>,
}

/// A program that serves our own tools over its standard input and output, for a run that has a pass. It finds the pass in
/// its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnServer {
    /// The program.
    pub command: PathBuf,
    /// The arguments of the program. Every user of the machine can read them.
    pub args: Vec<String>,
}

impl Default for ClaudeOptions {
    fn default() -> Self {
        Self {
            command: "claude".to_owned(),
            wrap: Vec::new(),
            environment: Vec::new(),
            more: Vec::new(),
            bare: false,
            fallback_models: Vec::new(),
            permission_mode: None,
            max_turns: None,
            json_schema: None,
            settings: None,
            servers: BTreeMap::new(),
            linger: Duration::from_secs(10),
            parking: Parking::Auto,
            agents: BTreeMap::new(),
            own_server: None,
        }
    }
}

impl ClaudeOptions {
    /// Nothing but an environment to inherit from.
    pub fn inheriting(environment: Vec<(OsString, OsString)>) -> Self {
        Self { environment, ..Self::default() }
    }

    /// Models to try for this agent where the chosen one is not to be had.
    pub(crate) fn fallback_models(&self, agent: &AgentId) -> &[String] {
        match self.agents.get(agent.as_str()) {
            Some(agent) if !agent.fallback_models.is_empty() => &agent.fallback_models,
            _ => &self.fallback_models,
        }
    }

    /// Returns the number of rounds of tools after which a turn of this agent fails; none where nothing bounds it.
    pub(crate) fn max_turns(&self, agent: &AgentId) -> Option<u32> {
        let own = self.agents.get(agent.as_str()).and_then(|agent| agent.max_turns);
        own.or(self.max_turns)
    }

    /// The settings by which conversations of this agent are summed up; none leaves it to the program.
    pub(crate) fn compaction(&self, agent: &AgentId) -> Option<&Compaction> {
        self.agents.get(agent.as_str()).map(|agent| &agent.compaction)
    }
}
