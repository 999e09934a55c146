//! `offshoot agents`.

use clap::{Args, Subcommand};

/// Show which agents are defined
///
/// In the configuration, and in .offshoot/agents/*.md and .claude/agents/*.md of the project once it is trusted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot agents list
  offshoot agents list --capabilities
  offshoot agents show scout")]
pub(crate) struct AgentsArguments {
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents, one a line
    List(AgentsListArguments),
    /// Show all that is known of one agent, and where each value comes from
    Show(AgentsShowArguments),
}

/// `offshoot agents list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot agents list
  Which agent may delegate to which, how deep and with which tools:
    offshoot agents list --capabilities
  The cycles that a tree could run through:
    offshoot agents list --capabilities --json | jq '.cycles[] | select(.allowed) | .path'")]
pub(crate) struct AgentsListArguments {
    /// List below each agent the agents to which it may delegate, then the cycles that delegations can form
    ///
    /// Each agent is taken as the root of a tree, and an agent below it, behind an arrow, as a child of that root. The columns
    /// are the deepest level that a tree below it may reach, the tools that it gets, and the reason for which it is preferred or its description, or the
    /// setting that forbids it children. Of each delegation that can come back the shortest cycle is listed, and whether the settings allow it.
    #[arg(long)]
    pub(crate) capabilities: bool,
}

/// `offshoot agents show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot agents show scout
  offshoot agents show scout --json")]
pub(crate) struct AgentsShowArguments {
    /// The agent
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}
