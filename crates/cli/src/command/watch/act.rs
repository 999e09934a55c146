//! Actions of the operator, by the same ways as the commands of that name.

use std::sync::Arc;

use futures_util::future::{FutureExt, LocalBoxFuture};
use offshoot_door::RunName;
use offshoot_watch::{Intent, Screen};

use super::Trees;
use crate::command::{budget, cancel, pause, send};
use crate::failure::Failure;

/// Does it, and says what it changed.
pub(super) fn act(
    intent: Intent,
    screen: &Screen,
    trees: &Arc<Trees>,
) -> LocalBoxFuture<'static, Result<String, Failure>> {
    let trees = Arc::clone(trees);
    match intent {
        Intent::Quit | Intent::Suspend | Intent::Redraw | Intent::Copy(_) => {
            unreachable!("the terminal does that")
        }
        Intent::Cancel { root, run, alive } => async move {
            let supervisor = trees.supervisor(root).await?;
            cancel::end(&supervisor, RunName::from(run), false).await?;
            Ok(cancel::asked(alive))
        }
        .boxed_local(),
        Intent::Pause { root, paused } => {
            let before = screen.paused(root);
            async move { pause::set(&trees.supervisor(root).await?, paused, before).await }
                .boxed_local()
        }
        Intent::Budget { root, run, add } => async move {
            let supervisor = trees.supervisor(root).await?;
            budget::raise(&supervisor, run.to_string(), add).await
        }
        .boxed_local(),
        Intent::Send { root, run, text } => async move {
            let supervisor = trees.supervisor(root).await?;
            send::write(&supervisor, run.to_string(), text).await?;
            Ok("the letter is written; it is read in the next turn".to_owned())
        }
        .boxed_local(),
    }
}
