//! The report of a tree: the answer on standard output, failures on standard error, and the exit code.

mod ended;
mod way_on;

use std::collections::HashSet;
use std::sync::Arc;

use offshoot_display::json::Document;
use offshoot_display::{neutral, number};
use offshoot_merge::MergeError;
use offshoot_model::{
    AgentId, CancelledBy, Changes, Chosen, Cost, Envelope, EnvelopeError, EventKind, Reason,
    Refusal, RefusalCode, RootId, RunId, RunStatus, SessionKey, TreeNode, Usage,
};
use offshoot_spawner::FanAnswer;
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) use self::ended::{Unanswered, unanswered};
use self::way_on::{budget_used_up, spent_budget, tell_how_to_go_on};
use super::data::Data;
use super::engine::Engine;
use super::outcomes::PieceJson;
use super::pieces::AnswerRules;
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::record;

/// As many failures are told one by one.
const TOLD: usize = 10;
/// More different advice than this is none.
const ADVICE: usize = 3;

/// `--json`: the envelope of the root, the tree, and what did not complete.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    status: RunStatus,
    data: Option<Data<'a>>,
    /// Of an answer that a judge chose: which result it is, and why.
    chosen: Option<&'a Chosen>,
    error: Option<EnvelopeError>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    /// The changes of a run that worked in a folder of its own.
    changes: Option<&'a Changes>,
    session_key: &'a SessionKey,
    run_id: RunId,
    agent: &'a AgentId,
    depth: u32,
    usage: Usage,
    cost: Cost,
    execution_time_ms: u64,
    tree: Box<RawValue>,
    /// The first ones.
    failures: Vec<PieceJson<'a>>,
    /// The number of failures that are not among them.
    more_failures: Option<u32>,
}

/// Reports a map or a fanout. `printed` where its answers were printed as they came.
pub(crate) fn pieces(
    engine: &Engine,
    root: RootId,
    answer: &FanAnswer,
    terms: &AnswerRules,
    printed: bool,
    interrupted: bool,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let tree = tree(engine, root)?;
    // The record knows whether the tree was stopped; the results of its pieces do not.
    let ending = engine.store.ending(root, root.run())?.unwrap_or_else(|| answer.ending());
    let values = answer.values(Arc::clone(&engine.store));
    let exit = exit(answer, interrupted, &ending.reason);
    let has_answer = match &answer.verdict {
        Ok(()) => exit == Exit::Done || answer.completed > 0,
        // Nothing at all is no partial answer: a sum of no piece would look like one.
        Err(MergeError::PiecesFailed { .. }) => answer.completed > 0,
        // Results that do not merge have no answer.
        Err(_) => false,
    };
    // A merge that was not made has no answer, whatever has completed. Of no pieces there is the empty one.
    let has_answer = has_answer && (answer.answer.is_made() || answer.total == 0);
    if cx.output.wants_json() {
        let failures = answer.failures.iter().map(|(key, envelope)| PieceJson {
            key,
            envelope: Some(envelope),
            refusal: None,
        });
        let refused = answer.refused.iter().map(|refused| PieceJson {
            key: &refused.key,
            envelope: None,
            refusal: Some(&refused.refusal),
        });
        let error = EnvelopeError::of(&ending);
        let printed_tree = cx.output.part(&tree, Document::Tree);
        let report = Report {
            status: tree.status,
            data: has_answer.then_some(Data::Merged(&answer.answer, &values)),
            chosen: answer.chosen.as_ref(),
            partial: error.is_some() && has_answer,
            changes: None,
            error,
            session_key: &tree.session_key,
            run_id: tree.run_id,
            agent: &tree.agent,
            depth: tree.depth,
            usage: tree.own_usage,
            cost: tree.cost,
            execution_time_ms: tree.execution_time_ms.unwrap_or(0),
            tree: printed_tree,
            failures: failures.chain(refused).collect(),
            more_failures: Some(unlisted(answer)).filter(|more| *more > 0),
        };
        cx.output.json(&report)?;
    } else if has_answer && !printed {
        cx.output.answer(&answer.answer, &values)?;
    }
    if let Some(chosen) = answer.chosen.as_ref().filter(|_| has_answer) {
        cx.output.note(NoteCode::JudgeChose, neutral::line(&format!("the judge chose {chosen}")));
    }
    if let Some(warning) = answer.answer.warning().filter(|_| has_answer) {
        cx.output.warning(NoteCode::TieInVote, warning);
    }
    let spent = spent_budget(engine, root, answer, &ending.reason)?;
    let used_up = spent.used_up.as_ref().map(budget_used_up);
    let mut other_way = None;
    if exit == Exit::Done {
        tell_what_is_missing(answer, cx);
        if let Some(used_up) = used_up {
            cx.output.warning(NoteCode::LeftOutForBudget, used_up);
        }
    } else if !interrupted {
        other_way = tell_what_failed(answer, terms, cx);
        if let Some(used_up) = used_up {
            cx.output.error(&Complaint::new(FailureCode::BudgetUsedUp, used_up, None));
        }
    }
    tell_how_to_go_on(answer, terms, interrupted, (tree.run_id, &ending.reason, &spent), cx);
    other_way.iter().for_each(|hint| cx.output.hint(NoteCode::AnswerWithout, hint));
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
    cx.output.note(
        NoteCode::MoreRunBelow,
        format_args!("{remaining} more {runs} on below it; Ctrl-C stops what is left"),
    );
    Ok(true)
}

