//! The report of a tree: the answer on standard output, failures on standard error, and the exit code.

use std::collections::HashSet;
use std::sync::Arc;

use offshoot_merge::MergeError;
use offshoot_model::{
    AgentId, CancelledBy, Cost, Envelope, EnvelopeError, Refusal, RefusalCode, RootId, RunId,
    RunStatus, SessionKey, TreeNode, Usage,
};
use offshoot_spawner::FanAnswer;
use serde::Serialize;

use super::data::Data;
use super::engine::Engine;
use super::interrupt::Interrupted;
use super::pieces::AnswerRules;
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::record;

/// As many failures are told one by one.
const TOLD: usize = 10;
/// More different advice than this is none.
const ADVICE: usize = 3;

/// `--json`: the envelope of the root, the tree, and what did not complete.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<EnvelopeError>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    session_key: &'a SessionKey,
    run_id: RunId,
    agent: &'a AgentId,
    depth: u32,
    usage: Usage,
    cost: Cost,
    execution_time_ms: u64,
    tree: &'a TreeNode,
    /// The first ones.
    failures: Vec<PieceFailure<'a>>,
    /// The number of failures that are not among them.
    #[serde(skip_serializing_if = "is_zero")]
    more_failures: u32,
}

/// A piece that did not complete.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PieceFailure<'a> {
    key: &'a str,
    /// Absent where it was not even admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope: Option<&'a Envelope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a Refusal>,
}

/// Reports a map or a fanout.
pub(crate) fn pieces(
    engine: &Engine,
    root: RootId,
    answer: &FanAnswer,
    terms: &AnswerRules,
    interrupted: Interrupted,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let tree = tree(engine, root)?;
    let values = answer.values(Arc::clone(&engine.store));
    let exit = exit(answer, interrupted);
    let has_answer = match &answer.verdict {
        Ok(()) => exit == Exit::Done || answer.completed > 0,
        // Nothing at all is no partial answer: a sum of no piece would look like one.
        Err(MergeError::PiecesFailed { .. }) => answer.completed > 0,
        // Results that do not merge have no answer.
        Err(_) => false,
    };
    if cx.output.wants_json() {
        let failures = answer.failures.iter().map(|(key, envelope)| PieceFailure {
            key,
            envelope: Some(envelope),
            refusal: None,
        });
        let refused = answer.refused.iter().map(|refused| PieceFailure {
            key: &refused.key,
            envelope: None,
            refusal: Some(&refused.refusal),
        });
        // The record knows whether the tree was stopped; the results of its pieces do not.
        let recorded = engine.store.ending(root, root.run())?;
        let error = EnvelopeError::of(&recorded.unwrap_or_else(|| answer.ending()));
        cx.output.json(&Report {
            status: tree.status,
            data: has_answer.then_some(Data::Merged(&answer.answer, &values)),
            partial: error.is_some() && has_answer,
            error,
            session_key: &tree.session_key,
            run_id: tree.run_id,
            agent: &tree.agent,
            depth: tree.depth,
            usage: tree.own_usage,
            cost: tree.cost,
            execution_time_ms: tree.execution_time_ms.unwrap_or(0),
            tree: &tree,
            failures: failures.chain(refused).collect(),
            more_failures: unlisted(answer),
        })?;
    } else if has_answer {
        cx.output.answer(&answer.answer, &values)?;
    }
    if exit == Exit::Done {
        tell_what_is_missing(answer, cx);
    } else if interrupted == Interrupted::No {
        tell_what_failed(answer, terms, cx);
    }
    tell_how_to_go_on(answer, terms, interrupted, tree.run_id, cx);
    Ok(exit)
}

/// Prints the answer of a run that is over while others below it are not, and says so. JSON is one value, and waits for
/// them. Answers whether it has printed.
pub(crate) fn early(
    engine: &Engine,
    envelope: &Envelope,
    remaining: usize,
    cx: &Invocation,
) -> Result<bool, Failure> {
    if remaining == 0 || cx.output.wants_json() {
        return Ok(false);
    }
    answer(engine, envelope, cx)?;
    let runs = if remaining == 1 { "run goes" } else { "runs go" };
    cx.output.note(format_args!("{remaining} more {runs} on below it; Ctrl-C stops what is left"));
    Ok(true)
}

/// Reports a run. `printed` where its answer was printed before.
pub(crate) fn run(
    engine: &Engine,
    root: RootId,
    envelope: &Envelope,
    printed: bool,
    interrupted: Interrupted,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    if cx.output.wants_json() {
        let tree = tree(engine, root)?;
        let data = envelope.data.as_ref().map(|data| record::at_hand(&*engine.store, data));
        cx.output.json(&Report {
            status: envelope.status,
            data: data.transpose()?.map(Data::Payload),
            error: envelope.error.clone(),
            partial: envelope.partial,
            session_key: &envelope.session_key,
            run_id: envelope.run_id,
            agent: &envelope.agent,
            depth: envelope.depth,
            usage: envelope.usage,
            // With what its children cost, as of a tree of pieces.
            cost: tree.cost,
            execution_time_ms: envelope.execution_time_ms,
            tree: &tree,
            failures: Vec::new(),
            more_failures: 0,
        })?;
    } else if !printed {
        answer(engine, envelope, cx)?;
    }
    if let Some(error) = &envelope.error {
        cx.output.error(&complaint(error.message.clone(), error.recovery_suggestion.clone()));
    }
    Ok(match (interrupted, &envelope.error) {
        (Interrupted::Yes, _) => Exit::Interrupted,
        (Interrupted::No, Some(error)) => exit_of(&error.code),
        (Interrupted::No, None) => Exit::Done,
    })
}

