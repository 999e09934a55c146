//! `offshoot mcp`.

mod root;

use std::time::Duration;

use clap::Args;
use offshoot_door::ClientError;
use offshoot_mcp::{Options, RightsOf, ServeError, serve_stdio, tools_json, tools_markdown};
use offshoot_runtime_claude::rights_of;

use crate::arguments::value::duration;
use crate::arguments::{LimitArguments, WorkArguments};
use crate::code::NoteCode;
use crate::door::above;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Serve a model tools for spawning agents, over MCP on standard input and output
///
/// For the configuration of a model's command line, which starts it and talks to it. It offers sessions_spawn, sessions_wait
/// and more: those that the session may use. Inside an agent the session is that agent's. Anywhere else it is a root of its
/// own, which is opened with the first call and ends when the client closes standard input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  As the configuration of a client; inside an agent as well as outside:
    {\"mcpServers\": {\"offshoot\": {\"command\": \"offshoot\", \"args\": [\"mcp\"]}}}
  For Claude Code of your own, with children that are Claude Code too:
    claude mcp add offshoot -- offshoot mcp --budget-usd 5
  With children that run a program:
    offshoot mcp --max-spawns 20 -- my-agent")]
pub(crate) struct McpArguments {
    /// The longest time that a call blocks; what is pending then is named [default: 45s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) patience: Option<Duration>,

    /// Offer one tool more, `permission`, for Claude Code's --permission-prompt-tool: the rights of the session answer
    #[arg(long)]
    pub(crate) permission_tool: bool,

    /// Print the tools and their arguments, and exit
    #[arg(long)]
    pub(crate) list_tools: bool,

    /// The treatment of the children when the client of a root of its own goes: `cascade` ends them [default: as
    /// subagents.onParentEnd says]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_client_gone: Option<OnClientGone>,

    /// The agent that a root of its own is, by its id in the configuration [default: main]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// The runtime of its children, where their agent does not say
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,

    /// A short name for people, shown in the tree
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,

    /// The program that children run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The treatment of children whose client has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnClientGone {
    /// The children end, softly first
    Cascade,
}

impl McpArguments {
    /// As the work of a root.
    pub(crate) fn work(&self) -> WorkArguments {
        WorkArguments {
            agent: self.agent.clone(),
            runtime: self.runtime.clone(),
            label: self.label.clone(),
            limits: self.limits.clone(),
            ..WorkArguments::default()
        }
    }

    /// True if an argument was given that only a root of its own has.
    pub(crate) fn is_for_a_root(&self) -> bool {
        let Self {
            patience: _,
            permission_tool: _,
            list_tools: _,
            on_client_gone,
            agent,
            runtime,
            label,
            limits,
            command,
        } = self;
        let named = agent.is_some() || runtime.is_some() || label.is_some();
        named || on_client_gone.is_some() || !limits.flags().is_empty() || !command.is_empty()
    }
}

/// Serves until the client closes standard input: the session of the agent that this process belongs to, or where it
/// belongs to none, a root of its own.
pub(crate) fn run(arguments: &McpArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if arguments.list_tools {
        cx.output.result(&tools_json(), || cx.output.line(tools_markdown().trim_end()))?;
        return Ok(Exit::Done);
    }
    let permission = arguments.permission_tool.then_some(rights_of as RightsOf);
    let usual = Options::default();
    let patience = arguments.patience.unwrap_or(usual.patience);
    let options = Options { permission, patience, ..usual };
    block_on(async {
        let Some(supervisor) = above(cx).await? else {
            return root::serve(arguments, options, cx).await;
        };
        if arguments.is_for_a_root() {
            cx.output.note(
                NoteCode::LimitsOfTree,
                "this session has its limits from its tree; those given here do nothing",
            );
        }
        ended(serve_stdio(supervisor, options).await)
    })
}

fn ended(served: Result<(), ServeError>) -> Result<Exit, Failure> {
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(ServeError::Status(error @ ClientError::Refused(_))) => Err(error.into()),
        Err(error) => Err(Failure::of(Exit::BadInput, &error).maybe_hint(error.hint())),
    }
}
