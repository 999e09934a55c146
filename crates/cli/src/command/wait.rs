//! `offshoot wait`.

use offshoot_door::{
    Client, ContextGet, MergeOrder, RunName, Value, Wait, WaitMode, Waited, WireEnvelope,
};

use offshoot_model::EnvelopeError;

use super::context::print_file;
use super::merge::print_merged;
use super::spawn::call;
use crate::arguments::WaitArguments;
use crate::door::visit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// The form in which results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The envelope of one run.
    One,
    /// An array of envelopes.
    List,
}

/// Waits, and prints what came.
pub(crate) fn run(arguments: &WaitArguments, cx: &Invocation) -> Result<Exit, Failure> {
    block_on(async {
        let supervisor = visit(cx).await?;
        let wait = Wait {
            runs: arguments.runs.iter().cloned().map(RunName).collect(),
            mode: arguments.any.then_some(WaitMode::Any),
            timeout_ms: arguments.timeout.map(|seconds| seconds.saturating_mul(1000)),
            merge: arguments.merge.as_ref().map(|strategy| MergeOrder {
                strategy: strategy.clone(),
                on_failure: Some(arguments.on_failure.to_string()),
            }),
            ..Wait::default()
        };
        print(&supervisor, wait, Form::List, cx).await
    })
}

/// Waits with a supervisor at hand. What is still pending when the patience is over is named, and exit 1.
pub(super) async fn print(
    supervisor: &Client,
    wait: Wait,
    form: Form,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let any = wait.mode == Some(WaitMode::Any);
    let Waited { ended, pending, merged } = call(supervisor, wait).await?;
    let merges = merged.is_some();
    let mut exit = Exit::Done;
    if let Some(merged) = merged {
        exit = print_merged(supervisor, merged, cx).await?;
    } else if cx.output.wants_json() {
        match (form, &ended[..]) {
            (Form::One, [outcome]) => cx.output.json(outcome)?,
            _ => cx.output.json(&ended)?,
        }
    } else {
        for outcome in &ended {
            print_answer(supervisor, outcome, cx).await?;
        }
    }
    for outcome in &ended {
        if let Some(EnvelopeError { message, recovery_suggestion, .. }) = &outcome.error {
            cx.output.note(format_args!("run {}: {message}", outcome.run_id));
            if let Some(hint) = recovery_suggestion {
                cx.output.hint(hint);
            }
        }
    }
    let satisfied = pending.is_empty() || any && !ended.is_empty();
    if !satisfied {
        let ids: Vec<String> = pending.iter().map(ToString::to_string).collect();
        cx.output.note(format_args!("still running: {}", ids.join(" ")));
    }
    let all_well = ended.iter().all(|outcome| outcome.status.is_success());
    // Where a merge has its answer, runs that did not complete were not needed for it.
    let well = if merges { exit == Exit::Done } else { all_well };
    Ok(if well && satisfied { Exit::Done } else { Exit::AgentFailed })
}

/// The answer as it is: text without quotes, JSON as it came, large ones out of their file.
async fn print_answer(
    supervisor: &Client,
    outcome: &WireEnvelope,
    cx: &Invocation,
) -> Result<(), Failure> {
    let Some(data) = &outcome.data else { return Ok(()) };
    if let Some(text) = outcome.text() {
        return cx.output.line(text);
    }
    let Some(name) = outcome.name.clone() else { return cx.output.line(data.as_str()) };
    print_value(supervisor, name, cx).await
}

/// A value of the session as it is, out of its file where it is large.
pub(super) async fn print_value(
    supervisor: &Client,
    name: String,
    cx: &Invocation,
) -> Result<(), Failure> {
    let whole = ContextGet { name: name.clone(), ..ContextGet::default() };
    let read = call(supervisor, whole).await?;
    match read.value {
        Value::Text(text) => cx.output.line(text),
        Value::Json(json) => cx.output.line(json.as_str()),
        Value::Path(path) => {
            print_file(supervisor, &name, path.as_ref(), cx).await?;
            cx.output.bytes(b"\n")
        }
        Value::Base64(_) | Value::File(_) => Err(Failure::new(
            Exit::AgentFailed,
            "the supervisor sent bytes where a file was expected",
        )),
    }
}
