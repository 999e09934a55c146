//! Results that travel up by further turns, and letters into running sessions.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use offshoot_model::{Event, EventKind, Payload, RunId, RunStatus};
use offshoot_runtime::{Finished, FnRuntime, NextTurn, WaitFor};
use offshoot_spawner::{RootSpec, Session, Spawner};
use offshoot_store::{MemoryStore, Store, Urgency};
use tokio::sync::{Notify, mpsc};

use crate::asking::{ask, config};
use crate::intercept::Intercept;

fn spawner(runtime: FnRuntime) -> Spawner {
    let settings =
        [("allowRecursiveSpawn", "true"), ("maxConcurrent", "1"), ("resultInlineBytes", "64")];
    Spawner::builder().config(config(&settings)).runtime(runtime).build().expect("a spawner")
}

async fn root_of(spawner: &Spawner, task: &str) -> Session {
    spawner.run(RootSpec::new(task)).await.expect("a root")
}

/// Every level asks for the next one and ends its turn; its answer is what the next turn brings.
#[tokio::test]
async fn each_level_s_answer_contains_the_answers_below() {
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&prompts);
    let runtime = FnRuntime::new("levels", move |launch, mut cx| {
        let seen = Arc::clone(&seen);
        async move {
            if launch.depth < 3 {
                cx.host.spawn(ask("deeper")).await.expect("the spawn was refused");
            }
            let mut answer = format!("level {}", launch.depth);
            while let NextTurn::Go(prompt) = cx.turns.ended(Some(answer.as_str().into())).await {
                let below = prompt.lines().find(|line| line.starts_with("level")).expect("one");
                answer = format!("{answer} <- {below}");
                seen.lock().expect("a thread panicked with the lock").push(prompt);
            }
            Finished::text(answer)
        }
    })
    .with_turns();
    let spawner = spawner(runtime);
    let mut session = root_of(&spawner, "go").await;
    let mut events = session.events();
    let envelope = session.answer().await.expect("an answer");
    let whole = "level 0 <- level 1 <- level 2 <- level 3";
    assert_eq!(envelope.data, Some(Payload::text(whole)));
    session.ended().await.expect("a whole record");
    drop(session);
    let mut delivered = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Delivered { delivery, redelivered } =
            event.expect("a record").kind.clone()
        {
            assert!(!redelivered);
            delivered.push(delivery);
        }
    }
    assert_eq!(delivered.len(), 3, "each result once");
    assert!(delivered[0].as_str().starts_with("announce:v1:agent:main:subagent:"), "{delivered:?}");
    assert_eq!(prompts.lock().expect("no agent writes any more").len(), 3);
}

#[tokio::test]
async fn a_result_that_cannot_be_read_is_named_in_the_turn_that_should_bring_it() {
    let runtime = FnRuntime::new("parent", |launch, mut cx| async move {
        if launch.depth > 0 {
            return Finished::text(launch.task.repeat(if &*launch.task == "large" {
                2000
            } else {
                1
            }));
        }
        for task in ["large", "small"] {
            cx.host.spawn(ask(task)).await.expect("the spawn was refused");
        }
        let mut answer = String::new();
        while let NextTurn::Go(prompt) = cx.turns.ended(None).await {
            answer.push_str(&prompt);
        }
        Finished::text(answer)
    })
    .with_turns();
    let append = |inner: &MemoryStore, events: &[Arc<Event>]| inner.record(events, Urgency::Now);
    let store = Intercept::new(Arc::new(MemoryStore::new()), append).with_unreadable_values();
    let builder = Spawner::builder().store(Arc::new(store)).runtime(runtime);
    let mut session = root_of(&builder.build().expect("a spawner"), "go").await;
    let envelope = session.answer().await.expect("an answer");
    let Some(Payload::Text(heard)) = envelope.data else { panic!("a short text") };
    for expected in ["2 sub-agents of yours have ended", "cannot be read at the moment", "small"] {
        assert!(heard.contains(expected), "{expected} in\n{heard}");
    }
    session.ended().await.expect("a whole record");
}

#[tokio::test]
async fn a_turn_that_is_never_taken_brings_its_results_again() {
    let seen = Arc::new(Notify::new());
    let was_seen = Arc::clone(&seen);
    let runtime = FnRuntime::new("silent", move |launch, mut cx| {
        let was_seen = Arc::clone(&was_seen);
        async move {
            if launch.depth > 0 {
                return Finished::text("fruit");
            }
            cx.host.spawn(ask("child")).await.expect("the spawn was refused");
            let mut turn = Box::pin(cx.turns.ended(None));
            // The turn is asked for, and what it brings is not taken.
            assert!(turn.as_mut().now_or_never().is_none());
            was_seen.notified().await;
            drop(turn);
            let waited = cx.host.wait(WaitFor::default()).await.expect("the tree is over");
            let brought = waited.ended[0].data.clone();
            Finished::text(format!("{brought:?}"))
        }
    })
    .with_turns();
    let settings = [("allowRecursiveSpawn", "true"), ("announceTimeoutMs", "1")];
    let builder = Spawner::builder().config(config(&settings)).runtime(runtime);
    let mut session = root_of(&builder.build().expect("a spawner"), "go").await;
    let mut events = session.events();
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        match event.expect("a record").kind {
            EventKind::Delivered { redelivered, .. } => told.push(redelivered),
            EventKind::Undelivered { .. } => {
                // The millisecond may pass for the second delivery too, before it is taken.
                assert_eq!(told.first(), Some(&false), "it was on its way");
                seen.notify_one();
            }
            _ => {}
        }
    }
    let (first, again) = told.split_first().expect("it was delivered");
    assert!(!first && !again.is_empty() && again.iter().all(|again| *again), "marked: {told:?}");
    let envelope = session.answer().await.expect("an answer");
    assert_eq!(envelope.data, Some(Payload::text("Some(Text(\"fruit\"))")));
    session.ended().await.expect("a whole record");
}

