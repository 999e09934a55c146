//! `offshoot init`.

use clap::Args;

/// Write a configuration and an example agent for the project in this folder
///
/// Writes .offshoot/config.toml with every key, commented out, and .offshoot/agents/example.md. A file that is there
/// already stays as it is. Both take effect after `offshoot trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot init
  offshoot init --mcp")]
pub(crate) struct InitArguments {
    /// Write .mcp.json too: clients such as Claude Code find the server `offshoot mcp` there
    #[arg(long)]
    pub(crate) mcp: bool,
}
