//! `offshoot key`.

use clap::Subcommand;
use offshoot_model::SessionKey;
use offshoot_session_key::{ParseKeyError, parent_subagent_key, subagent_depth};
use serde::Serialize;

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

/// A key taken apart.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Parsed<'a> {
    key: &'a str,
    agent_id: &'a str,
    kind: &'a str,
    depth: usize,
    parent: Option<SessionKey>,
    is_subagent: bool,
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
    let parsed = Parsed {
        key: key.as_str(),
        agent_id: key.agent_str(),
        kind: key.kind().as_str(),
        depth: key.depth(),
        parent: key.parent(),
        is_subagent: key.is_subagent(),
    };
    cx.output.result(&parsed, || {
        let parent = parsed.parent.as_ref().map_or("none", SessionKey::as_str);
        cx.output.line(format_args!(
            "key     {}\nagent   {}\nkind    {}\ndepth   {}\nparent  {parent}",
            parsed.key, parsed.agent_id, parsed.kind, parsed.depth
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
