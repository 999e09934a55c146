//! `offshoot pause` and `offshoot unpause`.

use offshoot_door::Pause;

use super::spawn::call;
use crate::door::reach;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Stops admission and starts in the tree of a run, or lets them go on.
pub(crate) fn run(run: &str, paused: bool, cx: &Invocation) -> Result<Exit, Failure> {
    block_on(async {
        let (supervisor, run) = reach(run, cx).await?;
        call(&supervisor, Pause { paused }).await?;
        if paused {
            cx.output.note(format_args!(
                "nothing more is started in this tree, and what runs goes on; `offshoot unpause {run}` ends that"
            ));
        }
        Ok(Exit::Done)
    })
}
