//! The conformance tests: what every runtime must pass.
//!
//! Each run of a runtime is one trial, of which several rules are judged. No trial waits for ever: a run that does not start,
//! end or let go of its host in time breaks the rule that says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use offshoot_model::{Cost, Refusal, RefusalCode, RunId, RunStatus, SpawnRequest, Usage};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::{
    Finished, Host, Launch, LetterBox, Ruling, RunContext, RunEvent, RunHost, Runtime, Stop,
    StopHandle, Turns, WaitAnswer, WaitFor,
};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: &'static str,
    /// The behaviour that was found instead.
    pub found: String,
}

/// The course of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A trial begins that can break this rule first. A runtime that ends the process has broken it.
    Trying(&'static str),
    /// The rule holds.
    Kept(&'static str),
    /// The rule is broken.
    Broken(Violation),
}

/// Runs a runtime through the contract.
///
/// `answers` must be a launch that completes by itself, `hangs` one that does not end until it is stopped. Returns every promise
/// that was broken. Nothing is waited for longer than 30 seconds. Needs tokio's clock.
pub async fn check(
    runtime: &dyn Runtime,
    answers: impl Fn() -> Launch,
    hangs: impl Fn() -> Launch,
) -> Vec<Violation> {
    let mut broken = Vec::new();
    let mut note = |note| {
        if let Note::Broken(violation) = note {
            broken.push(violation);
        }
    };
    check_each(runtime, &answers, Some(&hangs), PATIENCE, &mut note).await;
    broken
}

/// Does the same rule by rule, and waits so long for each. Without a launch that hangs, no rule of stopping is tried.
pub async fn check_each(
    runtime: &dyn Runtime,
    answers: &dyn Fn() -> Launch,
    hangs: Option<&dyn Fn() -> Launch>,
    patience: Duration,
    note: &mut dyn FnMut(Note),
) {
    let mut notes = Notes { patience, note };
    of_an_answer(runtime, answers(), &mut notes).await;
    let Some(hangs) = hangs else { return };
    if of_stopping(runtime, hangs, &mut notes).await.is_some() {
        of_a_drop(runtime, hangs(), &mut notes).await;
    }
}

/// Enough for a slow machine and a slow model.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that a run has for hearing a request before a firmer one, and for what it was just telling when it was dropped.
const MOMENT: Duration = Duration::from_millis(50);
/// Between a soft request to stop and the end by force.
const GRACE: Duration = Duration::from_millis(200);
/// A grace that a run is not to use up.
const LONG: Duration = Duration::from_secs(3600);

const ANSWERS: &str = "a launch that answers completes";
const STARTS_ONCE: &str = "started is told exactly once";
const STARTS_FIRST: &str = "started comes first";
const GROWS: &str = "what was used only grows";
const GOES_ON: &str = "a run that is told to go on takes a further turn";
const LETTERS: &str = "a letter is taken with the next turn";
const NO_MORE_TURNS: &str = "a run that is told to end takes no further turn";
const QUIET: &str = "no event follows the end";
const LETS_GO: &str = "a run that is over lets go of its host";
const HANGS: &str = "a launch that hangs starts, and does not end before it is stopped";
const STOPS: [(&str, &[Stop]); 3] = [
    ("a soft stop ends a run that hangs", &[Stop::Soft { grace: GRACE }]),
    ("a firm stop ends a run that hangs", &[Stop::Firm]),
    ("a firm stop shortens a soft one", &[Stop::Soft { grace: LONG }, Stop::Firm]),
];
const DROPPED_QUIET: &str = "a run that is dropped says nothing more";
const DROPPED_LETS_GO: &str = "a run that is dropped lets go of its host";

/// A run that completes by itself: what it tells, its turns, and what is left of it.
async fn of_an_answer(runtime: &dyn Runtime, launch: Launch, notes: &mut Notes<'_>) {
    notes.trying(ANSWERS);
    let turns = runtime.abilities().turns;
    let Attempt { future, heard, .. } = Attempt::of(runtime, launch, turns);
    let finished = timeout(notes.patience, future).await.ok();
    let found = match finished.as_ref().map(|finished| &finished.reason) {
        Some(reason) if reason.status() == RunStatus::Completed => Ok(()),
        Some(reason) => Err(reason.to_string()),
        None => Err(notes.late()),
    };
    let completed = found.is_ok();
    notes.judge(ANSWERS, found);

    let events = heard.told.lock().events.clone();
    let starts = events.iter().filter(|event| matches!(event, RunEvent::Started(_))).count();
    notes.require(STARTS_ONCE, starts == 1, format_args!("{starts} times"));
    let first = events.first();
    let started = first.is_none_or(|first| matches!(first, RunEvent::Started(_)));
    notes.require(STARTS_FIRST, started, format_args!("{first:?}"));
    notes.judge(GROWS, shrank(&events, finished.as_ref()).map_or(Ok(()), Err));
    if finished.is_none() {
        return;
    }

    let asked = heard.told.lock().asked.clone();
    let found = format!("it asked {} times how it goes on", asked.len());
    // A run that failed need not ask.
    if turns && completed {
        notes.require(GOES_ON, asked.len() > 1, &found);
        let taken = asked.get(1).is_none_or(|taken| *taken > 0);
        notes.require(LETTERS, taken, "it had taken none when that turn was over");
    }
    notes.require(NO_MORE_TURNS, asked.len() <= 1 + usize::from(turns), &found);

    let gone = timeout(notes.patience, heard.gone.notified()).await;
    let more = heard.told.lock().events.len() - events.len();
    notes.require(QUIET, more == 0, format_args!("{more} of them"));
    let late = notes.late();
    notes.judge(LETS_GO, gone.map_err(|_| late));
}

/// Runs that do not end by themselves: each request, and a firmer one after a softer one.
async fn of_stopping(
    runtime: &dyn Runtime,
    hangs: &dyn Fn() -> Launch,
    notes: &mut Notes<'_>,
) -> Option<()> {
    for (place, (rule, requests)) in STOPS.into_iter().enumerate() {
        let mut attempt = begun(runtime, hangs(), place == 0, notes).await?;
        notes.trying(rule);
        let mut ended = None;
        for request in requests {
            attempt.handle.stop(*request);
            let time = match request {
                Stop::Soft { grace: LONG } => MOMENT,
                Stop::Soft { .. } | Stop::Firm => notes.patience,
            };
            ended = timeout(time, &mut attempt.future).await.ok();
            if ended.is_some() {
                break;
            }
        }
        let found = match ended.map(|finished| finished.reason.status()) {
            Some(RunStatus::Completed) => Err("it says that it completed".to_owned()),
            Some(_) => Ok(()),
            None => Err(notes.late()),
        };
        notes.judge(rule, found);
    }
    Some(())
}

/// A run that does not end by itself, and is dropped.
async fn of_a_drop(runtime: &dyn Runtime, launch: Launch, notes: &mut Notes<'_>) {
    let Some(attempt) = begun(runtime, launch, false, notes).await else { return };
    notes.trying(DROPPED_QUIET);
    let Attempt { future, heard, .. } = attempt;
    drop(future);
    #[expect(clippy::disallowed_methods, reason = "what was on its way arrives within a moment")]
    tokio::time::sleep(MOMENT).await;
    let before = heard.told.lock().events.len();
    let gone = timeout(notes.patience, heard.gone.notified()).await;
    let more = heard.told.lock().events.len() - before;
    notes.require(DROPPED_QUIET, more == 0, format_args!("{more} events"));
    let late = notes.late();
    notes.judge(DROPPED_LETS_GO, gone.map_err(|_| late));
}

/// A run that has started and goes on. None where there is no such run.
async fn begun(
    runtime: &dyn Runtime,
    launch: Launch,
    first: bool,
    notes: &mut Notes<'_>,
) -> Option<Attempt> {
    notes.trying(HANGS);
    let mut attempt = Attempt::of(runtime, launch, false);
    let heard = Arc::clone(&attempt.heard);
    let begun = tokio::select! {
        biased;
        finished = &mut attempt.future => Err(format!("it ended: {}", finished.reason)),
        started = timeout(notes.patience, heard.started.notified()) => {
            started.map_err(|_| format!("it did not say that it had started: {}", notes.late()))
        }
    };
    let has_begun = begun.is_ok();
    if first || !has_begun {
        notes.judge(HANGS, begun);
    }
    has_begun.then_some(attempt)
}

/// The first figure that is less than one before it. The last one is what the run said at its end.
fn shrank(events: &[RunEvent], finished: Option<&Finished>) -> Option<String> {
    let mut told: Vec<(Option<Usage>, Option<Cost>)> = Vec::new();
    for event in events {
        if let RunEvent::Used { usage, cost } = event {
            told.push((Some(*usage), Some(*cost)));
        }
    }
    told.extend(finished.map(|finished| (finished.usage, finished.cost)));
    let mut last = [0; 5];
    for (usage, cost) in told {
        let counts = usage.map(|Usage { input, output, cache_read, cache_write }| {
            [input, output, cache_read, cache_write].map(|count| count.charged())
        });
        let micros = cost.map(|cost| cost.dollars().as_micros());
        let names = ["input", "output", "cacheRead", "cacheWrite", "millionths of a dollar"];
        let figures =
            counts.into_iter().flatten().zip(0..4).chain(micros.map(|micros| (micros, 4)));
        for (figure, place) in figures {
            if figure < last[place] {
                return Some(format!("{}: {figure} after {}", names[place], last[place]));
            }
            last[place] = figure;
        }
    }
    None
}

/// The listener for the results of the rules.
struct Notes<'a> {
    /// No run takes longer to start, to answer, to end once it was asked to, or to let go of its host.
    patience: Duration,
    note: &'a mut dyn FnMut(Note),
}

