//! The log of a tree: a line for each event, in the span of its run.
//!
//! ```text
//!   tree{root} ─▶ run{run agent runtime} ─▶ attempt{number}
//! ```
//!
//! Only ids, sizes, times and words of our own are logged: no task, no answer, and nothing else that an agent wrote.

use std::collections::HashMap;

use offshoot_model::{
    Cost, Event, EventKind, MergeSummary, Payload, PiecesAgain, RunId, RunStatus, Timestamp,
};
use tracing::level_filters::LevelFilter;
use tracing::{Span, debug, error, error_span, info, trace, warn};

use crate::machine::Machine;

/// The spans of the runs that live. Empty while nothing is logged.
#[derive(Default)]
pub(super) struct RunSpans(HashMap<RunId, RunSpan>);

struct RunSpan {
    span: Span,
    /// The attempt that runs or comes next.
    attempt: u32,
    started: Option<Timestamp>,
}

impl RunSpans {
    /// Logs an event. `machine` has the agent of a run that an earlier supervisor admitted.
    pub(super) fn log(&mut self, event: &Event, machine: &Machine) {
        if LevelFilter::current() == LevelFilter::OFF {
            return;
        }
        let (run, kind) = (event.run, &event.kind);
        match kind {
            EventKind::Admitted(_) | EventKind::Starting | EventKind::Resumed { .. } => {
                let known = self.0.entry(run).or_insert_with(|| RunSpan {
                    span: span(run, kind, machine),
                    attempt: 1,
                    started: None,
                });
                match kind {
                    EventKind::Starting => known.started = Some(event.at),
                    EventKind::Resumed { attempt, .. } => known.attempt = *attempt,
                    _ => {}
                }
                known.span.in_scope(|| write(kind, None));
            }
            EventKind::Ended(_) => {
                let known = self.0.remove(&run);
                let started = known.as_ref().and_then(|known| known.started);
                let ms = started.map(|at| event.at.since(at).as_millis() as u64);
                let span = known.map_or_else(|| span(run, kind, machine), |known| known.span);
                span.in_scope(|| write(kind, ms));
            }
            // An event of a run that is over keeps no span.
            _ => match self.0.get(&run) {
                Some(known) => known.span.in_scope(|| write(kind, None)),
                None => span(run, kind, machine).in_scope(|| write(kind, None)),
            },
        }
    }

    /// The span of the attempt that starts now.
    pub(super) fn attempt(&self, run: RunId) -> Span {
        match self.0.get(&run) {
            Some(known) => error_span!(parent: &known.span, "attempt", number = known.attempt),
            None => Span::none(),
        }
    }
}

/// A span of a run of which there is none yet.
fn span(run: RunId, kind: &EventKind, machine: &Machine) -> Span {
    if let EventKind::Admitted(admitted) = kind {
        let runtime = admitted.runtime.as_deref();
        return error_span!("run", %run, agent = %admitted.agent, runtime);
    }
    let session = machine.find(run).and_then(|run| machine.session(run));
    let agent = session.map(|session| tracing::field::display(session.agent));
    error_span!("run", %run, agent)
}

