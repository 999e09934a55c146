//! `offshoot mcp`.

use std::time::Duration;

use offshoot_door::ClientError;
use offshoot_mcp::{Options, ServeError, serve_stdio};

use crate::arguments::McpArguments;
use crate::door::{refused, visit};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Serves until the client closes standard input.
pub(crate) fn run(arguments: &McpArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let mut options = Options::default();
    if let Some(seconds) = arguments.patience {
        options.patience = Duration::from_secs(seconds);
    }
    block_on(async {
        let supervisor = visit(cx).await?;
        match serve_stdio(supervisor, options).await {
            Ok(()) => Ok(Exit::Done),
            Err(ServeError::Standing(error @ ClientError::Refused(_))) => Err(refused(&error)),
            Err(error) => Err(Failure::of(Exit::BadInput, &error).maybe_hint(error.hint())),
        }
    })
}