/// Reports a run. `printed` where its answer was printed before.
pub(crate) fn run(
    engine: &Engine,
    root: RootId,
    envelope: &Envelope,
    printed: bool,
    interrupted: bool,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    if cx.output.wants_json() {
        let tree = tree(engine, root)?;
        let data = envelope.data.as_ref().map(|data| record::at_hand(&*engine.store, data));
        let printed_tree = cx.output.part(&tree, Document::Tree);
        let report = Report {
            status: envelope.status,
            data: data.transpose()?.map(Data::Payload),
            chosen: None,
            error: envelope.error.clone(),
            partial: envelope.partial,
            changes: envelope.changes.as_deref(),
            session_key: &envelope.session_key,
            run_id: envelope.run_id,
            agent: &envelope.agent,
            depth: envelope.depth,
            usage: envelope.usage,
            // With what its children cost, as of a tree of pieces.
            cost: tree.cost,
            execution_time_ms: envelope.execution_time_ms,
            tree: printed_tree,
            failures: Vec::new(),
            more_failures: None,
        };
        cx.output.json(&report)?;
    } else if !printed {
        answer(engine, envelope, cx)?;
    }
    // A record that cannot be read does not change how the run has ended.
    if let Ok(Some((tokens, micro_usd))) = overrun(engine, root, envelope.run_id) {
        let beyond = number::amounts(tokens, micro_usd);
        cx.output.warning(
            NoteCode::Overrun,
            format_args!("it used {beyond} more than its budget: an answer under way when a budget is reached is paid for"),
        );
    }
    if let Some(changes) = envelope.changes.as_ref().filter(|changes| changes.patch.is_some()) {
        let run = envelope.run_id;
        cx.output.note(NoteCode::FilesChanged, format_args!(
            "it changed {changes} in a folder of its own: `offshoot apply {run}` brings that here, `offshoot show {run} --patch` prints it"
        ));
    }
    if let Some(error) = &envelope.error {
        if let Some(said) = &error.said {
            cx.output.said(said);
        }
        cx.output.error(&Complaint::told(&error.message, error.recovery_suggestion.clone()));
    }
    Ok(match (interrupted, &envelope.error) {
        (true, _) => Exit::Interrupted,
        (false, Some(error)) => exit_of(&error.code),
        (false, None) => Exit::Done,
    })
}

