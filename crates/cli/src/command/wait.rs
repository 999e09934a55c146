//! `offshoot wait`.

use std::time::Duration;

use clap::Args;
use offshoot_display::neutral;
use offshoot_door::{Client, MergeOrder, RunName, Tree, Wait, WaitMode, Waited, WireEnvelope};
use offshoot_merge::OnFailure;
use offshoot_model::{EnvelopeError, RunId, first_failure};

use super::context::print_whole;
use super::merge::print_merged;
use crate::arguments::strategies;
use crate::arguments::value::duration;
use crate::arguments::words::{ON_FAILURE, one_of};
use crate::code::NoteCode;
use crate::door::visit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Wait for children, from inside an agent
///
/// Prints their answers in the order asked. The slot of the waiting agent is lent meanwhile, so a tree of any depth
/// finishes with a single slot.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  All children, in the order in which they were asked for:
    \"$OFFSHOOT\" wait
  The first of two that ends, as JSON, for a minute at most:
    \"$OFFSHOOT\" wait --any --timeout 1m --json 0198c7 0198c8
  Their sum, by a jq program:
    \"$OFFSHOOT\" wait --merge 'plugin:merge-jq=map(.value | tonumber) | add'")]
pub(crate) struct WaitArguments {
    /// The runs to wait for [default: the children that the session has not heard of yet, or all]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Until one of them has ended
    #[arg(long)]
    pub(crate) any: bool,

    #[arg(help = strategies(
        "Print their answers as one",
        "or by a plugin that was there when the tree began",
        "; what an early answer does not need is cancelled"
    ))]
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) merge: Option<String>,

    /// With --merge: what a run that did not complete means
    #[arg(long, value_name = "POLICY", value_parser = one_of(ON_FAILURE), default_value = "fail", requires = "merge")]
    pub(crate) on_failure: OnFailure,

    /// Give up after this time, such as 90s; the children go on
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

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
            timeout_ms: arguments
                .timeout
                .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            merge: arguments.merge.as_ref().map(|strategy| MergeOrder {
                strategy: strategy.clone(),
                on_failure: Some(arguments.on_failure.to_string()),
                separator: None,
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
    let Waited { ended, pending, merged } = supervisor.call(wait).await?;
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
        if let Some(error) = &outcome.error {
            tell_failure(supervisor, outcome.run_id, error, cx).await;
            if let Some(said) = &error.said {
                cx.output.said(said);
            }
            if let Some(hint) = &error.recovery_suggestion {
                cx.output.hint(NoteCode::AdviceOfEnd, hint);
            }
        }
    }
    let satisfied = pending.is_empty() || any && !ended.is_empty();
    if !satisfied {
        let ids: Vec<String> = pending.iter().map(ToString::to_string).collect();
        cx.output.note(NoteCode::StillRunning, format_args!("still running: {}", ids.join(" ")));
    }
    let all_well = ended.iter().all(|outcome| outcome.status.is_success());
    // Where a merge has its answer, runs that did not complete were not needed for it.
    let well = if merges { exit == Exit::Done } else { all_well };
    Ok(if well && satisfied { Exit::Done } else { Exit::AgentFailed })
}

/// Says why a run failed, or which run below it failed first.
pub(super) async fn tell_failure(
    supervisor: &Client,
    run: RunId,
    error: &EnvelopeError,
    cx: &Invocation,
) {
    let summary = error.summary();
    let first = first_failure(summary);
    if first != summary {
        // It has its name, and what stands below the line was said about it.
        return cx.output.note(NoteCode::RunFailed, first);
    }
    // Only for people: a run without a label has its id.
    let found = supervisor.call(Tree { run: Some(run.into()), all: true }).await;
    let label = found.ok().and_then(|found| found.roots.into_iter().next()?.label);
    let label = label.map(|label| format!(" ({})", neutral::line(&label))).unwrap_or_default();
    // Its last words stand above, so that the last line says which run it was and why.
    if let Some((_, said)) = error.message.split_once('\n') {
        cx.output.note(NoteCode::LastWords, said);
    }
    cx.output.note(NoteCode::RunFailed, format_args!("run {run}{label}: {summary}"));
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
    print_whole(supervisor, name, "\n", cx).await
}
