//! A plugin through the interface and back, without a library.

#![expect(clippy::disallowed_methods, reason = "what a careless plugin does is what is tried")]

#[path = "common/carried.rs"]
mod carried;
mod common;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use carried::Carried;
use common::{Plain, Recorder, json, launch, soon};
use offshoot_plugin_sdk::abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_sdk::abi::abi_stable::std_types::RStr;
use offshoot_plugin_sdk::abi::wire::{self, manifest};
use offshoot_plugin_sdk::abi::{self, AbiError, Later, PluginRef, RuntimeRef, event};
use offshoot_plugin_sdk::model::{
    AgentId, CancelledBy, Cost, Delegated, Directly, Envelope, MicroUsd, Payload, Reason, Refusal,
    RefusalCode, RunId, RunStatus, SpawnRequest, Usage, ValueKind,
};
use offshoot_plugin_sdk::{
    Abilities, BoxFuture, Error, Finished, FnRuntime, FutureExt, JsonText, Launch, Level, MergeFn,
    MergeInput, MergeSetup, NextTurn, Output, Plugin, RunContext, RunHost, Runtime, Stop,
    StopHandle, Turns, WaitAnswer, WaitFor, check_contract, export, json_of, value_of,
};
use offshoot_test_support::Listener;
use tokio::sync::Notify;

/// Does what its task says.
struct Obedient;

impl Runtime for Obedient {
    fn name(&self) -> &str {
        "obedient"
    }

    fn abilities(&self) -> Abilities {
        Abilities { turns: true, ..Abilities::of_a_command() }
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let RunContext { host, mut stop, mut turns, .. } = cx;
        async move {
            host.started(None);
            match &*launch.task {
                "hang" => {
                    stop.heard().await;
                    Finished::of(Reason::Cancelled { by: CancelledBy::Operator })
                }
                "stubborn" => {
                    if let Stop::Soft { grace } = stop.heard().await {
                        tokio::select! {
                            _ = stop.heard() => {}
                            () = tokio::time::sleep(grace) => {}
                        }
                    }
                    Finished::of(Reason::Cancelled { by: CancelledBy::Parent })
                }
                "deaf" => {
                    let _held = Held;
                    std::future::pending().await
                }
                "flood" => {
                    for number in 0..10_000 {
                        host.progress(number.to_string());
                    }
                    let late = host.clone();
                    let after = Arc::clone(&LATE);
                    tokio::spawn(async move {
                        after.notified().await;
                        late.progress("too late");
                        after.notify_one();
                    });
                    host.used(Usage::default(), Cost::known(MicroUsd::from_micros(5)));
                    Finished::text("flooded")
                }
                "large" => Finished::text("x".repeat(100 << 20)),
                "family" => {
                    let refused = host.spawn(request("no")).await.expect_err("refused");
                    let child = host.spawn(request("yes")).await.expect("admitted");
                    let wait = WaitFor { runs: vec![child], ..WaitFor::default() };
                    let ended = host.wait(wait).await.expect("it is waited for").ended;
                    Finished::text(format!("{} {:?}", refused.code, ended[0].data))
                }
                "old host" => {
                    let refused = host.delegate(request("yes"), false).await.expect_err("refused");
                    Finished::text(format!("{}: {}", refused.code, refused.message))
                }
                "hands on" => {
                    let refused = host.delegate(request("no"), false).await.expect_err("refused");
                    let chosen = host.delegate(request("yes"), true).await.expect("chosen");
                    let own = host.delegate(request("mine"), false).await.expect("an answer");
                    host.observed(1, true).await.expect("it is open");
                    let closed = host.observed(1, true).await.expect_err("it is closed");
                    let told = (refused.code, closed.field);
                    Finished::text(format!("{told:?}, {chosen:?}, {own:?}"))
                }
                "late" => match host.wait(WaitFor::default()).await {
                    Ok(answer) => Finished::text(format!("{answer:?}")),
                    Err(Refusal { code, message, hint, .. }) => {
                        Finished::text(format!("{code}: {message} ({hint:?})"))
                    }
                },
                "turns" => {
                    let letter = turns.letter().await;
                    let mut answer = format!("got {letter}");
                    while let NextTurn::Go(prompt) = turns.ended(Some(answer.as_str().into())).await
                    {
                        answer = format!("{answer}, then {prompt}");
                    }
                    Finished::text(answer)
                }
                other => {
                    while let NextTurn::Go(_) = turns.ended(Some(other.into())).await {}
                    Finished::text(other)
                }
            }
        }
        .boxed()
    }
}

