//! `offshoot send`.

use clap::Args;
use offshoot_door::{RunName, Send};

use crate::door::reach;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Write into a running session
///
/// The run reads the message in its next turn, or in this one where its runtime can take it. From inside an agent only
/// sessions below it can be reached; a command reads no messages.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot send 0198c7 'leave the tests alone'
    \"$OFFSHOOT\" send \"$child\" 'be brief'")]
pub(crate) struct SendArguments {
    /// To whom: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "KEY")]
    pub(crate) to: String,

    /// The message
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}

/// Writes into a session.
pub(crate) fn run(arguments: &SendArguments, cx: &Invocation) -> Result<(), Failure> {
    let SendArguments { to, text } = arguments;
    block_on(async {
        let (supervisor, to) = reach(to, cx).await?;
        supervisor.call(Send { to: RunName(to), text: text.clone() }).await?;
        Ok(())
    })
}
