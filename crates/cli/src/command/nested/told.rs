//! The outcome of each child of a nested map or fanout, told as it ends: its answer on standard output, and lines in files.

use std::collections::BTreeMap;
use std::time::Duration;

use offshoot_door::{Client, EndReason, RunName, Tree, WireEnvelope, WireRefusal};
use offshoot_model::{JsonText, RunId, RunStatus, ValueKind, VariableRef};
use serde::{Deserialize, Serialize};

use crate::arguments::PieceArguments;
use crate::code::FailureCode;
use crate::command::context::{print_whole, read_whole};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::job_log::{Job, JobLog, NO_CODE};
use crate::work::junit::{Finished, JUnit};
use crate::work::outcomes::Form;
use crate::work::pieces::AnswerRules;

/// The outcome of one child.
pub(super) struct Outcome {
    /// The place in the request, from 0.
    pub(super) place: u32,
    /// The name of its result.
    pub(super) key: String,
    /// The envelope of its run, or the reason why there is no run.
    pub(super) result: Result<WireEnvelope, WireRefusal>,
}

/// All that is told of each child. Nothing, where nothing was asked for.
pub(super) struct Told {
    form: Option<Form>,
    /// With `--keep-order`: the place that is printed next, and what waits for its turn.
    ordered: Option<(u32, BTreeMap<u32, Outcome>)>,
    job_log: Option<JobLog>,
    junit: Option<JUnit>,
}

/// A line of `--jsonl`.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    envelope: Option<&'a WireEnvelope>,
    refusal: Option<&'a WireRefusal>,
}

/// The part of a large answer that travels, as far as it says what the whole is.
#[derive(Deserialize)]
struct Part {
    r#ref: VariableRef,
}

impl Told {
    /// As the flags have it. Files are made here, before anything runs.
    pub(super) fn of(
        arguments: &PieceArguments,
        terms: &AnswerRules,
        cx: &Invocation,
    ) -> Result<Self, Failure> {
        Ok(Self {
            form: Form::of(arguments, terms, cx)?,
            ordered: arguments.keep_order.then(|| (0, BTreeMap::new())),
            job_log: arguments.joblog.as_deref().map(JobLog::create).transpose()?,
            junit: arguments.junit.as_deref().map(JUnit::create).transpose()?,
        })
    }

    /// True if nothing is told of any child.
    pub(super) fn is_nothing(&self) -> bool {
        self.form.is_none() && self.job_log.is_none() && self.junit.is_none()
    }

    /// True if answers are printed as they come.
    pub(super) fn prints(&self) -> bool {
        self.form.is_some()
    }

    /// Learns the number of bytes that each child is given, and the command.
    pub(super) fn expect(&mut self, given: impl Iterator<Item = u64>, command: &str) {
        if let Some(job_log) = &mut self.job_log {
            job_log.expect_given(given.map(|bytes| (bytes, None)), command);
        }
    }

    /// Tells of a child.
    pub(super) async fn take(
        &mut self,
        outcome: Outcome,
        supervisor: &Client,
        cx: &Invocation,
    ) -> Result<(), Failure> {
        let Outcome { place, key, result } = &outcome;
        if let (Some(job_log), Ok(envelope)) = (&mut self.job_log, result) {
            job_log.add(&Job {
                place: *place,
                key,
                took: Duration::from_millis(envelope.execution_time_ms),
                received: size(envelope),
                exit: exit_of(supervisor, envelope).await?,
            })?;
        }
        if let Some(junit) = &mut self.junit {
            match result {
                Ok(envelope) => {
                    let run = Finished {
                        agent: &envelope.agent,
                        took: Duration::from_millis(envelope.execution_time_ms),
                        error: envelope.error.as_ref(),
                        cancelled: envelope.status.known() == Some(RunStatus::Cancelled),
                    };
                    junit.add_run(*place, key, &run);
                }
                Err(refusal) => {
                    junit.add_refused(*place, key, &refusal.code, &refusal.message);
                }
            }
        }
        let Some(form) = &self.form else { return Ok(()) };
        let Some((next, waiting)) = &mut self.ordered else {
            return print(form, outcome, supervisor, cx).await;
        };
        waiting.insert(outcome.place, outcome);
        while let Some(outcome) = waiting.remove(next) {
            *next += 1;
            print(form, outcome, supervisor, cx).await?;
        }
        Ok(())
    }

