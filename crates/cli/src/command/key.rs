//! `offshoot key`.

use clap::Subcommand;
use offshoot_model::SessionKey;
use offshoot_session_key::{ParseKeyError, parent_subagent_key, subagent_depth};
use serde_json::json;

use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Look into a session key
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Say what a key is made of; a malformed key is an error that shows the place
    #[command(after_help = "\
Example:
  offshoot key parse agent:main:subagent:a:sub:b --json")]
    Parse {
        /// The session key
        #[arg(value_name = "KEY", allow_hyphen_values = true)]
        key: String,
    },
    /// Print how deep a session is; 0 also for what is no key
    #[command(after_help = "\
Example:
  offshoot key depth agent:main:subagent:a:sub:b")]
    Depth {
        /// The session key
        #[arg(
            value_name = "KEY",
            default_value = "",
            allow_hyphen_values = true,
            hide_default_value = true
        )]
        key: String,
    },
    /// Print the key of the parent; exits 1 where there is none
    #[command(after_help = "\
Example:
  offshoot key parent agent:main:subagent:a:sub:b")]
    Parent {
        /// The session key
        #[arg(
            value_name = "KEY",
            default_value = "",
            allow_hyphen_values = true,
            hide_default_value = true
        )]
        key: String,
    },
}

/// Answers about one key.
pub(crate) fn run(command: KeyCommand, cx: &Invocation) -> Result<Exit, Failure> {
    match command {
        KeyCommand::Parse { key } => parse(&key, cx)?,
        // For scripts: what is no key is a root.
        KeyCommand::Depth { key } => cx.output.line(subagent_depth(Some(&key)))?,
        KeyCommand::Parent { key } => return parent(&key, cx),
    }
    Ok(Exit::Done)
}

fn parse(key: &str, cx: &Invocation) -> Result<(), Failure> {
    let key = SessionKey::parse(key).map_err(|error| malformed(&error))?;
    let (agent, kind, depth) = (key.agent_str(), key.kind().as_str(), key.depth());
    let parent = key.parent();
    let parsed = json!({
        "key": key, "agentId": agent, "kind": kind, "depth": depth, "parent": parent,
        "isSubagent": key.is_subagent(),
    });
    cx.output.result(&parsed, || {
        let parent = parent.as_ref().map_or("none", SessionKey::as_str);
        cx.output.line(format_args!(
            "key     {key}\nagent   {agent}\nkind    {kind}\ndepth   {depth}\nparent  {parent}"
        ))
    })
}

fn parent(key: &str, cx: &Invocation) -> Result<Exit, Failure> {
    let parent = parent_subagent_key(Some(key));
    cx.output.result(&parent, || parent.iter().try_for_each(|parent| cx.output.line(parent)))?;
    // One is the answer "no" here, as with grep.
    Ok(if parent.is_some() { Exit::Done } else { Exit::AgentFailed })
}

/// The message of a malformed key: what, then the key with a caret under the place.
pub(crate) fn malformed(error: &ParseKeyError) -> Failure {
    Failure::input(FailureCode::MalformedKey, error.report()).hint(error.hint())
}
