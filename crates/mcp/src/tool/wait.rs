//! `sessions_wait`.

use offshoot_door::{Client, Merged, Outcome, RunName, Wait, WaitMode, Waited};
use offshoot_model::{JsonText, RunId};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use super::merging::Merging;
use crate::answer::{CallFailure, json};
use crate::patience::Patience;

pub(super) const WORDS: &str = "\
Block until children have ended, and get their results. Answers `pending` with what there is when it takes long: ask \
again. The same results are given as often as they are asked for. With `merge` they come as one answer too, and what there \
is of it meanwhile comes with `pending`.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// Run ids or session keys; where absent, the children that you have not heard of yet.
    #[serde(default)]
    runs: Vec<String>,
    /// Until all have ended, or until one has.
    #[serde(default)]
    mode: Mode,
    /// Answer after so many seconds whatever there is; the children go on.
    timeout_seconds: Option<u64>,
    /// Their results as one answer. What it does not need any more it cancels: `first`, `quorum:N` and a plugin
    /// that has its answer early end the others.
    merge: Option<Merging>,
}

/// For how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// All of them.
    #[default]
    All,
    /// One of them.
    Any,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: &'static str,
    ended: Vec<Outcome>,
    pending: Vec<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merged: Option<Merged>,
}

pub(super) async fn call(
    client: &Client,
    arguments: Arguments,
    patience: &Patience,
) -> Result<JsonText, CallFailure> {
    let Arguments { runs, mode, timeout_seconds, merge } = arguments;
    let wait = Wait {
        runs: runs.into_iter().map(RunName).collect(),
        mode: Some(match mode {
            Mode::All => WaitMode::All,
            Mode::Any => WaitMode::Any,
        }),
        merge: merge.map(Merging::order),
        ..Wait::default()
    };
    let waited = patience.wait(client, wait, timeout_seconds).await?;
    let status = status(mode, &waited);
    let Waited { ended, pending, merged } = waited;
    Ok(json(&Answer { status, ended, pending, merged }))
}

/// Whether what was waited for has come.
fn status(mode: Mode, waited: &Waited) -> &'static str {
    let come = waited.pending.is_empty() || mode == Mode::Any && !waited.ended.is_empty();
    if come { "ended" } else { "pending" }
}