impl Notes<'_> {
    fn late(&self) -> String {
        format!("not within {} s", self.patience.as_secs())
    }

    fn trying(&mut self, rule: &'static str) {
        (self.note)(Note::Trying(rule));
    }

    fn judge(&mut self, rule: &'static str, found: Result<(), String>) {
        (self.note)(match found {
            Ok(()) => Note::Kept(rule),
            Err(found) => Note::Broken(Violation { rule, found }),
        });
    }

    fn require(&mut self, rule: &'static str, holds: bool, found: impl fmt::Display) {
        self.judge(rule, if holds { Ok(()) } else { Err(found.to_string()) });
    }
}

/// One run.
struct Attempt {
    future: BoxFuture<'static, Finished>,
    heard: Arc<Observed>,
    handle: StopHandle,
}

impl Attempt {
    /// A run with a host that tells it once to go on, with a letter, where it is to take turns.
    fn of(runtime: &dyn Runtime, launch: Launch, goes_on: bool) -> Self {
        let heard = Arc::new(Observed::default());
        let letters = LetterBox::default();
        let (handle, stop) = StopHandle::new();
        let host =
            ContractHost { heard: Arc::clone(&heard), letters: goes_on.then(|| letters.clone()) };
        let host = RunHost::new(host);
        let turns = Turns::new(host.clone(), letters);
        let cx = RunContext { turns, ..RunContext::new(host, stop) };
        Self { future: runtime.start(launch, cx), heard, handle }
    }
}

