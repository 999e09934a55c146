//! What a runtime of a plugin is asked.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, poll_immediate};
use offshoot_model::{JsonText, RunStatus};
use offshoot_plugin_abi::abi_stable::std_types::RResult;
use offshoot_plugin_abi::wire::{finished, launch};
use offshoot_plugin_abi::{AbiError, Outcome, RunRef, RuntimeRef};
use offshoot_runtime::{CostKnowledge, Finished, Launch, RunEvent, Runtime};

use super::listener::Listener;
use super::probing::{self, Probing};
use super::{Book, Suite, soon};
use crate::plugin::{Plugin, words};

/// Between the request to stop and its end, in milliseconds.
const GRACE_MS: u64 = 500;
/// How long nothing may be heard from a run that is over.
const SILENCE: Duration = Duration::from_millis(100);
/// Runs at once.
const MANY: usize = 64;
/// A task of this size, in bytes.
const LARGE: usize = 100 << 20;
/// Why stopping cannot be tried.
pub(super) const NO_HANGING_TASK: &str = "no task was named that hangs";

pub(super) async fn check(
    plugin: &Arc<Plugin>,
    name: &str,
    config: &JsonText,
    suite: &Suite,
    probing: Probing,
    book: &mut Book<'_>,
) {
    let subject = format!("runtime {name}");
    book.rule(&subject, "an unknown name is refused without a panic", async {
        match plugin.module.runtime()("no such runtime".into(), "{}".into()) {
            RResult::ROk(_) => Err("it gave a runtime of another name".to_owned()),
            RResult::RErr(error) => not_a_panic(&error),
        }
    })
    .await;
    book.rule(&subject, "settings that are no JSON are refused without a panic", async {
        match plugin.module.runtime()(name.into(), "{".into()) {
            RResult::ROk(_) => Ok(()),
            RResult::RErr(error) => not_a_panic(&error),
        }
    })
    .await;
    let mut made = None;
    book.rule(&subject, "it is given with its settings", async {
        made = Some(plugin.runtime(name, config).map_err(|error| error.to_string())?);
        Ok(())
    })
    .await;
    let Some(made) = made else { return };
    let runtime = match plugin.module.runtime()(name.into(), config.as_str().into()) {
        RResult::ROk(runtime) => runtime,
        RResult::RErr(error) => {
            book.rule(&subject, "it is given a second time", async { Err(words(&error)) }).await;
            return;
        }
    };
    of_one_run(&runtime, &subject, suite, book).await;
    of_nonsense(&runtime, &subject, book).await;
    probing::of_runtime(&runtime, &subject, probing, book).await;
    match &suite.hanging_task {
        Some(task) => of_stopping(&runtime, &subject, task, book).await,
        None => book.skip(&subject, "it can be stopped", NO_HANGING_TASK),
    }
    if made.abilities().cost == CostKnowledge::None {
        of_size(&runtime, &subject, suite, book).await;
    } else {
        let rule = format!("{MANY} runs at once, and a task of 100 MB");
        book.skip(&subject, &rule, "its runs cost money");
    }
}

/// A run of each runtime that does not end by itself. What is wrong with these has been found before.
pub(super) async fn under_way(
    plugin: &Arc<Plugin>,
    suite: &Suite,
    task: &str,
) -> Vec<(String, RunRef)> {
    let mut live = Vec::new();
    for (name, config) in &suite.runtimes {
        let given = plugin.module.runtime()(name.as_str().into(), config.as_str().into());
        let RResult::ROk(runtime) = given else { continue };
        let listener = Listener::default();
        let run = start(&runtime, task, &listener);
        if soon("its start", listener.started()).await.is_ok() {
            live.push((name.clone(), run));
        }
    }
    live
}

/// Whether each has ended.
pub(super) async fn are_over(live: Vec<(String, RunRef)>) -> Result<(), String> {
    for (name, run) in live {
        let outcome = poll_immediate(run.outcome()).await;
        let outcome = outcome.ok_or_else(|| format!("one of the runtime {name} goes on"))?;
        if read(&outcome).is_ok_and(|finished| finished.reason.status() == RunStatus::Completed) {
            return Err(format!("one of the runtime {name} says that it completed"));
        }
    }
    Ok(())
}

