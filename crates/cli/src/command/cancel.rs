//! `offshoot cancel`.

use offshoot_door::{Cancel, RunName};

use super::spawn::call;
use crate::arguments::CancelArguments;
use crate::door::reach;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Ends a run: inside an agent one below it, else any that is alive.
pub(crate) fn run(arguments: &CancelArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let CancelArguments { run, only } = arguments;
    block_on(async {
        let (supervisor, run) = reach(run, cx).await?;
        call(&supervisor, Cancel { run: RunName(run), only: *only }).await?;
        Ok(Exit::Done)
    })
}
