//! The outcome of each piece, told as it comes: its answer on standard output, and lines in files.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use offshoot_merge::Strategy;
use offshoot_model::{Envelope, Payload, Refusal, RootId, RunStatus};
use offshoot_spawner::{Piece, PieceOutcome};
use offshoot_store::Store;
use serde::Serialize;

use super::job_log::{self, Job, JobLog};
use super::junit::{Finished, JUnit};
use super::pieces::AnswerRules;
use crate::arguments::PieceArguments;
use crate::code::FailureCode;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::output::{Output, beside_progress};
use crate::record;
use offshoot_host::Merging;

/// All that is told of each piece. Nothing, where nothing was asked for.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    printer: Option<Printer>,
    job_log: Option<JobLog>,
    junit: Option<JUnit>,
    /// The first thing that could not be told. Nothing is told from then on.
    failure: Option<Failure>,
}

/// The printer of the pieces.
#[derive(Debug)]
struct Printer {
    output: Output,
    form: Form,
    /// With `--keep-order`: the place that is printed next, and what waits for its turn.
    ordered: Option<(u32, BTreeMap<u32, PieceOutcome>)>,
}

/// The form in which each piece is printed as it comes.
#[derive(Debug)]
pub(crate) enum Form {
    /// The answers of those that completed, each followed by this.
    Answers(String),
    /// A line of JSON for each.
    Lines,
}

/// The outcome of a piece, as JSON: a line of `--jsonl`, or one of the failures of a report.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct PieceJson<'a> {
    pub(super) key: &'a str,
    /// Absent where it was not even admitted.
    pub(super) envelope: Option<&'a Envelope>,
    pub(super) refusal: Option<&'a Refusal>,
}

impl Outcomes {
    /// As the flags have it. Files are made here, before anything runs.
    pub(crate) fn of(
        arguments: &PieceArguments,
        terms: &AnswerRules,
        cx: &Invocation,
    ) -> Result<Self, Failure> {
        let form = Form::of(arguments, terms, cx)?;
        let ordered = || arguments.keep_order.then(|| (0, BTreeMap::new()));
        let printer = form.map(|form| Printer { output: cx.output, form, ordered: ordered() });
        Ok(Self {
            printer,
            job_log: arguments.joblog.as_deref().map(JobLog::create).transpose()?,
            junit: arguments.junit.as_deref().map(JUnit::create).transpose()?,
            failure: None,
        })
    }

    /// Learns which pieces there are, and what each of them runs.
    pub(crate) fn expect(&mut self, pieces: &[Piece], command: &str) {
        if let Some(job_log) = &mut self.job_log {
            job_log.expect(pieces, command);
        }
    }

    /// True if nothing is told of further pieces.
    pub(crate) fn is_done(&self) -> bool {
        let asked = self.printer.is_some() || self.job_log.is_some() || self.junit.is_some();
        self.failure.is_some() || !asked
    }

    /// True if answers are printed as they come.
    pub(crate) fn prints(&self) -> bool {
        self.printer.is_some()
    }

