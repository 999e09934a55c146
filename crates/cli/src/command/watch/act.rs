//! Actions of the operator, by the same ways as the commands of that name.

use std::sync::Arc;

use offshoot_door::{Cancel, RunName, Send};
use offshoot_model::Timestamp;
use offshoot_watch::Intent;

use super::Trees;
use crate::command::{budget, cancel, pause};
use crate::failure::Failure;

/// Does it, and says what it changed. A tree that is to be paused or to go on was paused since `paused_since`.
pub(super) async fn act(
    intent: Intent,
    paused_since: Option<Timestamp>,
    trees: Arc<Trees>,
) -> Result<String, Failure> {
    match intent {
        Intent::Quit | Intent::Suspend | Intent::Redraw | Intent::Copy(_) => {
            unreachable!("the terminal does that")
        }
        Intent::Cancel { root, run, alive } => {
            let cancel = Cancel { run: RunName::from(run), only: false };
            trees.supervisor(root).await?.call(cancel).await?;
            Ok(cancel::asked(alive))
        }
        Intent::Pause { root, paused } => {
            pause::set(&trees.supervisor(root).await?, paused, paused_since).await
        }
        Intent::Budget { root, run, add } => {
            budget::raise(&trees.supervisor(root).await?, run.to_string(), add).await
        }
        Intent::Send { root, run, text } => {
            let send = Send { to: RunName::from(run), text };
            trees.supervisor(root).await?.call(send).await?;
            Ok("the letter is written; it is read in the next turn".to_owned())
        }
    }
}
