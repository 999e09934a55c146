//! Runs whose runtime has a fault that may be gone the next time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use offshoot_audit::Audit;
use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::{
    Event, EventKind, Payload, Reason, RunStatus, SpawnRequest, TokenCount, Usage,
};
use offshoot_runtime::{Finished, FnRuntime, WaitFor};
use offshoot_spawner::{RootSpec, Spawner, TestClock};
use offshoot_store::{MemoryStore, Store};

/// Fails so often before it answers; each attempt uses ten tokens.
fn flaky(failures: u64) -> (FnRuntime, Arc<AtomicU64>) {
    let attempts = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&attempts);
    let runtime = FnRuntime::new("flaky", move |launch, _cx| {
        let attempt = count.fetch_add(1, Ordering::Relaxed);
        async move {
            let usage = Some(Usage { output: TokenCount::Known(10), ..Usage::default() });
            let fault = Reason::RuntimeError { message: "overloaded".into(), retryable: true };
            match attempt < failures {
                true => Finished { usage, ..Finished::of(fault) },
                false => Finished { usage, ..Finished::text(&*launch.task) },
            }
        }
    });
    (runtime, attempts)
}

struct Outcome {
    status: RunStatus,
    data: Option<Payload>,
    tokens: Option<u64>,
    seconds: u64,
    attempts: u64,
    events: Vec<Event>,
}

async fn run(failures: u64, retries: &str) -> Outcome {
    let (runtime, attempts) = flaky(failures);
    let setting = |key: &str| format!("agents.defaults.subagents.retries.{key}");
    let config = Loader::new().flag(setting("count"), retries, "test");
    let config = config
        .flag(setting("backoffSeconds"), "3600", "test")
        .load()
        .expect("the configuration was refused");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builder = Spawner::builder().config(config).store(Arc::clone(&store)).runtime(runtime);
    let builder = builder.clock(Arc::new(TestClock::new()));
    let spawner = builder.build().expect("a spawner");
    let mut session = spawner.run(RootSpec::new("hello")).await.expect("a root");
    let envelope = session.answer().await.expect("an answer");
    session.ended().await.expect("a whole record");
    let events: Vec<Event> =
        store.all_events().collect::<Result<_, _>>().expect("a record in memory");
    assert_eq!(Audit::of(&events).breaches, []);
    Outcome {
        status: envelope.status,
        data: envelope.data,
        tokens: envelope.usage.total().known(),
        seconds: envelope.execution_time_ms / 1000,
        attempts: attempts.load(Ordering::Relaxed),
        events,
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_tried_again_and_each_attempt_is_on_record() {
    let outcome = run(2, "3").await;
    assert_eq!((outcome.status, outcome.attempts), (RunStatus::Completed, 3));
    assert_eq!(outcome.data, Some(Payload::text("hello")));
    assert_eq!(outcome.tokens, Some(30), "what each attempt has used is in the answer");
    assert!(outcome.seconds > 5_000, "its time is counted from its first attempt");
    let resumed = |event: &Event| match &event.kind {
        EventKind::Resumed { attempt, after: Some(fault), .. } => {
            Some((*attempt, fault.to_string()))
        }
        _ => None,
    };
    let resumed: Vec<_> = outcome.events.iter().filter_map(resumed).collect();
    assert_eq!(resumed, [2, 3].map(|attempt| (attempt, "runtime error: overloaded".to_owned())));
    let starts = |event: &&Event| event.kind == EventKind::Starting;
    assert_eq!(outcome.events.iter().filter(starts).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn when_no_attempt_is_left_the_fault_is_the_end() {
    for (failures, retries, attempts) in [(9, "2", 3), (1, "0", 1)] {
        let outcome = run(failures, retries).await;
        assert_eq!((outcome.status, outcome.attempts), (RunStatus::Failed, attempts));
        assert_eq!(outcome.data, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_hears_of_the_last_attempt_only() {
    let (flaky, attempts) = flaky(1);
    let parent = FnRuntime::new("parent", |_launch, cx| async move {
        let request = SpawnRequest {
            task: "be brave".into(),
            agent: Some("child".parse().expect("an agent")),
            ..SpawnRequest::default()
        };
        cx.host.spawn(request).await.expect("the spawn was refused");
        let answer = cx.host.wait(WaitFor::default()).await.expect("the tree is over");
        assert_eq!(answer.ended.len(), 1, "told once");
        match &answer.ended[0].data {
            Some(Payload::Text(text)) => Finished::text(&**text),
            other => Finished::text(format!("{other:?}")),
        }
    });
    let config = r#"
        [agents.defaults.subagents]
        maxConcurrent = 1
        allowAgents = ["*"]
        retries = { count = 1 }
        [[agents.list]]
        id = "main"
        runtime = "parent"
        [[agents.list]]
        id = "child"
        runtime = "flaky"
    "#;
    let config = Loader::new()
        .file(Source::new(SourceKind::User, "a.toml", config))
        .load()
        .expect("the configuration was refused");
    let builder = Spawner::builder().config(config).clock(Arc::new(TestClock::new()));
    let spawner = builder.runtime(parent).runtime(flaky).build().expect("a spawner");
    let mut session = spawner.run(RootSpec::new("ask")).await.expect("a root");
    let envelope = session.answer().await.expect("an answer");
    assert_eq!(envelope.data, Some(Payload::text("be brave")));
    assert_eq!(attempts.load(Ordering::Relaxed), 2);
    session.ended().await.expect("a whole record");
}