/// The observations of a run.
#[derive(Default)]
struct Observed {
    told: Mutex<Reports>,
    started: Notify,
    /// The run holds its host no longer, so nothing more can be told.
    gone: Notify,
}

#[derive(Default)]
struct Reports {
    events: Vec<RunEvent>,
    /// For each time that it asked how it goes on: how many letters it had taken.
    asked: Vec<u32>,
}

/// The host of the run.
struct ContractHost {
    heard: Arc<Observed>,
    /// The box in which the message is put; none where the run is not told to go on.
    letters: Option<LetterBox>,
}

impl Drop for ContractHost {
    fn drop(&mut self) {
        self.heard.gone.notify_one();
    }
}

impl Host for ContractHost {
    fn hear(&self, event: RunEvent) {
        if let RunEvent::Started(_) = event {
            self.heard.started.notify_one();
        }
        self.heard.told.lock().events.push(event);
    }

    fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let refusal =
            Refusal::new(RefusalCode::RecursionDisabled, "the contract admits no children");
        Box::pin(async { Err(refusal) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        Box::pin(async { Ok(WaitAnswer::default()) })
    }

    fn turn_ended(
        &self,
        _answer: Option<Arc<str>>,
        letters_taken: u32,
    ) -> BoxFuture<'static, Ruling> {
        let mut told = self.heard.told.lock();
        told.asked.push(letters_taken);
        let ruling = match &self.letters {
            Some(letters) if told.asked.len() == 1 => {
                letters.put("one more thing".into());
                Ruling::Go(None)
            }
            _ => Ruling::End,
        };
        Box::pin(async { ruling })
    }
}
