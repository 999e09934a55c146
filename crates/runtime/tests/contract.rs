//! The contract holds for closures, and it notices when it is broken.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use offshoot_model::{CancelledBy, Cost, MicroUsd, Reason, TokenCount, Usage};
use offshoot_runtime::{
    Abilities, Finished, FnRuntime, Launch, RunContext, Runtime, Stop, StopHandle, check_contract,
};

fn launch(task: &str) -> Launch {
    Launch::bare(task)
}

#[tokio::test(start_paused = true)]
async fn every_runtime_passes_the_contract() {
    let closure = FnRuntime::new("closure", |launch, _cx| async move {
        if &*launch.task == "hang" {
            std::future::pending::<()>().await;
        }
        Finished::text("done")
    });
    let broken = check_contract(&closure, || launch("answer"), || launch("hang")).await;
    assert_eq!(broken, []);
}

/// Breaks the promise that its task names, and no other.
struct Misbehaves;

impl Runtime for Misbehaves {
    fn name(&self) -> &str {
        "misbehaves"
    }

    fn abilities(&self) -> Abilities {
        Abilities { turns: true, ..Abilities::of_a_command() }
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        if &*launch.task == "speaks first" {
            cx.host.progress("here I come");
        }
        if !launch.task.starts_with("silent") {
            cx.host.started(None);
        }
        if launch.task.starts_with("hang") {
            Box::pin(hangs(launch.task, cx))
        } else {
            Box::pin(answers(launch.task, cx))
        }
    }
}

fn tokens(tokens: u64) -> Usage {
    Usage { input: TokenCount::Known(tokens), ..Usage::default() }
}

async fn answers(task: Arc<str>, cx: RunContext) -> Finished {
    let RunContext { host, mut turns, .. } = cx;
    let usd = |micros| Cost::known(MicroUsd::from_micros(micros));
    match &*task {
        "starts twice" => host.started(None),
        "uses less" => [2, 1].into_iter().for_each(|n| host.used(tokens(n), Cost::NONE)),
        "forgets" => {
            [tokens(2), Usage::UNKNOWN].into_iter().for_each(|used| host.used(used, Cost::NONE));
        }
        "costs less" => [2, 1].into_iter().for_each(|n| host.used(tokens(1), usd(n))),
        "ends with less" => host.used(tokens(2), Cost::NONE),
        "never ends" | "silent" => {
            turns.ended(None).await;
            turns.ended(None).await;
            std::future::pending().await
        }
        "fails" => {
            return Finished::of(Reason::ExitCode { code: 1 });
        }
        "one turn" => {
            turns.ended(None).await;
            return Finished::text("done");
        }
        "no letters" => {
            host.turn_ended(None, 0).await;
            host.turn_ended(None, 0).await;
            return Finished::text("done");
        }
        "greedy" => {
            turns.ended(None).await;
        }
        "late" => after(Duration::from_secs(1), move || host.progress("still here")),
        "stays" => after(Duration::MAX, move || drop(host)),
        _ => {}
    }
    turns.ended(None).await;
    turns.ended(None).await;
    let usage = (&*task == "ends with less").then(|| tokens(1));
    Finished { usage, ..Finished::text("done") }
}

async fn hangs(task: Arc<str>, mut cx: RunContext) -> Finished {
    let host = cx.host.clone();
    let mut dropped = OnDrop(match &*task {
        "hang, then speak" => {
            Some(Box::new(|| after(Duration::from_secs(1), move || host.progress("no"))))
        }
        "hang, then stay" => Some(Box::new(|| after(Duration::MAX, move || drop(host)))),
        _ => None,
    });
    let request = cx.stop.heard().await;
    dropped.0 = None;
    match (&*task, request) {
        ("hang, deaf", _)
        | ("hang, not softly", Stop::Soft { grace: SHORT })
        | ("hang, not firmly", Stop::Firm) => std::future::pending().await,
        ("hang, patient", Stop::Soft { grace }) => pause(grace).await,
        ("hang, lies", _) => return Finished::text("done"),
        _ => {}
    }
    Finished::of(Reason::Cancelled { by: CancelledBy::Operator })
}

/// The grace that the contract gives first.
const SHORT: Duration = Duration::from_millis(200);

/// Goes on when its run is over.
#[expect(clippy::disallowed_methods, reason = "what no runtime should do")]
fn after(time: Duration, work: impl FnOnce() + Send + 'static) {
    tokio::spawn(async move {
        pause(time).await;
        work();
    });
}

#[expect(clippy::disallowed_methods, reason = "the clock of these tests is paused")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Does it where a run is dropped, and not where it ends.
struct OnDrop(Option<Box<dyn FnOnce() + Send>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_broken_promise_is_named_and_none_is_waited_for_without_end() {
    async fn check(answer: &str, hang: &str, expected: &[&str]) {
        let broken = check_contract(&Misbehaves, || launch(answer), || launch(hang)).await;
        let rules: Vec<&str> = broken.iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, expected, "{answer}; {hang}: {broken:#?}");
    }
    let (soft, firm, firmer) = (
        "a soft stop ends a run that hangs",
        "a firm stop ends a run that hangs",
        "a firm stop shortens a soft one",
    );
    check("well", "hang", &[]).await;
    for (task, rule) in [
        ("fails", "a launch that answers completes"),
        ("never ends", "a launch that answers completes"),
        ("starts twice", "started is told exactly once"),
        ("speaks first", "started comes first"),
        ("uses less", "what was used only grows"),
        ("forgets", "what was used only grows"),
        ("costs less", "what was used only grows"),
        ("ends with less", "what was used only grows"),
        ("one turn", "a run that is told to go on takes a further turn"),
        ("no letters", "a letter is taken with the next turn"),
        ("greedy", "a run that is told to end takes no further turn"),
        ("late", "no event follows the end"),
        ("stays", "a run that is over lets go of its host"),
    ] {
        check(task, "hang", &[rule]).await;
    }
    for (task, rules) in [
        ("silent", &["a launch that hangs starts, and does not end before it is stopped"][..]),
        ("well", &["a launch that hangs starts, and does not end before it is stopped"]),
        ("hang, deaf", &[soft, firm, firmer]),
        ("hang, lies", &[soft, firm, firmer]),
        ("hang, not softly", &[soft]),
        ("hang, not firmly", &[firm]),
        ("hang, patient", &[firmer]),
        ("hang, then speak", &["a run that is dropped says nothing more"]),
        ("hang, then stay", &["a run that is dropped lets go of its host"]),
    ] {
        check("well", task, rules).await;
    }
    let silent = ["a launch that answers completes", "started is told exactly once"];
    check("silent", "hang", &silent).await;
}

#[tokio::test]
async fn a_softer_request_does_not_soften_a_firm_one() {
    let (handle, mut signal) = StopHandle::new();
    let soft = |seconds| Stop::Soft { grace: Duration::from_secs(seconds) };
    handle.stop(soft(5));
    assert_eq!(signal.heard().await, soft(5));
    handle.stop(soft(2));
    assert_eq!(signal.heard().await, soft(2), "a shorter grace is firmer");
    handle.stop(Stop::Firm);
    assert_eq!(signal.heard().await, Stop::Firm);
    handle.stop(soft(9));
    assert_eq!(signal.requested(), Some(Stop::Firm));
}