/// Writes the line of an event. The end of a run has the milliseconds since its start.
fn write(kind: &EventKind, ms: Option<u64>) {
    match kind {
        EventKind::Admitted(admitted) => {
            let (depth, origin) = (admitted.depth, admitted.origin);
            let parent = admitted.parent.map(tracing::field::display);
            debug!(parent, depth, ?origin, task_bytes = admitted.task.size(), "run admitted");
        }
        EventKind::Refused { refusal, times } => {
            let setting = refusal.governed_by.as_ref().map(|setting| setting.key.as_str());
            info!(code = refusal.code.as_ref(), setting, times, "request refused");
        }
        EventKind::Starting => info!("run started"),
        EventKind::Started { process } => {
            debug!(pid = process.as_ref().map(|process| process.pid), "runtime works");
        }
        EventKind::Progress { text } => trace!(bytes = text.len(), "progress"),
        EventKind::Reported { text } => debug!(bytes = text.len(), "run reports"),
        EventKind::ToolUsed(used) => {
            let bytes = used.input.as_ref().map(|input| input.size);
            debug!(bytes, "tool used");
        }
        EventKind::BacksOff { .. } => info!("the service of a run is asked again"),
        EventKind::Answered => debug!("the service of a run has answered again"),
        EventKind::ModelChanged { model } => info!(%model, "another model answers"),
        EventKind::Repeats { times, .. } => warn!(times, "one tool is used again and again"),
        EventKind::Used { usage, cost } => {
            let Cost { metered_usd, known_usd, estimated_usd, unknown_runs: _ } = cost;
            debug!(
                tokens = usage.total().known(),
                metered_micro_usd = metered_usd.as_micros(),
                known_micro_usd = known_usd.as_micros(),
                estimated_micro_usd = estimated_usd.as_micros(),
                "usage"
            );
        }
        EventKind::RequestReserved { request, tokens, micro_usd, .. } => {
            debug!(request, tokens, micro_usd, "request to a model reserved");
        }
        EventKind::RequestHeld { request, tokens, micro_usd, for_others, .. } => {
            info!(
                request,
                tokens, micro_usd, for_others, "request to a model waits for room in the budget"
            );
        }
        EventKind::RequestSettled { request, ending, usage, cost, .. } => {
            let micro_usd = cost.dollars().as_micros();
            let tokens = usage.total().known();
            debug!(request, ?ending, tokens, micro_usd, "request to a model settled");
        }
        EventKind::RequestRefused { code, times, .. } => {
            info!(%code, times, "request to a model refused");
        }
        EventKind::Waiting => debug!("run waits, its slot is lent"),
        EventKind::Returned => debug!("run has its slot back"),
        EventKind::BusyWaiting { cpu_ms, wait_ms } => {
            warn!(cpu_ms, wait_ms, "run worked while it waited");
        }
        EventKind::Stopping { reason } => info!(reason = reason.code(), "run is asked to stop"),
        EventKind::BudgetNotice => warn!("four fifths of the budget are used"),
        EventKind::Overrun { tokens, micro_usd } => {
            warn!(tokens, micro_usd, "run used more than was reserved");
        }
        EventKind::BudgetDrawn { tokens, micro_usd } => {
            debug!(tokens, micro_usd, "budget drawn");
        }
        EventKind::BudgetRaised { tokens, micro_usd } => {
            info!(tokens, micro_usd, "budget raised");
        }
        EventKind::FellBack { runtime, model, .. } => {
            info!(%runtime, model = model.as_deref(), "run goes over to another runtime");
        }
        EventKind::StallLent => info!("slots of silent parents are lent"),
        EventKind::Paused => info!("tree paused"),
        EventKind::Unpaused => info!("tree goes on"),
        EventKind::MemoryShort(shortage) => warn!(%shortage, "starts wait for memory"),
        EventKind::MemoryEnough => info!("no start waits for memory any more"),
        EventKind::HostBound { max_concurrent } => {
            debug!(max_concurrent, "slots are shared with other trees");
        }
        EventKind::HostFull => info!("starts wait for runs of other trees"),
        EventKind::HostFree => info!("no start waits for runs of other trees any more"),
        EventKind::AccountBound { account, max_concurrent } => {
            debug!(%account, max_concurrent, "slots of an account are shared with other trees");
        }
        EventKind::AccountFull { account } => {
            info!(%account, "starts wait for runs of the account")
        }
        EventKind::AccountFree { account } => {
            info!(%account, "no start waits for runs of the account any more");
        }
        EventKind::BreakerOpened { agent, faults, wait_ms } => {
            warn!(%agent, faults, wait_ms, "agent is left alone");
        }
        EventKind::BreakerClosed { agent } => info!(%agent, "agent works again"),
        EventKind::Parked { account, until, .. } => {
            warn!(%account, %until, "account is parked, a quota is used up");
        }
        EventKind::QuotaSeen { account, window, left, until } => {
            info!(%account, %window, left, %until, "what is left of a quota");
        }
        EventKind::Unparked { account } => info!(%account, "account is not parked any more"),
        EventKind::Paced { account, most } => info!(%account, most, "pace of an account"),
        EventKind::Priming { run: first, tokens } => {
            info!(%first, tokens, "runs wait for the first answer to their prompt");
        }
        EventKind::Primed { run: first } => info!(%first, "no run waits for a first answer"),
        EventKind::PoolShort { run } => {
            info!(parent = %run, "the next piece waits because of the budget that it shares");
        }
        EventKind::PoolEnough { run } => {
            info!(parent = %run, "no piece waits because of the budget that it shares");
        }
        EventKind::Alive => debug!("nothing was recorded for a while"),
        EventKind::Reopened => info!("tree resumed"),
        EventKind::RootReopened(reopened) => {
            let PiecesAgain { failed, cancelled, only: _ } = reopened.again;
            let deadline_seconds = reopened.deadline_seconds;
            info!(failed, cancelled, deadline_seconds, "tree that was over goes on");
        }
        EventKind::Resumed { attempt, continues, after: None, .. } => {
            info!(attempt, continues, "run stands in line again");
        }
        EventKind::Resumed { attempt, continues, after: Some(fault), wait_ms, .. } => {
            let reason = fault.code();
            warn!(attempt, continues, reason, wait_ms, "run is tried again");
        }
        EventKind::Ended(ending) => {
            let (status, reason) = (ending.status(), ending.reason.code());
            let bytes = ending.output.as_ref().map(Payload::size);
            match status {
                RunStatus::Completed | RunStatus::Cancelled => {
                    info!(%status, reason, ms, bytes, "run ended");
                }
                RunStatus::Failed
                | RunStatus::TimedOut
                | RunStatus::Lost
                | RunStatus::ClientGone => warn!(%status, reason, ms, bytes, "run ended"),
                RunStatus::Idle
                | RunStatus::Queued
                | RunStatus::Starting
                | RunStatus::Running
                | RunStatus::Waiting => unreachable!("no reason ends a run as {status}"),
            }
        }
        EventKind::Merged(summary) => {
            let MergeSummary { merged, failed, output, .. } = &**summary;
            info!(merged, failed, bytes = output.size(), "results merged");
        }
        EventKind::TurnEnded { answer, letters_taken } => {
            let bytes = answer.as_ref().map(Payload::size);
            debug!(bytes, letters_taken, "turn ended");
        }
        EventKind::Letter { from, text } => {
            debug!(from = from.map(tracing::field::display), bytes = text.size(), "letter");
        }
        EventKind::Kept { value, .. } => {
            debug!(hash = %value.hash, bytes = value.size, "value kept under a name");
        }
        EventKind::ObservationOpened { number, .. } => debug!(number, "run does a task itself"),
        EventKind::ObservationClosed { number, success } => {
            debug!(number, success, "run is over with a task");
        }
        EventKind::Delivered { delivery, redelivered } => {
            debug!(%delivery, redelivered, "result delivered");
        }
        EventKind::Undelivered { delivery } => warn!(%delivery, "result not delivered"),
        EventKind::StrayEnded { pid, .. } => warn!(pid, "process that left its run is ended"),
        EventKind::KeeperFailed { pid, found, error: None } => {
            warn!(keeper = pid, ?found, "keeper replaced");
        }
        EventKind::KeeperFailed { pid, found, error: Some(_) } => {
            error!(keeper = pid, ?found, "no keeper, runs may outlive a killed supervisor");
        }
        EventKind::Removal { error: None } => debug!("folder of the run removed"),
        EventKind::Removal { error: Some(error) } => {
            warn!(error = &**error, "folder of the run not removed");
        }
    }
}