/// Returns the tokens and millionths of a dollar that a run has used beyond its budget, with all that was below it; none where it has not.
fn overrun(engine: &Engine, root: RootId, run: RunId) -> Result<Option<(u64, u64)>, Failure> {
    let mut found = None;
    for event in engine.store.events(root, 0) {
        let event = event?;
        match event.kind {
            EventKind::Overrun { tokens, micro_usd } if event.run == run => {
                found = Some((tokens, micro_usd));
            }
            // It may have been given more since.
            EventKind::RootReopened(_) => found = None,
            _ => {}
        }
    }
    Ok(found)
}

/// Prints the output of a run, where there is any or the run completed.
fn answer(engine: &Engine, envelope: &Envelope, cx: &Invocation) -> Result<(), Failure> {
    let data = envelope.data.as_ref().filter(|data| !envelope.partial || data.size() > 0);
    data.map_or(Ok(()), |data| record::print(&*engine.store, data, cx))
}

/// Names what the answer stands without.
fn tell_what_is_missing(answer: &FanAnswer, cx: &Invocation) {
    if !cx.output.names_failures() {
        for (key, envelope) in &answer.failures {
            let why = envelope.error.as_ref().map_or("", EnvelopeError::summary);
            cx.output.warning(NoteCode::PieceLeftOut, format_args!("piece {key}: {why}"));
        }
    }
    for piece in &answer.refused {
        cx.output.warning(
            NoteCode::PieceLeftOut,
            format_args!("piece {}: {}", piece.key, piece.refusal.message),
        );
    }
    let more = unlisted(answer);
    if more > 0 {
        cx.output
            .warning(NoteCode::MoreLeftOut, format_args!("{more} more pieces did not complete"));
    }
}

/// Says what did not go well, and what to do about it. Answers how an answer could stand without the pieces that failed: that is said
/// last, because it runs all of them again.
fn tell_what_failed(
    answer: &FanAnswer,
    terms: &AnswerRules,
    cx: &Invocation,
) -> Option<&'static str> {
    let (failed, total) = (answer.missing(), answer.total);
    // Progress has named what ended badly, but for advice. What was refused never ran.
    let named = cx.output.names_failures();
    let errors = || answer.failures.iter().filter_map(|(_, envelope)| envelope.error.as_ref());
    // Advice that one failure of a kind does not get is none for its kind.
    let without: HashSet<&str> = errors()
        .filter(|error| error.recovery_suggestion.is_none())
        .map(|error| error.code.as_str())
        .collect();
    let ended = answer.failures.iter().filter_map(|(key, envelope)| {
        let error = envelope.error.as_ref().filter(|error| !is_stopped(&error.code))?;
        let hint = error.recovery_suggestion.as_ref();
        Some((key, error.summary(), hint.filter(|_| !without.contains(error.code.as_str()))))
    });
    if !named {
        tell_what_was_stopped(answer, cx);
    }
    let mut hints = HashSet::new();
    let alike = refused_alike(answer);
    if let Some((refusal, many)) = alike {
        let (message, hint) = (&refusal.message, refusal.hint.clone());
        hints.extend(&refusal.hint);
        cx.output.error(&Complaint::new(
            FailureCode::PieceFailed,
            format!("{many} pieces: {message}"),
            hint,
        ));
    }
    let refused = answer
        .refused
        .iter()
        .filter(|_| alike.is_none())
        .map(|piece| (&piece.key, piece.refusal.message.as_str(), piece.refusal.hint.as_ref()));
    let silent = if named { ended.clone().count() } else { 0 };
    for (key, message, hint) in ended.clone().chain(refused).skip(silent).take(TOLD) {
        // The same advice once is enough.
        let hint = hint.filter(|hint| hints.insert(*hint)).cloned();
        cx.output.error(&Complaint::new(
            FailureCode::PieceFailed,
            format!("piece {key}: {message}"),
            hint,
        ));
    }
    let advice = ended.filter_map(|(_, _, hint)| hint).filter(|hint| named && hints.insert(*hint));
    advice.take(ADVICE).for_each(|hint| cx.output.hint(NoteCode::AdviceOfEnd, hint));
    if answer.cut_short == Some(CancelledBy::MaxFail) {
        let most = terms.max_fail.unwrap_or(0);
        let pieces = number::many(most.into(), "piece");
        let message = format!("more than {pieces} did not complete, so the rest was cancelled");
        let hint = "--max-fail N permits more; without it all pieces run".to_owned();
        cx.output.error(&Complaint::new(FailureCode::TooManyFailed, message, Some(hint)));
    }
    match &answer.verdict {
        Ok(()) => None,
        Err(error @ MergeError::PiecesFailed { .. }) => {
            let message = format!("{failed} of {total} pieces did not complete");
            cx.output.error(&Complaint::new(FailureCode::PiecesMissing, message, None));
            // Without the pieces that failed nothing would be left.
            error.hint().filter(|_| answer.completed > 0)
        }
        Err(error @ MergeError::NotAnswered { hint, .. }) => {
            cx.output.error(&Complaint::told(error.to_string(), hint.clone()));
            None
        }
        Err(other) => {
            let hint = other.hint().map(str::to_owned);
            cx.output.error(&Complaint::told(other.to_string(), hint));
            None
        }
    }
}