#[tokio::test]
async fn a_letter_reaches_a_running_session_and_one_that_ended_its_turn() {
    let (told, mut started) = mpsc::unbounded_channel();
    let runtime = FnRuntime::new("reader", move |launch, mut cx| {
        let told = told.clone();
        async move {
            told.send(launch.run).expect("the test listens");
            let first = cx.turns.letter().await;
            told.send(launch.run).expect("the test listens");
            let mut answer = first.to_string();
            while let NextTurn::Go(prompt) = cx.turns.ended(None).await {
                answer = format!("{answer} | {prompt}");
            }
            Finished::text(answer)
        }
    })
    .with_turns();
    let spawner = spawner(runtime);
    let mut session = root_of(&spawner, "read").await;
    let run: RunId = started.recv().await.expect("nothing was started");
    session.write(run, "one").await.expect("it is missing");
    started.recv().await.expect("it has read the first");
    let envelope = session.answer().await.expect("an answer");
    assert_eq!(envelope.status, RunStatus::Completed);
    assert_eq!(envelope.data, Some(Payload::text("Message from the operator:\none")));
    let late = session.write(run, "two").await.expect_err("it is over");
    assert!(late.message.contains("over"), "{late}");
}

/// Answers with these, one in each turn.
fn answering(answers: &'static [&'static str]) -> (Spawner, Arc<Mutex<Vec<String>>>) {
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&prompts);
    let runtime = FnRuntime::new("answers", move |_, mut cx| {
        let seen = Arc::clone(&seen);
        async move {
            let mut last = "";
            for answer in answers {
                last = answer;
                match cx.turns.ended(Some(last.into())).await {
                    NextTurn::Go(prompt) => seen.lock().expect("no panic").push(prompt),
                    NextTurn::End => break,
                }
            }
            Finished::text(last)
        }
    })
    .with_turns();
    (spawner(runtime), prompts)
}

#[tokio::test]
async fn an_answer_of_another_form_is_mended_in_a_further_turn() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let table: [(&[&str], usize, Result<&str, &str>); 4] = [
        (&[r#"{"n":1}"#, "not asked for"], 0, Ok(r#"{"n":1}"#)),
        (&["one", r#"{"n":1}"#], 1, Ok(r#"{"n":1}"#)),
        (&[r#"{"n":"one"}"#, r#"{"n":"two"}"#, r#"{"n":3}"#], 1, Err("/n")),
        (&["one", "two", r#"{"n":3}"#], 1, Err("")),
    ];
    for (answers, turns, expected) in table {
        let (spawner, prompts) = answering(answers);
        let schema = offshoot_model::JsonText::parse(schema.to_owned()).expect("JSON");
        let spec = RootSpec { schema: Some(schema.clone()), ..RootSpec::new("count") };
        let mut session = spawner.run(spec).await.expect("a root");
        let envelope = session.answer().await.expect("an answer");
        session.ended().await.expect("a whole record");
        let prompts = prompts.lock().expect("no panic");
        assert_eq!(prompts.len(), turns, "{answers:?}");
        if let Some(prompt) = prompts.first() {
            assert!(
                prompt.contains("does not match") && prompt.contains(schema.as_str()),
                "{prompt}"
            );
        }
        match expected {
            Ok(answer) => {
                let json = Payload::json(answer.to_owned()).expect("JSON");
                assert_eq!(envelope.data, Some(json), "{answers:?}");
            }
            Err(path) => {
                assert_eq!(
                    envelope.data,
                    Some(Payload::text(answers[1])),
                    "the raw answer is kept"
                );
                let error = envelope.error.expect("it failed");
                assert_eq!(error.code, "schema_mismatch");
                let place = if path.is_empty() { "the answer is not JSON" } else { path };
                assert!(error.message.contains(place), "{}", error.message);
            }
        }
    }
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_refused_before_anything_starts() {
    let (spawner, _) = answering(&["never"]);
    let schema = offshoot_model::JsonText::parse(r#"{"items":{"type":"nothing"}}"#.to_owned());
    let spec = RootSpec { schema: Some(schema.expect("JSON")), ..RootSpec::new("count") };
    let refused = spawner.run(spec).await.expect_err("no schema").to_string();
    assert!(refused.contains("/items/type: "), "{refused}");
}
