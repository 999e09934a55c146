//! `offshoot mcp`.

mod root;

use offshoot_door::ClientError;
use offshoot_mcp::{Options, RightsOf, ServeError, serve_stdio, tools_json, tools_markdown};

use offshoot_runtime_claude::rights_of;

use crate::arguments::McpArguments;
use crate::code::NoteCode;
use crate::door::above;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Serves until the client closes standard input: the session of the agent that this process belongs to, or where it
/// belongs to none, a root of its own.
pub(crate) fn run(arguments: &McpArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if arguments.list_tools {
        cx.output.result(&tools_json(), || cx.output.line(tools_markdown().trim_end()))?;
        return Ok(Exit::Done);
    }
    let permission = arguments.permission_tool.then_some(rights_of as RightsOf);
    let mut options = Options { permission, ..Options::default() };
    if let Some(patience) = arguments.patience {
        options.patience = patience;
    }
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
