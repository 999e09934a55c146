//! `offshoot show`.

use std::sync::Arc;

use offshoot_display::{Show, Style};
use offshoot_model::{
    Admitted, AgentId, Cost, Ending, EnvelopeError, Grant, InputRange, Node, Origin, Payload,
    RunId, RunStatus, SessionKey, Timestamp, Usage, rfc3339,
};
use offshoot_store::FoundRun;
use serde::Serialize;

use crate::arguments::ShowArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{self, Record};

/// All that is known of a run: the fields of its envelope, and what it was asked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    status: RunStatus,
    #[serde(serialize_with = "Payload::serialize_plain", skip_serializing_if = "Option::is_none")]
    data: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<EnvelopeError>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    session_key: SessionKey,
    run_id: RunId,
    root: RunId,
    parent: Option<RunId>,
    agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Arc<str>>,
    depth: u32,
    origin: Origin,
    runtime: Option<Arc<str>>,
    #[serde(serialize_with = "Payload::serialize_plain")]
    task: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<InputRange>,
    grant: Arc<Grant>,
    #[serde(serialize_with = "rfc3339")]
    admitted_at: Timestamp,
    #[serde(serialize_with = "rfc3339")]
    started_at: Option<Timestamp>,
    #[serde(serialize_with = "rfc3339")]
    ended_at: Option<Timestamp>,
    execution_time_ms: Option<u64>,
    usage: Usage,
    cost: Cost,
    children: Vec<RunId>,
}

/// Shows one run, or its answer alone.
pub(crate) fn run(arguments: &ShowArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let (record, found) = Record::open_own(cx, &arguments.run)?;
    let missing = || Failure::input(format_args!("run {} has no record", found.run));
    let ending = record.ending(found.root, found.run)?;
    if arguments.answer {
        return answer(&record, found.run, ending, cx);
    }
    if !cx.output.wants_json() {
        return text(&record, &found, cx);
    }
    let tree = record.tree(found.root)?;
    let node = tree.get(found.run).ok_or_else(missing)?;
    let admitted = record.store().admitted(found.root, found.run)?;
    let children = tree.children(node).map(|child| child.run).collect();
    cx.output.json(&shown(&record, node, admitted.ok_or_else(missing)?, ending, children)?)?;
    Ok(Exit::Done)
}

fn answer(
    record: &Record,
    run: RunId,
    ending: Option<Ending>,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let Some(ending) = ending else {
        return Err(Failure::input(format_args!("run {run} is not over")));
    };
    match ending.output {
        None => {
            return Err(Failure::input(format_args!(
                "run {run} has no answer: it {}",
                ending.reason
            )));
        }
        Some(output) => record::print(&**record.store(), &output, cx)?,
    }
    Ok(Exit::Done)
}

fn shown(
    record: &Record,
    node: &Node,
    admitted: Admitted,
    ending: Option<Ending>,
    children: Vec<RunId>,
) -> Result<Shown, Failure> {
    /// A larger answer is named, and printed by `--answer`.
    const INLINE: u64 = 1024 * 1024;
    // A run without an ending may be lost all the same.
    let unsaid = || node.reason.clone().map(Ending::of);
    let error = ending.clone().or_else(unsaid).as_ref().and_then(EnvelopeError::of);
    let data = ending.and_then(|ending| ending.output);
    let at_hand = |payload: Payload| match payload.size() {
        0..=INLINE => record::at_hand(&**record.store(), &payload),
        _ => Ok(payload),
    };
    let data = data.map(at_hand).transpose()?;
    Ok(Shown {
        status: node.status,
        partial: error.is_some() && data.is_some(),
        data,
        error,
        session_key: node.key.clone(),
        run_id: node.run,
        root: node.root.run(),
        parent: node.parent,
        agent: node.agent.clone(),
        label: node.label.clone(),
        depth: node.depth,
        origin: node.origin,
        runtime: admitted.runtime,
        task: Some(at_hand(admitted.task)?),
        input: admitted.input,
        grant: admitted.grant,
        admitted_at: node.admitted_at,
        started_at: node.started_at,
        ended_at: node.ended_at,
        execution_time_ms: node.execution_time().map(|time| time.as_millis() as u64),
        usage: node.usage,
        cost: node.cost,
        children,
    })
}

fn text(record: &Record, found: &FoundRun, cx: &Invocation) -> Result<Exit, Failure> {
    let mut show = Show::new(found.run).style(Style::Colour);
    let lost = record.is_abandoned(found.root)?;
    for event in record.store().events(found.root, 0) {
        show.apply(&event?);
    }
    if lost {
        show.lose(found.root);
    }
    cx.output.painted(|out| writeln!(out, "{show}"))?;
    Ok(Exit::Done)
}
