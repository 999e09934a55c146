//! `offshoot send`.

use offshoot_door::{RunName, Send};

use super::spawn::call;
use crate::arguments::SendArguments;
use crate::door::reach;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Writes into a session.
pub(crate) fn run(arguments: &SendArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let SendArguments { to, text } = arguments;
    block_on(async {
        let (supervisor, to) = reach(to, cx).await?;
        call(&supervisor, Send { to: RunName(to), text: text.clone() }).await?;
        Ok(Exit::Done)
    })
}