/// Returns the refusal of all pieces that were refused, and their number, where it is one and the same.
fn refused_alike(answer: &FanAnswer) -> Option<(&Refusal, u32)> {
    let first = &answer.refused.first()?.refusal;
    let is_same = answer.refused.iter().all(|piece| piece.refusal.message == first.message);
    let many = answer.not_admitted.values().sum();
    // More are refused than are listed only where nothing is known to differ.
    (is_same && answer.not_admitted.len() == 1 && many > 1).then_some((first, many))
}

/// Says in a line for each reason how many pieces ended because the tree was stopped. That is no failure of theirs.
fn tell_what_was_stopped(answer: &FanAnswer, cx: &Invocation) {
    for (code, many) in answer.failed.iter().filter(|(code, _)| is_stopped(code)) {
        let errors = answer.failures.iter().filter_map(|(key, it)| Some((key, it.error.as_ref()?)));
        let Some((key, first)) = errors.into_iter().find(|(_, error)| error.code == *code) else {
            continue;
        };
        let message = match many {
            1 => format!("piece {key}: {}", first.summary()),
            many => format!("{many} pieces: {}", first.summary()),
        };
        cx.output.error(&Complaint::new(FailureCode::PiecesStopped, message, None));
    }
}

/// True of the code of an ending that was not the run's own doing.
fn is_stopped(code: &str) -> bool {
    matches!(code, "cancelled" | "deadline" | "park_limit" | "budget_pool")
}

/// Returns the exit code of a map or a fanout whose tree ended for this reason.
fn exit(answer: &FanAnswer, interrupted: bool, reason: &Reason) -> Exit {
    if interrupted {
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
        .chain(match &answer.verdict {
            Err(MergeError::NotAnswered { code: Some(code), .. }) => Some(exit_of(code)),
            _ => None,
        })
        .collect();
    // The cause that stopped the tree comes before failures in it, and one common cause before "an agent failed". Pieces that a budget,
    // a deadline or a wall stopped with their tree were cancelled, and do not say by which.
    let is_stopped =
        matches!(reason, Reason::Budget { .. } | Reason::Deadline | Reason::ParkLimit { .. });
    if is_stopped || codes.contains(&Exit::Stopped) {
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
        "budget" | "budget_pool" | "budget_exhausted" | "deadline" | "park_limit" | "quota" => {
            Exit::Stopped
        }
        "cannot_start" => Exit::NoRuntime,
        "input_unreadable" => Exit::BadInput,
        _ => Exit::AgentFailed,
    }
}

/// The tree as it stands on record.
fn tree(engine: &Engine, root: RootId) -> Result<TreeNode, Failure> {
    let tree = record::tree(&*engine.store, root)?;
    let node = tree.get(root.run()).ok_or_else(|| {
        Failure::new(
            FailureCode::NoTreeRecord,
            Exit::AgentFailed,
            format_args!("tree {root} has no record"),
        )
        .hint("`offshoot list --all` shows what is recorded")
    })?;
    Ok(tree.view(node))
}