    /// Ends the files. The suite of `--junit` has the name of the run that asked.
    pub(super) fn finish(self, run: Option<RunId>) -> Result<(), Failure> {
        let name = run.map(|run| run.to_string()).unwrap_or_default();
        self.junit.map_or(Ok(()), |junit| junit.finish(&name))
    }
}

async fn print(
    form: &Form,
    outcome: Outcome,
    supervisor: &Client,
    cx: &Invocation,
) -> Result<(), Failure> {
    let Outcome { key, result, .. } = outcome;
    match form {
        Form::Answers(separator) => {
            let completed = result.ok().filter(|envelope| envelope.status.is_success());
            let Some(envelope) = completed else { return Ok(()) };
            if let Some(name) = envelope.name {
                return print_whole(supervisor, name, separator, cx).await;
            }
            let data = envelope.text().or(envelope.data.map(|data| data.as_str().to_owned()));
            let text = data.unwrap_or_default() + separator;
            cx.output.bytes(text.as_bytes())
        }
        Form::Lines => {
            let (mut envelope, refusal) = match result {
                Ok(envelope) => (Some(envelope), None),
                Err(refusal) => (None, Some(refusal)),
            };
            if let Some(envelope) = &mut envelope
                && let Some(name) = envelope.name.take()
            {
                envelope.data = Some(whole_data(supervisor, &name, envelope).await?);
            }
            let line = Line { key: &key, envelope: envelope.as_ref(), refusal: refusal.as_ref() };
            cx.output.stream(|out| {
                serde_json::to_writer(&mut *out, &line)?;
                out.write_all(b"\n")
            })
        }
    }
}

/// Returns the whole of an answer of which a part came with its envelope.
async fn whole_data(
    supervisor: &Client,
    name: &str,
    envelope: &WireEnvelope,
) -> Result<JsonText, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(
            FailureCode::AnswerUnreadable,
            Exit::AgentFailed,
            format_args!("the answer `{name}` cannot be read: {error}"),
        )
        .hint(format_args!("`context get {name}` prints its bytes"))
    };
    let bytes = read_whole(supervisor, name).await?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(&error))?;
    let is_json = part(envelope)
        .is_some_and(|part| matches!(part.r#ref.kind, ValueKind::Json | ValueKind::Result));
    if is_json {
        JsonText::parse(text).map_err(|error| wrong(&error))
    } else {
        JsonText::of(&text).map_err(|error| wrong(&error))
    }
}

fn part(envelope: &WireEnvelope) -> Option<Part> {
    envelope.name.as_ref()?;
    serde_json::from_str(envelope.data.as_ref()?.as_str()).ok()
}

/// Returns the number of bytes of an answer.
fn size(envelope: &WireEnvelope) -> u64 {
    match part(envelope) {
        Some(part) => part.r#ref.size,
        None => match envelope.text() {
            Some(text) => text.len() as u64,
            None => envelope.data.as_ref().map_or(0, |data| data.as_str().len() as u64),
        },
    }
}

/// Returns the exit code and the signal with which a child ended. Its envelope has neither.
async fn exit_of(supervisor: &Client, envelope: &WireEnvelope) -> Result<(i32, i32), Failure> {
    let asked = Tree { run: Some(RunName::from(envelope.run_id)), all: true };
    let reason = supervisor.call(asked).await?.roots.into_iter().next().and_then(|it| it.reason);
    Ok(match reason {
        Some(EndReason { exit_code: Some(code), .. }) => (code, 0),
        Some(EndReason { signal: Some(signal), .. }) => (0, signal),
        _ if envelope.status.is_success() => (0, 0),
        _ => (NO_CODE, 0),
    })
}
