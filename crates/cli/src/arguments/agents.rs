//! `offshoot agents`.

use clap::{Args, Subcommand};

/// Show which agents are defined
///
/// In the configuration, and in .offshoot/agents/*.md and .claude/agents/*.md of the project once it is trusted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot agents list
  offshoot agents show scout")]
pub(crate) struct AgentsArguments {
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents, one a line
    List,
    /// Show all that is known of one agent, and where each value comes from
    Show(AgentsShowArguments),
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
