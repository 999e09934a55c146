//! The rules for a runtime of a plugin.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all, poll_immediate};
use offshoot_model::{JsonText, RunStatus};
use offshoot_plugin_abi::abi_stable::std_types::RResult;
use offshoot_plugin_abi::wire::{finished, launch};
use offshoot_plugin_abi::{AbiError, Outcome, RunRef, RuntimeRef};
use offshoot_runtime::contract::check_each;
use offshoot_runtime::{Abilities, CostKnowledge, Finished, Launch, RunContext, Runtime};

use super::listener::Listener;
use super::probing::{self, Probing};
use super::{Book, PATIENCE, Suite, children, soon};
use crate::plugin::{Plugin, words};
use crate::runtime::{PluginRuntime, carry, secrets_of};

/// Between the request to stop and its end, in milliseconds.
const GRACE_MS: u64 = 500;
/// Runs at once.
const MANY: usize = 64;
/// A task of this size, in bytes.
const LARGE: usize = 100 << 20;
/// The reason why stopping cannot be tried.
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
        match plugin.functions.runtime("no such runtime", "{}") {
            RResult::ROk(_) => Err("it gave a runtime of another name".to_owned()),
            RResult::RErr(error) => not_a_panic(&error),
        }
    })
    .await;
    book.rule(&subject, "settings that are no JSON are refused without a panic", async {
        match plugin.functions.runtime(name, "{") {
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
    let runtime = match plugin.functions.runtime(name, config.as_str()) {
        RResult::ROk(runtime) => runtime,
        RResult::RErr(error) => {
            book.rule(&subject, "it is given a second time", async { Err(words(&error)) }).await;
            return;
        }
    };
    let runtime = Arc::new(runtime);
    let as_it_is = AsItIs { runtime: Arc::clone(&runtime), made: made.clone() };
    let answers = || Launch::bare(&*suite.task);
    let hangs = suite.hanging_task.as_deref().map(|task| move || Launch::bare(task));
    let hangs = hangs.as_ref().map(|hangs| hangs as &dyn Fn() -> Launch);
    check_each(&as_it_is, &answers, hangs, PATIENCE, &mut |note| book.note(&subject, note)).await;
    of_one_run(&runtime, &subject, suite, book).await;
    of_nonsense(&runtime, &subject, book).await;
    probing::of_runtime(plugin, &runtime, &subject, probing, book).await;
    children::check(&runtime, &subject, suite.asking_task.as_deref(), book).await;
    match &suite.hanging_task {
        Some(task) => of_waiting(&runtime, &subject, task, book).await,
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
        let given = plugin.functions.runtime(name.as_str(), config.as_str());
        let RResult::ROk(runtime) = given else { continue };
        let listener = Listener::default();
        let run = start(&runtime, task, &listener);
        if soon("its start", listener.started()).await.is_ok() {
            live.push((name.clone(), run));
        }
    }
    live
}

/// Checks that each has ended.
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

/// The runtime as it is: what its runs tell is not put in order, and a run that does not end is waited for.
struct AsItIs {
    runtime: Arc<RuntimeRef>,
    made: PluginRuntime,
}

impl Runtime for AsItIs {
    fn name(&self) -> &str {
        self.made.name()
    }

    fn abilities(&self) -> Abilities {
        self.made.abilities()
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let (secrets, turns) = (secrets_of(&launch), self.made.abilities().turns);
        carry(&self.runtime, launch, cx, secrets, turns, None, None).boxed()
    }
}

/// Tries the rules about a run that completes by itself, beside those that the contract asks for.
async fn of_one_run(runtime: &RuntimeRef, subject: &str, suite: &Suite, book: &mut Book<'_>) {
    let listener = Listener::default();
    let run = start(runtime, &suite.task, &listener);
    book.rule(subject, "its outcome can be asked for again, and is the same", async {
        let first = soon("its outcome", run.outcome()).await?;
        let same = match (&first, &soon("its outcome", run.outcome()).await?) {
            (RResult::ROk(first), RResult::ROk(again)) => first == again,
            (RResult::RErr(first), RResult::RErr(again)) => first == again,
            _ => false,
        };
        if same { Ok(()) } else { Err("it is another one".to_owned()) }
    })
    .await;
    book.rule(subject, "every event that it tells can be read", async {
        listener.unreadable().into_iter().next().map_or(Ok(()), Err)
    })
    .await;
    book.rule(subject, "a request to stop after the end changes nothing", async {
        let before = read(&soon("its outcome", run.outcome()).await?)?.reason;
        run.cancel(0);
        run.cancel(GRACE_MS);
        match read(&soon("its outcome", run.outcome()).await?)?.reason {
            after if after == before => Ok(()),
            after => Err(format!("it is {after} now")),
        }
    })
    .await;
    book.rule(subject, "an operation that does not exist is refused as unsupported", async {
        match soon("the answer", run.call("no such operation".into(), "{}".into())).await? {
            RResult::RErr(error) if error.code == AbiError::UNSUPPORTED => Ok(()),
            RResult::RErr(error) => Err(format!("code {}: {}", error.code, words(&error))),
            RResult::ROk(answer) => Err(format!("it answers {answer}")),
        }
    })
    .await;
}

/// Tries documents that no host sends.
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

/// A run that does not end by itself, beside what the contract asks.
async fn of_waiting(runtime: &RuntimeRef, subject: &str, task: &str, book: &mut Book<'_>) {
    book.rule(subject, "a wait that is given up cancels nothing", async {
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
        let outcome = tokio::time::timeout(PATIENCE * 6, run.outcome()).await;
        match outcome.map_err(|_| "its outcome took longer than a minute")? {
            RResult::RErr(error) => not_a_panic(&error),
            outcome => read(&outcome).map(drop),
        }
    })
    .await;
}

pub(super) fn start(runtime: &RuntimeRef, task: &str, listener: &Listener) -> RunRef {
    let spec = launch::encode(Launch::bare(task)).expect("its paths are UTF-8");
    runtime.start(spec.as_str().into(), listener.crossing())
}

pub(super) fn read(outcome: &RResult<Outcome, AbiError>) -> Result<Finished, String> {
    match outcome {
        RResult::ROk(outcome) => finished::decode(outcome.clone()).map_err(|error| words(&error)),
        RResult::RErr(error) => Err(words(error)),
    }
}

pub(super) fn not_a_panic(error: &AbiError) -> Result<(), String> {
    if error.known_code() == AbiError::PANICKED { Err(words(error)) } else { Ok(()) }
}