/// The value that a deaf run holds.
struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        RELEASED.notify_one();
    }
}

static RELEASED: Notify = Notify::const_new();

static LATE: LazyLock<Arc<Notify>> = LazyLock::new(Arc::default);

fn request(task: &str) -> SpawnRequest {
    SpawnRequest { task: task.into(), ..SpawnRequest::default() }
}

/// Adds numbers, and answers as soon as the sum is above its limit.
struct Add {
    sum: f64,
    limit: f64,
}

impl MergeFn for Add {
    fn begin(setup: MergeSetup) -> Result<Self, Error> {
        let limit = setup.params.parse::<Option<f64>>()?.unwrap_or(f64::INFINITY);
        Ok(Self { sum: 0.0, limit })
    }

    fn push(&mut self, _index: u32, result: MergeInput) -> Result<Option<JsonText>, Error> {
        self.sum += value_of::<f64>(&result)?;
        if self.sum > self.limit { json_of(&self.sum).map(Some) } else { Ok(None) }
    }

    async fn finish(self) -> Result<JsonText, Error> {
        // It has the plugin's clock.
        tokio::time::sleep(Duration::from_millis(1)).await;
        json_of(&self.sum)
    }
}

static HOST: LazyLock<Plain> = LazyLock::new(Plain::default);

fn plugin() -> PluginRef {
    static PLUGIN: LazyLock<PluginRef> = LazyLock::new(|| {
        let plugin = export::root_module(|| {
            let abilities = Obedient.abilities();
            Plugin::new("for tests")
                .runtime("obedient", "does what it is told", abilities, |_| Ok(Obedient))
                .runtime("liar", "", Abilities::of_a_command(), |_| Ok(Obedient))
                .runtime("picky", "", Obedient.abilities(), |setup| {
                    let number: u32 = setup.config.parse()?;
                    let answer = setup.host.call("echo", &number.to_string())?;
                    assert_eq!(answer, number.to_string());
                    let fields = BTreeMap::from([("number", number)]);
                    setup.host.log_with(Level::Info, "picky", "made", &fields);
                    setup.host.log_with(Level::Debug, "picky", "again", &number);
                    Ok(Obedient)
                })
                .runtime("brief", "", brief().abilities(), |_| Ok(brief()))
                .merge::<Add>("add", "adds")
        });
        assert_eq!(
            plugin.runtime()("obedient".into(), "".into())
                .into_result()
                .err()
                .map(|error| error.code),
            Some(AbiError::INVALID),
            "not before init"
        );
        plugin.init()(HOST.as_ref(), "".into()).into_result().expect("the first");
        plugin
    });
    *PLUGIN
}

/// Takes one turn.
fn brief() -> FnRuntime {
    FnRuntime::new("brief", |_, _| std::future::pending())
}

fn runtime(plugin: PluginRef, name: &str) -> RuntimeRef {
    plugin.runtime()(name.into(), "".into()).into_result().expect(name)
}

#[tokio::test]
async fn every_runtime_passes_the_contract() {
    // That letters come before a ruling is what a host sees to, and this one does not.
    let abilities = Abilities { turns: false, ..Obedient.abilities() };
    let carried = Carried { object: runtime(plugin(), "obedient"), abilities };
    let (answers, hangs) = (|| launch("hello"), || launch("hang"));
    assert_eq!(check_contract(&Obedient, answers, hangs).await, []);
    assert_eq!(check_contract(&carried, answers, hangs).await, []);
}

#[test]
fn a_plugin_describes_itself_and_refuses_what_it_has_not() {
    let manifest = manifest::decode(&plugin().describe()()).expect("a manifest");
    assert_eq!(manifest.abi, "1.0.0");
    assert_eq!(manifest.panic, manifest::Panic::Unwind);
    let names: Vec<_> = manifest.runtimes.iter().map(|entry| &*entry.name).collect();
    assert_eq!(names, ["obedient", "liar", "picky", "brief"]);
    assert_eq!(manifest.runtimes[0].abilities, Obedient.abilities());
    assert_eq!(manifest.merges[0].description, "adds");

    let check = |name: &str, config: &str, code, expected: &str| {
        let error = plugin().runtime()(name.into(), config.into()).into_result();
        let error = error.err().expect(expected);
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(expected), "{error}");
    };
    check("absent", "", AbiError::UNSUPPORTED, "no runtime `absent`");
    check("liar", "", AbiError::INVALID, "the abilities of the runtime `liar` differ: ");
    check("picky", "{}", AbiError::INVALID, "settings: invalid type: map, expected u32");
    plugin().runtime()("picky".into(), "7".into()).into_result().expect("a number");
    let logged = HOST.0.lock().expect("one at a time").clone();
    for line in [r#"3 picky: made{"number":7}"#, r#"4 picky: again{"value":7}"#] {
        assert!(logged.iter().any(|said| said == line), "{logged:?}");
    }
    let merge = plugin().merge()("absent".into(), "".into());
    assert_eq!(merge.into_result().err().map(|error| error.code), Some(AbiError::UNSUPPORTED));
    let again = plugin().init()(Plain::default().as_ref(), "".into())
        .into_result()
        .expect_err("once is enough");
    assert_eq!(again.code, AbiError::INVALID);
}

