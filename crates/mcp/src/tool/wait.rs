//! The tool `sessions_wait`.

use offshoot_door::{Client, Merged, RunName, Wait, WaitMode, Waited, WireEnvelope};
use offshoot_model::{JsonText, RunId};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use super::merging::Merging;
use crate::answer::{CallFailure, json};
use crate::patience::Patience;

pub(super) const WORDS: &str = "\
Block until children have ended, and get their results. If it takes long, the answer is `pending`: ask again.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// Run ids or session keys. Default: children not heard of yet.
    #[serde(default)]
    runs: Vec<String>,
    /// (Until all have ended, or one.)
    #[serde(default)]
    mode: WaitMode,
    /// (The longest wait. The children go on.)
    timeout_seconds: Option<u64>,
    /// One answer of all.
    merge: Option<Merging>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: &'static str,
    ended: Vec<WireEnvelope>,
    pending: Vec<RunId>,
    merged: Option<Merged>,
    /// For a model that asks in a loop.
    note: Option<String>,
}

pub(super) async fn call(
    client: &Client,
    arguments: Arguments,
    patience: &Patience<'_>,
) -> Result<JsonText, CallFailure> {
    let Arguments { runs, mode, timeout_seconds, merge } = arguments;
    let is_unnamed = runs.is_empty() && merge.is_none();
    let wait = Wait {
        runs: runs.into_iter().map(RunName).collect(),
        mode: Some(mode),
        merge: merge.map(Merging::order),
        ..Wait::default()
    };
    let mut answer = answer(mode, patience.wait(client, wait.clone(), timeout_seconds).await?);
    let open = !answer.pending.is_empty();
    if open && answer.status == "ended" && patience.repeats.would_repeat(&json(&answer)) {
        // One of them ended before, and that was told: this waits for the next.
        let runs = answer.pending.iter().copied().map(RunName::from).collect();
        let next = Wait { runs, merge: None, ..wait.clone() };
        patience.wait(client, next, timeout_seconds).await?;
        answer = self::answer(mode, patience.wait(client, wait, Some(0)).await?);
    }
    answer.note = patience.repeats.told(json(&answer));
    if is_unnamed {
        patience.repeats.leave_out_heard(&mut answer.ended, |envelope| envelope.run_id);
    }
    Ok(json(&answer))
}

/// The answer; `ended`, unless the wait goes on.
fn answer(mode: WaitMode, waited: Waited) -> Answer {
    let Waited { ended, pending, merged } = waited;
    let has_come = pending.is_empty() || mode == WaitMode::Any && !ended.is_empty();
    let status = if has_come { "ended" } else { "pending" };
    Answer { status, ended, pending, merged, note: None }
}