/// Prints the output of a run, where there is any or the run completed.
fn answer(engine: &Engine, envelope: &Envelope, cx: &Invocation) -> Result<(), Failure> {
    let data = envelope.data.as_ref().filter(|data| !envelope.partial || data.size() > 0);
    data.map_or(Ok(()), |data| record::print(&*engine.store, data, cx))
}

/// Names what the answer stands without.
fn tell_what_is_missing(answer: &FanAnswer, cx: &Invocation) {
    if !cx.output.names_failures(answer.total) {
        for (key, envelope) in &answer.failures {
            let why = envelope.error.as_ref().map_or("", |error| &error.message);
            cx.output.warning(format_args!("piece {key}: {why}"));
        }
    }
    for piece in &answer.refused {
        cx.output.warning(format_args!("piece {}: {}", piece.key, piece.refusal.message));
    }
    let more = unlisted(answer);
    if more > 0 {
        cx.output.warning(format_args!("{more} more pieces did not complete"));
    }
}

/// Says what did not go well, and what to do about it.
fn tell_what_failed(answer: &FanAnswer, terms: &AnswerRules, cx: &Invocation) {
    let (failed, total) = (answer.missing(), answer.total);
    // Progress has named what ended badly, but for advice. What was refused never ran.
    let named = cx.output.names_failures(total);
    let ended = answer.failures.iter().filter_map(|(key, envelope)| {
        let error = envelope.error.as_ref()?;
        Some((key, &error.message, error.recovery_suggestion.as_ref()))
    });
    let refused = answer.refused.iter();
    let refused =
        refused.map(|piece| (&piece.key, &piece.refusal.message, piece.refusal.hint.as_ref()));
    let mut hints = HashSet::new();
    let silent = if named { answer.failures.len() } else { 0 };
    for (key, message, hint) in ended.clone().chain(refused).skip(silent).take(TOLD) {
        // The same advice once is enough.
        let hint = hint.filter(|hint| hints.insert(*hint)).cloned();
        cx.output.error(&complaint(format!("piece {key}: {message}"), hint));
    }
    let advice = ended.filter_map(|(_, _, hint)| hint).filter(|hint| named && hints.insert(*hint));
    advice.take(ADVICE).for_each(|hint| cx.output.hint(hint));
    if answer.cut_short == Some(CancelledBy::MaxFail) {
        let most = terms.max_fail.unwrap_or(0);
        let message =
            format!("more than {most} pieces did not complete, so the rest was cancelled");
        cx.output.error(&complaint(message, None));
    }
    if let Err(error) = &answer.verdict {
        let hint = error.hint().map(str::to_owned);
        let message = match error {
            MergeError::PiecesFailed { .. } => {
                format!("{failed} of {total} pieces did not complete")
            }
            other => other.to_string(),
        };
        cx.output.error(&complaint(message, hint));
    }
}

/// Names the tree, and after an interruption what can be done with it.
fn tell_how_to_go_on(
    answer: &FanAnswer,
    terms: &AnswerRules,
    interrupted: Interrupted,
    id: RunId,
    cx: &Invocation,
) {
    let (completed, total) = (answer.completed, answer.total);
    let word = if interrupted == Interrupted::Yes { "interrupted: " } else { "" };
    cx.output.note(format_args!("{word}{completed} of {total} pieces completed, tree {id}"));
    if interrupted == Interrupted::Yes {
        let strategy = &terms.merging;
        let merge = match completed {
            0 => String::new(),
            _ => format!(", `offshoot merge --strategy {strategy} --children {id}` merges it"),
        };
        cx.output.hint(format_args!("what is done is kept: `offshoot tree {id}` shows it{merge}"));
    }
}

fn exit(answer: &FanAnswer, interrupted: Interrupted) -> Exit {
    if interrupted == Interrupted::Yes {
        return Exit::Interrupted;
    }
    if answer.is_success() {
        return Exit::Done;
    }
    let codes: HashSet<Exit> = answer
        .failed
        .keys()
        .map(|code| exit_of(code))
        .chain(answer.not_admitted.keys().map(|code| match code {
            RefusalCode::BudgetExhausted | RefusalCode::BreakerOpen => Exit::Stopped,
            _ => Exit::Refused,
        }))
        .collect();
    // The cause that stopped the tree comes before failures in it, and one common cause before "an agent failed".
    if codes.contains(&Exit::Stopped) {
        return Exit::Stopped;
    }
    let mut codes = codes.into_iter();
    match (codes.next(), codes.next()) {
        (Some(only), None) => only,
        _ => Exit::AgentFailed,
    }
}

/// The number of failures that are not listed one by one.
fn unlisted(answer: &FanAnswer) -> u32 {
    let listed = answer.failures.len() + answer.refused.len();
    answer.missing() - u32::try_from(listed).expect("no more than there are pieces")
}

/// The exit code that an ending with this code of an error calls for.
fn exit_of(code: &str) -> Exit {
    match code {
        "budget" | "deadline" => Exit::Stopped,
        "cannot_start" => Exit::NoRuntime,
        _ => Exit::AgentFailed,
    }
}

fn complaint(message: String, hint: Option<String>) -> Complaint {
    Complaint { message, causes: Vec::new(), hint }
}

/// The tree as it stands on record.
fn tree(engine: &Engine, root: RootId) -> Result<TreeNode, Failure> {
    let tree = record::tree(&*engine.store, root)?;
    let node = tree.get(root.run()).ok_or_else(|| {
        Failure::new(Exit::AgentFailed, format_args!("tree {root} has no record"))
    })?;
    Ok(tree.view(node))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields in by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