/// A run that completes by itself.
async fn of_one_run(runtime: &RuntimeRef, subject: &str, suite: &Suite, book: &mut Book<'_>) {
    let listener = Listener::default();
    let run = start(runtime, &suite.task, &listener);
    let mut first = None;
    book.rule(subject, "a task that it can do completes", async {
        let outcome = soon("its outcome", run.outcome()).await?;
        let finished = read(&outcome)?;
        first = Some(outcome);
        match finished.reason.status() {
            RunStatus::Completed => Ok(()),
            _ => Err(finished.reason.to_string()),
        }
    })
    .await;
    book.rule(subject, "started is told once, and first", async {
        let heard = listener.heard();
        let starts = heard.iter().filter(|event| matches!(event, RunEvent::Started(_))).count();
        match (heard.first(), starts) {
            (Some(RunEvent::Started(_)), 1) => Ok(()),
            (first, starts) => Err(format!("{starts} times, and first comes {first:?}")),
        }
    })
    .await;
    book.rule(subject, "every event that it tells can be read", async {
        listener.unreadable().into_iter().next().map_or(Ok(()), Err)
    })
    .await;
    book.rule(subject, "what it has used only grows", async { only_grows(&listener.heard()) })
        .await;
    book.rule(subject, "its outcome can be asked for again, and is the same", async {
        let again = soon("its outcome", run.outcome()).await?;
        let same = first.as_ref().is_some_and(|first| match (first, &again) {
            (RResult::ROk(first), RResult::ROk(again)) => first == again,
            (RResult::RErr(first), RResult::RErr(again)) => first == again,
            _ => false,
        });
        if same { Ok(()) } else { Err("it is another one".to_owned()) }
    })
    .await;
    book.rule(subject, "a request to stop after the end changes nothing", async {
        run.cancel(0);
        run.cancel(GRACE_MS);
        let again = soon("its outcome", run.outcome()).await?;
        match read(&again)?.reason.status() {
            RunStatus::Completed => Ok(()),
            other => Err(format!("it is {other} now")),
        }
    })
    .await;
    book.rule(subject, "an operation that nobody knows is unsupported", async {
        match soon("the answer", run.call("no such operation".into(), "{}".into())).await? {
            RResult::RErr(error) if error.code == AbiError::UNSUPPORTED => Ok(()),
            RResult::RErr(error) => Err(format!("code {}: {}", error.code, words(&error))),
            RResult::ROk(answer) => Err(format!("it answers {answer}")),
        }
    })
    .await;
    book.rule(subject, "no event follows the outcome", async {
        let before = listener.heard().len();
        drop(run);
        #[expect(clippy::disallowed_methods, reason = "that nothing comes shows only in time")]
        tokio::time::sleep(SILENCE).await;
        match listener.heard().len() - before {
            0 => Ok(()),
            more => Err(format!("{more} of them")),
        }
    })
    .await;
}

/// What no host sends.
async fn of_nonsense(runtime: &RuntimeRef, subject: &str, book: &mut Book<'_>) {
    for (what, spec) in [("no JSON", "{"), ("empty", ""), ("of a later version", "{\"v\":999}")] {
        let rule = format!("a launch that is {what} is an error, and no panic");
        book.rule(subject, &rule, async {
            let host = Listener::default().crossing();
            let run = runtime.start(spec.into(), host);
            match soon("its outcome", run.outcome()).await? {
                RResult::RErr(error) => not_a_panic(&error),
                RResult::ROk(outcome) => match read(&RResult::ROk(outcome))?.reason.status() {
                    RunStatus::Completed => Err("it completes".to_owned()),
                    _ => Ok(()),
                },
            }
        })
        .await;
    }
}