    /// Tells of a piece. Breaks off where that fails.
    pub(crate) fn take(
        &mut self,
        outcome: PieceOutcome,
        store: &Arc<dyn Store>,
        root: RootId,
    ) -> ControlFlow<()> {
        match self.tell(outcome, &**store, root) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn tell(
        &mut self,
        outcome: PieceOutcome,
        store: &dyn Store,
        root: RootId,
    ) -> Result<(), Failure> {
        // A piece that was not admitted has no line, and one of an earlier life of the tree had its own.
        if let (Some(job_log), Ok(envelope), false) =
            (&mut self.job_log, &outcome.result, outcome.earlier)
        {
            let reason = store.ending(root, envelope.run_id)?.map(|ending| ending.reason);
            job_log.add(&Job {
                place: outcome.place,
                key: &outcome.key,
                took: Duration::from_millis(envelope.execution_time_ms),
                received: envelope.data.as_ref().map_or(0, Payload::size),
                exit: job_log::exit_of(reason.as_ref()),
            })?;
        }
        if let Some(junit) = &mut self.junit {
            match &outcome.result {
                Ok(envelope) => {
                    let run = Finished {
                        agent: &envelope.agent,
                        took: Duration::from_millis(envelope.execution_time_ms),
                        error: envelope.error.as_ref(),
                        cancelled: envelope.status == RunStatus::Cancelled,
                    };
                    junit.add_run(outcome.place, &outcome.key, &run);
                }
                Err(Refusal { code, message, .. }) => {
                    junit.add_refused(outcome.place, &outcome.key, code.as_ref(), message);
                }
            }
        }
        self.printer.as_mut().map_or(Ok(()), |printer| printer.take(outcome, store))
    }

    /// Ends the files, and says what could not be told.
    pub(crate) fn finish(self, root: RootId) -> Result<(), Failure> {
        let written = self.junit.map_or(Ok(()), |junit| junit.finish(&root.to_string()));
        self.failure.map_or(written, Err)
    }
}

impl Form {
    /// As the flags have it; none where answers are not printed as they come.
    pub(crate) fn of(
        arguments: &PieceArguments,
        terms: &AnswerRules,
        cx: &Invocation,
    ) -> Result<Option<Self>, Failure> {
        let form = match (arguments.stream, arguments.jsonl) {
            (false, false) => None,
            (true, _) => Some(Self::Answers(terms.separator.clone().unwrap_or("\n".to_owned()))),
            (false, true) => Some(Self::Lines),
        };
        let flag = if arguments.stream { "--stream" } else { "--jsonl" };
        if form.is_none() && arguments.keep_order {
            return Err(Failure::input(
                FailureCode::NeedsStream,
                "--keep-order is for --stream and --jsonl",
            )
            .hint("leave it out: one answer has the order of the request anyway"));
        }
        if form.is_some() && terms.merging != Merging::Strategy(Strategy::Concatenate) {
            let message =
                format!("{flag} prints each piece, and --merge {} makes one answer", terms.merging);
            return Err(
                Failure::input(FailureCode::StreamAndMerge, message).hint("leave one of them out")
            );
        }
        if form.is_some() && cx.output.wants_json() {
            let message =
                format!("{flag} prints each piece as it comes, and --json one value at the end");
            return Err(
                Failure::input(FailureCode::StreamAndMerge, message).hint("leave one of them out")
            );
        }
        Ok(form)
    }
}

impl Printer {
    fn take(&mut self, outcome: PieceOutcome, store: &dyn Store) -> Result<(), Failure> {
        let Some((next, waiting)) = &mut self.ordered else { return self.print(&outcome, store) };
        waiting.insert(outcome.place, outcome);
        let mut turn = Vec::new();
        while let Some(outcome) = waiting.remove(next) {
            *next += 1;
            turn.push(outcome);
        }
        turn.iter().try_for_each(|outcome| self.print(outcome, store))
    }

    fn print(&self, outcome: &PieceOutcome, store: &dyn Store) -> Result<(), Failure> {
        let mut printed = Ok(());
        // A bar on the terminal is taken away meanwhile.
        beside_progress(|| {
            printed = match &self.form {
                Form::Answers(separator) => self.answer(outcome, separator, store),
                Form::Lines => self.json(outcome, store),
            };
        });
        printed
    }

    fn answer(
        &self,
        outcome: &PieceOutcome,
        separator: &str,
        store: &dyn Store,
    ) -> Result<(), Failure> {
        let Ok(envelope) = &outcome.result else { return Ok(()) };
        if !envelope.status.is_success() {
            return Ok(());
        }
        let mut stored = match &envelope.data {
            Some(Payload::Stored(reference)) => {
                // What was changed is not handed on as what was answered.
                store.verify(reference)?;
                Some(store.open(reference)?)
            }
            _ => None,
        };
        self.output.stream(|out| {
            match (&envelope.data, &mut stored) {
                (Some(Payload::Text(text)), _) => out.write_all(text.as_bytes())?,
                (Some(Payload::Json(json)), _) => out.write_all(json.as_str().as_bytes())?,
                (_, Some(stored)) => drop(std::io::copy(stored, out)?),
                (_, None) => {}
            }
            out.write_all(separator.as_bytes())
        })
    }

    fn json(&self, outcome: &PieceOutcome, store: &dyn Store) -> Result<(), Failure> {
        let envelope = match &outcome.result {
            Ok(envelope) => {
                let data = envelope.data.as_ref().map(|data| record::at_hand(store, data));
                Some(Envelope { data: data.transpose()?, ..envelope.clone() })
            }
            Err(_) => None,
        };
        let (envelope, refusal) = (envelope.as_ref(), outcome.result.as_ref().err());
        let line = PieceJson { key: &outcome.key, envelope, refusal };
        self.output.stream(|out| {
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")
        })
    }
}