#[tokio::test]
async fn ten_thousand_events_in_order_and_none_after_the_outcome() {
    let recorder = Recorder::default();
    let run =
        runtime(plugin(), "obedient").start(json(launch("flood")).as_rstr(), recorder.as_ref());
    soon(run.outcome()).await.into_result().expect("it completed");
    LATE.notify_one();
    soon(LATE.notified()).await;

    let events = recorder.events.lock().expect("one at a time").clone();
    assert_eq!(events.len(), 10_002);
    assert_eq!(events[0], (event::STATUS, r#"{"v":1,"status":"started"}"#.to_owned()));
    for (number, told) in events[1..=10_000].iter().enumerate() {
        assert_eq!(*told, (event::TEXT, number.to_string()));
    }
    assert_eq!(events[10_001].0, event::USAGE);
}

#[tokio::test]
async fn a_large_answer_stays_text() {
    let run = runtime(plugin(), "obedient")
        .start(json(launch("large")).as_rstr(), Recorder::default().as_ref());
    let outcome = soon(run.outcome()).await.into_result().expect("it completed");
    assert_eq!(outcome.body.len(), 100 << 20);
    assert!(outcome.head_json.len() < 1000, "the answer is not among the words about it");
    let finished = wire::finished::decode(outcome).expect("what was encoded");
    assert!(matches!(finished.output, Output::Text(text) if text.len() == 100 << 20));
}

#[tokio::test]
async fn an_outcome_can_be_asked_for_again_and_survives_who_gave_up() {
    let run = runtime(plugin(), "obedient")
        .start(json(launch("hang")).as_rstr(), Recorder::default().as_ref());
    let mut impatient = run.outcome();
    assert!((&mut impatient).now_or_never().is_none());
    drop(impatient);
    run.cancel(0);
    let first = soon(run.outcome()).await.into_result().expect("it ended");
    let second = soon(run.outcome()).await.into_result().expect("it still has");
    assert_eq!(first, second);
    let finished = wire::finished::decode(first).expect("what was encoded");
    assert_eq!(finished.reason.status(), RunStatus::Cancelled);
    // Over is over.
    run.cancel(0);
}

#[tokio::test]
async fn cancelling_is_heard_softly_and_firmly() {
    let start = |task| {
        let recorder = Recorder::default();
        runtime(plugin(), "obedient").start(json(launch(task)).as_rstr(), recorder.as_ref())
    };
    let softly = start("hang");
    softly.cancel(60_000);
    softly.cancel(60_000);
    soon(softly.outcome()).await.into_result().expect("it ended");
    let firmer = start("stubborn");
    firmer.cancel(3_600_000);
    firmer.cancel(0);
    soon(firmer.outcome()).await.into_result().expect("it ended within the second grace");
}

#[tokio::test]
async fn a_run_that_does_not_hear_is_ended_by_force() {
    for grace in [1, 0] {
        let run = runtime(plugin(), "obedient")
            .start(json(launch("deaf")).as_rstr(), Recorder::default().as_ref());
        run.cancel(grace);
        let error = soon(run.outcome()).await.into_result().expect_err("it did not end by itself");
        assert_eq!((error.code, &*error.message), (AbiError::CANCELLED, "it was ended by force"));
        // With all that it held, though its host still has it.
        soon(RELEASED.notified()).await;
        drop(run);
    }
}

#[tokio::test]
async fn an_event_may_be_answered_with_a_request_to_stop() {
    let recorder = Recorder::default();
    recorder.answer.store(event::PLEASE_STOP, Ordering::SeqCst);
    let run =
        runtime(plugin(), "obedient").start(json(launch("hang")).as_rstr(), recorder.as_ref());
    soon(run.outcome()).await.into_result().expect("it ended");
}

#[tokio::test]
async fn what_cannot_be_read_is_an_outcome() {
    let run = runtime(plugin(), "obedient").start("{}".into(), Recorder::default().as_ref());
    let error = soon(run.outcome()).await.into_result().expect_err("no launch");
    assert_eq!(error.code, AbiError::INVALID);
    run.cancel(0);
    let error = run.call("dance".into(), "".into()).await.into_result().expect_err("unknown");
    assert_eq!(error.code, AbiError::UNSUPPORTED);
}

#[tokio::test]
async fn a_letter_is_taken_by_who_reads_letters() {
    let check = async |name: &str, expected: Option<u32>| {
        let run = runtime(plugin(), name)
            .start(json(launch("hang")).as_rstr(), Recorder::default().as_ref());
        let letter = wire::turn::encode_letter("hello".into());
        let taken = run.call(wire::op::LETTER.into(), letter.as_str().into()).await;
        assert_eq!(taken.into_result().err().map(|error| error.code), expected, "{name}");
    };
    check("obedient", None).await;
    check("brief", Some(AbiError::UNSUPPORTED)).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_is_ended() {
    struct Gone(Arc<Notify>);
    impl abi::RunHost for Gone {
        fn event(&self, _kind: u32, _payload: RStr<'_>) -> u32 {
            event::GO_ON
        }

        fn spawn(&self, _spec_json: RStr<'_>) -> Later {
            unreachable!("it asks for no child")
        }

        fn call(&self, _op: RStr<'_>, _args_json: RStr<'_>) -> Later {
            unreachable!("it calls nothing")
        }
    }
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let gone = Arc::new(Notify::new());
    let host = abi::RunHost_TO::from_value(Gone(Arc::clone(&gone)), TD_Opaque);
    let run = runtime(plugin(), "obedient").start(json(launch("hang")).as_rstr(), host);
    drop(run);
    soon(gone.notified()).await;
}

const CHILD: RunId = RunId::from_bytes([9; 16]);

/// A host that admits the child that asks for `yes`.
fn family() -> Listener {
    let spawn = |request: &SpawnRequest, _| match &*request.task {
        "yes" => Ok(CHILD),
        _ => Err(Refusal::new(RefusalCode::DepthLimit, "too deep")),
    };
    let wait = |wait: WaitFor| {
        let Some(&child) = wait.runs.first() else {
            let over = Refusal::new(RefusalCode::CallerEnded, "this session is over");
            return async { Err(over.with_hint("end too")) }.boxed();
        };
        let agent: AgentId = "main".parse().expect("an agent");
        let key = "agent:main:subagent:c".parse().expect("a key");
        let ending = offshoot_plugin_sdk::model::Ending::completed(Payload::text("grown up"));
        let ended = vec![Envelope::of(&ending, key, child, agent, 1)];
        async { Ok(WaitAnswer { ended, pending: Vec::new() }) }.boxed()
    };
    let delegate = |request: &SpawnRequest, choose_only| match &*request.task {
        "yes" if choose_only => {
            let agent = "main".parse().expect("an agent");
            Ok(Delegated::Chosen { agent, scores: Vec::new(), learned: None })
        }
        "mine" => Ok(Delegated::ExecuteDirectly {
            reason: Directly::Tie,
            message: "two fit".to_owned(),
            observation: Some(1),
            scores: Vec::new(),
            learned: Some("nothing yet".to_owned()),
        }),
        _ => Err(Refusal::new(RefusalCode::BudgetExhausted, "nothing is left")),
    };
    let open = Mutex::new(Some(1));
    let observe = move |observation, _success| match open.lock().expect("one at a time").take() {
        Some(open) if open == observation => Ok(()),
        _ => Err(Refusal::invalid("observation", "it is not open")),
    };
    Listener::default().spawning(spawn).waiting(wait).delegating(delegate).observing(observe)
}

#[tokio::test]
async fn children_letters_and_turns_cross() {
    let carried =
        Carried { object: runtime(plugin(), "obedient"), abilities: Obedient.abilities() };
    let run = |task: &str, letter: Option<&str>| {
        let family = family();
        family.goes_on("results");
        let host = RunHost::new(family);
        let letters = offshoot_runtime::LetterBox::default();
        let turns = Turns::new(host.clone(), letters.clone());
        letter.into_iter().for_each(|letter| letters.put(letter.into()));
        let (_stop, signal) = StopHandle::new();
        let finished =
            carried.start(launch(task), RunContext { turns, ..RunContext::new(host, signal) });
        async move {
            let _here = (_stop, letters);
            finished.await.output
        }
    };
    let text = |text: &str| Output::Text(text.into());
    assert_eq!(soon(run("family", None)).await, text(r#"depth_limit Some(Text("grown up"))"#));
    let handed_on = r#"(BudgetExhausted, Some("observation")), Chosen { agent: AgentId("main"), scores: [], learned: None }, ExecuteDirectly { reason: Tie, message: "two fit", observation: Some(1), scores: [], learned: Some("nothing yet") }"#;
    assert_eq!(soon(run("hands on", None)).await, text(handed_on));
    // What cannot be waited for is no wait in which nothing has ended, or a loop over it would spin.
    let refused = r#"caller_ended: this session is over (Some("end too"))"#;
    assert_eq!(soon(run("late", None)).await, text(refused));
    assert_eq!(soon(run("turns", Some("a letter"))).await, text("got a letter, then results"));
}

#[tokio::test]
async fn a_host_that_knows_no_wait_refuses_it() {
    let run = runtime(plugin(), "obedient")
        .start(json(launch("late")).as_rstr(), Recorder::default().as_ref());
    let outcome = soon(run.outcome()).await.into_result().expect("it completed");
    let finished = wire::finished::decode(outcome).expect("what was encoded");
    let said = "cannot_delegate: the host could not be asked: unsupported operation `wait` (None)";
    assert_eq!(finished.output, Output::Text(said.into()));
}

#[tokio::test]
async fn a_host_that_hands_nothing_on_refuses_it() {
    let run = runtime(plugin(), "obedient")
        .start(json(launch("old host")).as_rstr(), Recorder::default().as_ref());
    let outcome = soon(run.outcome()).await.into_result().expect("it completed");
    let finished = wire::finished::decode(outcome).expect("what was encoded");
    let said = "cannot_delegate: the host could not be asked: unsupported operation `delegate`";
    assert_eq!(finished.output, Output::Text(said.into()));
}

#[tokio::test]
async fn merges_cross() {
    let merge = plugin().merge()("add".into(), "".into()).into_result().expect("it is offered");
    let begin =
        |params: &str| merge.begin(params.into(), Recorder::default().as_ref()).into_result();
    let meta = |file| {
        let key = "k".into();
        wire::merge::encode(wire::merge::Meta { key, status: RunStatus::Completed, file })
            .expect("UTF-8")
    };
    let plain = meta(None);

    let mut job = begin("null").expect("no limit");
    for (index, number) in ["1", "2.5"].into_iter().enumerate() {
        let index = u32::try_from(index).expect("small");
        let early = job.push(index, plain.as_str().into(), number.into()).into_result();
        assert!(early.expect("a number").is_none());
    }
    let path = std::env::temp_dir().join(format!("offshoot-sdk-merge-{}", std::process::id()));
    std::fs::write(&path, "10").expect("a file for the test");
    let file = wire::merge::File { path: path.clone(), kind: ValueKind::Result, size: 2 };
    job.push(2, meta(Some(file)).as_str().into(), "null".into()).into_result().expect("a file");
    std::fs::remove_file(path).expect("it was there");
    let finish = job.finish();
    drop(job);
    assert_eq!(soon(finish).await.into_result().expect("an answer"), "13.5");

    let mut job = begin("3").expect("a limit");
    assert!(
        job.push(0, plain.as_str().into(), "2".into()).into_result().expect("a number").is_none()
    );
    let early = job.push(1, plain.as_str().into(), "2".into()).into_result().expect("a number");
    assert_eq!(early.into_option().expect("above the limit"), "4.0");
    let over = job.push(2, plain.as_str().into(), "2".into()).into_result().expect_err("over");
    assert_eq!(over.message, "this merge is over");
    soon(job.finish()).await.into_result().expect_err("it has answered");

    assert_eq!(begin(r#""x""#).err().map(|error| error.code), Some(AbiError::INVALID));
    let mut job = begin("null").expect("no limit");
    let error =
        job.push(0, plain.as_str().into(), r#""x""#.into()).into_result().expect_err("no number");
    assert_eq!(error.code, AbiError::FAILED);
    assert!(error.message.starts_with("the result of `k`: invalid type"), "{error}");
    // Dropped before its end, it is abandoned.
    drop(begin("null"));
}

#[test]
fn the_exported_name_is_the_loaders() {
    use offshoot_plugin_sdk::abi::abi_stable::library::ROOT_MODULE_LOADER_NAME;
    let exported = format!("export_name = {ROOT_MODULE_LOADER_NAME:?}");
    assert!(include_str!("../src/export.rs").contains(&exported), "{exported}");
}