/// A run that does not end by itself.
async fn of_stopping(runtime: &RuntimeRef, subject: &str, task: &str, book: &mut Book<'_>) {
    for (rule, requests) in [
        ("a soft request ends a run that hangs", &[GRACE_MS][..]),
        ("a firm request ends a run that hangs", &[0]),
        ("a firm request after a soft one ends a run that hangs", &[600_000, 0]),
    ] {
        book.rule(subject, rule, async {
            let listener = Listener::default();
            let run = start(runtime, task, &listener);
            soon("its start", listener.started()).await?;
            requests.iter().for_each(|grace| run.cancel(*grace));
            let outcome = soon("its end", run.outcome()).await?;
            match read(&outcome)?.reason.status() {
                RunStatus::Completed => Err("it says that it completed".to_owned()),
                _ => Ok(()),
            }
        })
        .await;
    }
    book.rule(subject, "whoever gives up waiting cancels nothing", async {
        let listener = Listener::default();
        let run = start(runtime, task, &listener);
        soon("its start", listener.started()).await?;
        if poll_immediate(run.outcome()).await.is_some() {
            return Err("it does not hang".to_owned());
        }
        if poll_immediate(run.outcome()).await.is_some() {
            return Err("it ended when its outcome was dropped".to_owned());
        }
        run.cancel(0);
        soon("its end", run.outcome()).await.map(drop)
    })
    .await;
    book.rule(subject, "a run that is dropped says nothing more", async {
        let listener = Listener::default();
        let run = start(runtime, task, &listener);
        soon("its start", listener.started()).await?;
        drop(run);
        #[expect(clippy::disallowed_methods, reason = "that nothing comes shows only in time")]
        tokio::time::sleep(SILENCE).await;
        let before = listener.heard().len();
        #[expect(clippy::disallowed_methods, reason = "that nothing comes shows only in time")]
        tokio::time::sleep(SILENCE).await;
        match listener.heard().len() - before {
            0 => Ok(()),
            more => Err(format!("{more} events")),
        }
    })
    .await;
}

/// Many at once, and a large one.
async fn of_size(runtime: &RuntimeRef, subject: &str, suite: &Suite, book: &mut Book<'_>) {
    book.rule(subject, &format!("{MANY} runs at once complete"), async {
        let runs: Vec<RunRef> =
            (0..MANY).map(|_| start(runtime, &suite.task, &Listener::default())).collect();
        let outcomes = soon("their outcomes", join_all(runs.iter().map(RunRef::outcome))).await?;
        let reasons = outcomes.iter().map(read).collect::<Result<Vec<_>, String>>()?;
        let failed =
            reasons.iter().find(|finished| finished.reason.status() != RunStatus::Completed);
        failed.map_or(Ok(()), |finished| Err(finished.reason.to_string()))
    })
    .await;
    book.rule(subject, "a task of 100 MB ends, one way or the other", async {
        let run = start(runtime, &"x".repeat(LARGE), &Listener::default());
        let outcome = tokio::time::timeout(super::PATIENCE * 6, run.outcome()).await;
        read(&outcome.map_err(|_| "its outcome took longer than a minute")?).map(drop)
    })
    .await;
}

fn start(runtime: &RuntimeRef, task: &str, listener: &Listener) -> RunRef {
    let spec = launch::encode(Launch::bare(task)).expect("its paths are UTF-8");
    runtime.start(spec.as_str().into(), listener.crossing())
}

fn read(outcome: &RResult<Outcome, AbiError>) -> Result<Finished, String> {
    match outcome {
        RResult::ROk(outcome) => finished::decode(outcome.clone()).map_err(|error| words(&error)),
        RResult::RErr(error) => Err(words(error)),
    }
}

pub(super) fn not_a_panic(error: &AbiError) -> Result<(), String> {
    if error.known_code() == AbiError::PANICKED { Err(words(error)) } else { Ok(()) }
}

fn only_grows(heard: &[RunEvent]) -> Result<(), String> {
    let mut last = None;
    for event in heard {
        let RunEvent::Used { usage, .. } = event else { continue };
        let total = usage.total().known();
        if total.zip(last).is_some_and(|(now, before)| now < before) {
            return Err(format!("{now:?} tokens after {last:?}", now = total));
        }
        last = total.or(last);
    }
    Ok(())
}
