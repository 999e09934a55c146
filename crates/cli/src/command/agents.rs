//! `offshoot agents`.

mod capabilities;

use std::sync::Arc;

use clap::Subcommand;
use indexmap::IndexMap;
use offshoot_config::{AgentDefinition, AgentId, Config, Valued};
use offshoot_door::Status;
use offshoot_model::AgentSummary;
use serde::Serialize;
use serde_json::Value;

use crate::arguments::LimitArguments;
use crate::code::NoteCode;
use crate::door::inside;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;

/// Show which agents are defined
///
/// In the configuration, and in .offshoot/agents/*.md and .claude/agents/*.md of the project once it is trusted.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  offshoot agents list
  offshoot agents list --capabilities
  offshoot agents show scout")]
pub(crate) enum AgentsCommand {
    /// List the agents, one a line
    #[command(after_help = "\
Examples:
  offshoot agents list
  Which agent may delegate to which, how deep and with which tools:
    offshoot agents list --capabilities
  The cycles that a tree could run through:
    offshoot agents list --capabilities --json | jq '.cycles[] | select(.allowed) | .path'")]
    List {
        /// List below each agent the agents to which it may delegate, then the cycles that delegations can form
        ///
        /// Each agent is taken as the root of a tree, and an agent below it, behind an arrow, as a child of that root. The columns
        /// are the deepest level that a tree below it may reach, the tools that it gets, and the reason for which it is preferred or its description, or the
        /// setting that forbids it children. Of each delegation that can come back the shortest cycle is listed, and whether the settings allow it.
        #[arg(long)]
        capabilities: bool,
    },
    /// Show all that is known of one agent, and where each value comes from
    #[command(after_help = "\
Examples:
  offshoot agents show scout
  offshoot agents show scout --json")]
    Show {
        /// The agent
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// One agent in a list.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: AgentId,
    description: Option<String>,
    runtime: Option<String>,
    /// The place where it was defined last.
    origin: String,
}

/// All that is known of one agent.
#[derive(Serialize)]
struct Shown {
    id: AgentId,
    /// The values of the definition itself.
    values: IndexMap<String, Valued<Value>>,
    /// The limits of a tree with this agent as its root.
    limits: IndexMap<String, Valued<Value>>,
}

/// Lists agents, or shows one.
pub(crate) fn run(command: AgentsCommand, cx: &Invocation) -> Result<(), Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
    match command {
        AgentsCommand::List { capabilities: true } => {
            for undefined in load::undefined_children(&config, None) {
                cx.output.warning(NoteCode::ChildNotDefined, undefined.text);
            }
            capabilities::print(&config, cx)
        }
        AgentsCommand::List { capabilities: false } => {
            match inside(cx, async |supervisor| Ok(supervisor.call(Status::default()).await?))? {
                Some(session) => list_for(&session.agents, cx),
                None => list(&config, cx),
            }
        }
        AgentsCommand::Show { id } => show(&config, &id, cx),
    }
}

fn list(config: &Config, cx: &Invocation) -> Result<(), Failure> {
    let default = config.default_agent();
    let built_in = (config.agent(default).is_none()).then(|| Listed {
        id: default.clone(),
        description: None,
        runtime: None,
        origin: "built-in".to_owned(),
    });
    let agents: Vec<Listed> = built_in.into_iter().chain(config.agents().map(listed)).collect();
    let row = |agent: &Listed| {
        let description = agent.description.as_deref().unwrap_or_default();
        let line = description.lines().next().unwrap_or_default().to_owned();
        let runtime = agent.runtime.clone().unwrap_or_default();
        [agent.id.to_string(), runtime, agent.origin.clone(), line]
    };
    let headings = ["AGENT", "RUNTIME", "DEFINED IN", "DESCRIPTION"];
    cx.output.result(&agents, || cx.output.listing(headings, agents.iter().map(row)))
}

/// Lists the agents that the session may start in which the command runs.
fn list_for(agents: &[AgentSummary], cx: &Invocation) -> Result<(), Failure> {
    let line = |text: &Option<Arc<str>>| {
        text.as_deref().and_then(|text| text.lines().next()).unwrap_or_default().to_owned()
    };
    let row =
        |agent: &AgentSummary| [agent.id.to_string(), line(&agent.why), line(&agent.description)];
    let headings = ["AGENT", "FOR", "DESCRIPTION"];
    cx.output.result(&agents, || cx.output.listing(headings, agents.iter().map(row)))
}

fn listed(agent: &AgentDefinition) -> Listed {
    Listed {
        id: agent.id().clone(),
        description: agent.description.as_ref().map(|text| text.value.clone()),
        runtime: agent.runtime.as_ref().map(|name| name.value.clone()),
        origin: agent.origin().to_string(),
    }
}

fn show(config: &Config, id: &str, cx: &Invocation) -> Result<(), Failure> {
    let id = load::agent(config, id)?;
    let prefix = format!("agents.list[{id}].");
    let own = |(key, value): (String, Valued<Value>)| {
        Some((key.strip_prefix(&prefix)?.to_owned(), value))
    };
    let shown = Shown {
        values: config.values().filter_map(own).collect(),
        limits: config.resolve(&id).filter(|(_, valued)| !valued.value.is_null()).collect(),
        id,
    };
    cx.output.result(&shown, || {
        cx.output.line(&shown.id)?;
        cx.output.values("  ", &shown.values)?;
        cx.output.line("limits of a tree with this root:")?;
        cx.output.values("  ", &shown.limits)
    })
}
