//! `offshoot mcp`.

use clap::Args;

/// Serve a model the tools of its session over MCP, from inside an agent
///
/// For the configuration of a model's command line, which starts it and talks to it on standard input and output. It
/// offers sessions_spawn, sessions_wait and more: those that the session may use.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  As the configuration of a client that has the variables of its agent:
    {\"mcpServers\": {\"offshoot\": {\"command\": \"offshoot\", \"args\": [\"mcp\"]}}}")]
pub(crate) struct McpArguments {
    /// Seconds that a call blocks at most; what is pending then is named [default: 45]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) patience: Option<u64>,
}
