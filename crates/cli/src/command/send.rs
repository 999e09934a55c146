//! `offshoot send`.

use offshoot_door::{Client, RunName, Send};

use crate::arguments::SendArguments;
use crate::door::reach;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Writes into a session.
pub(crate) fn run(arguments: &SendArguments, cx: &Invocation) -> Result<(), Failure> {
    let SendArguments { to, text } = arguments;
    block_on(async {
        let (supervisor, to) = reach(to, cx).await?;
        write(&supervisor, to, text.clone()).await?;
        Ok(())
    })
}

/// Has a supervisor write into a session.
pub(super) async fn write(supervisor: &Client, to: String, text: String) -> Result<(), Failure> {
    supervisor.call(Send { to: RunName(to), text }).await?;
    Ok(())
}
