//! The faults of the other end, and their effects.

use std::time::Duration;

use crate::common::{Listener, Place, admitting, launch, parent, progress, text};
use offshoot_fake_model_api::{ApiError, Break, Condition, Reply, Rule};
use offshoot_model::{Reason, RunStatus, TokenCount, Usage};
use offshoot_runtime::{RunContext, RunEvent, RunHost, Runtime, Stop, StopHandle, check_contract};
use offshoot_runtime_openai::{OpenAiOptions, OpenAiRuntime, Retries};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// The message of a failure of the runtime, and whether it says that another attempt may end otherwise.
fn failure(reason: &Reason) -> (&str, bool) {
    match reason {
        Reason::RuntimeError { message, retryable } => (message, *retryable),
        other => panic!("no failure of the runtime: {other:?}"),
    }
}

#[tokio::test]
async fn every_runtime_passes_the_contract() {
    let place = Place::new([
        Rule::when(Condition::Prompt("hang".into()), Reply::Hang),
        Rule::always(Reply::text("done")),
    ]);
    let broken = check_contract(&place.runtime, || launch("answer"), || launch("hang")).await;
    assert_eq!(broken, []);
}

#[tokio::test]
async fn too_many_requests_and_then_success() {
    let place = Place::new([
        Rule::always(Reply::rate_limit(Duration::ZERO)).times(2),
        Rule::always(Reply::text("at last")),
    ]);
    let (finished, events) = place.run("go").await;
    assert_eq!(text(&finished), "at last");
    assert_eq!(
        finished.usage.expect("no usage was reported").total().known(),
        Some(15),
        "what was refused used nothing"
    );
    let waits: Vec<&str> = events.iter().filter_map(back_off).collect();
    let expected =
        [1, 2].map(|retry| format!("the service answered 429: slow down; retry {retry} of 2"));
    assert_eq!(waits, expected);
    assert_eq!(place.api.requests().len(), 3);
}

/// One run is told to come again in a second; another one, which is told nothing, waits as well.
#[tokio::test]
async fn the_service_says_when_and_all_runs_heed_it() {
    let place = Place::new([
        Rule::always(Reply::rate_limit(Duration::from_secs(1))).times(1),
        Rule::always(Reply::text("at last")),
    ]);
    let (told, hears) = tokio::sync::oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let at = move |event: &RunEvent| {
        if is_back_off(event, "the service answered 429") {
            let told = told.lock().expect("no listener panics").take();
            told.expect("it is told once").send(()).expect("the other waits for it");
        }
    };
    let second = async {
        hears.await.expect("the first is told");
        let begun = tokio::time::Instant::now();
        let (finished, _) = place.run("second").await;
        assert_eq!(text(&finished), "at last");
        begun.elapsed()
    };
    let first = place.run_with(launch("first"), Listener::at(at));
    let ((first, _), waited) = tokio::join!(first, second);
    assert_eq!(text(&first), "at last");
    assert!(waited >= Duration::from_millis(900), "{waited:?}");
}

#[tokio::test]
async fn a_service_that_asks_for_too_much_is_not_waited_for() {
    let place = Place::new([Rule::always(Reply::rate_limit(Duration::from_secs(3600)))]);
    let (finished, _) = place.run("go").await;
    assert_eq!(finished.reason, Reason::Quota { window: None, until: None });
    assert_eq!(finished.retry_after, Some(Duration::from_secs(3600)), "the time until the reset");
    assert_eq!(place.api.requests().len(), 1);
}

#[tokio::test]
async fn what_does_not_pass_is_given_up() {
    let error = |status, kind: &str| Reply::Error(ApiError::new(status, kind, "sorry"));
    for (reply, message, retryable, requests) in [
        (error(500, "server_error"), "the service answered 500: sorry", true, 3),
        (error(503, "unavailable_error"), "the service answered 503: sorry", true, 3),
        (error(429, "insufficient_quota"), "the service answered 429: sorry", false, 1),
        (error(400, "invalid_request_error"), "the service answered 400: sorry", false, 1),
        (error(404, "model_not_found"), "the service answered 404: sorry", false, 1),
        (
            Reply::Broken(Break::Overloaded),
            "the service gave up in the middle of its answer: overloaded",
            true,
            3,
        ),
    ] {
        let place = Place::new([Rule::always(reply)]);
        let (finished, _) = place.run("go").await;
        assert_eq!(failure(&finished.reason), (message, retryable));
        assert_eq!(place.api.requests().len(), requests, "{message}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_asked_for_again() {
    let place = Place::new([
        Rule::always(Reply::Broken(Break::Cut)).times(1),
        Rule::always(Reply::text("whole")),
    ]);
    let (finished, _) = place.run("go").await;
    assert_eq!(text(&finished), "whole", "nothing of the half is left");
    let usage = finished.usage.expect("no usage was reported");
    let sent = place.api.requests()[0].body.to_string().len() as u64;
    let TokenCount::Estimated(used) = usage.total() else { panic!("{usage:?}") };
    assert!(used >= sent + 15, "the half is charged what it can have used: {used}");
    let cut = Place::new([Rule::always(Reply::Broken(Break::Cut))]);
    let (finished, _) = cut.run("go").await;
    let (message, retryable) = failure(&finished.reason);
    assert!(message.starts_with("the answer broke off") && retryable, "{message}");
    assert_eq!(cut.api.requests().len(), 3);
}

#[tokio::test]
async fn garbage_is_no_answer() {
    let place = Place::new([Rule::always(Reply::Broken(Break::Garbage))]);
    let (finished, _) = place.run("go").await;
    let (message, retryable) = failure(&finished.reason);
    let expected = format!("{} sent what is no answer of a chat: \"{{not json\"", place.api.url());
    assert_eq!((message, retryable), (&*expected, false));
    assert_eq!(place.api.requests().len(), 1);
}

#[tokio::test]
async fn silence_has_a_limit() {
    for reply in [Reply::Hang, Reply::Broken(Break::Silence)] {
        let place = Place::with([Rule::always(reply)], |options| {
            options.silence_seconds = 1;
            options.retries = Retries { count: 0, ..options.retries };
        });
        let (finished, _) = place.run("go").await;
        assert_eq!(failure(&finished.reason), ("nothing came for 1 s", true));
    }
}

#[tokio::test]
async fn an_endpoint_that_does_not_listen_is_a_failure_that_can_be_tried_again() {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let place = Place::with([], |options| {
        options.base_url = format!("http://{address}/v1");
        options.retries.count = 1;
    });
    let (finished, events) = place.run("go").await;
    let (message, retryable) = failure(&finished.reason);
    assert!(message.starts_with(&format!("http://{address} cannot be reached")), "{message}");
    assert!(message.contains("onnection refused") && retryable, "{message}");
    assert_eq!(events.iter().filter_map(back_off).count(), 1, "it tried again once");
    assert_eq!(finished.usage, Some(Usage::default()), "nothing was used");
}

#[tokio::test]
async fn options_that_cannot_work_start_nothing() {
    let check = async |change: fn(&mut OpenAiOptions), expected: &str| {
        let place = Place::with([Rule::always(Reply::text("x"))], change);
        let (finished, events) = place.run("go").await;
        let Reason::CannotStart { message } = &finished.reason else {
            panic!("{:?}", finished.reason)
        };
        assert_eq!(message, expected);
        assert_eq!(events, [], "it has not even started");
        assert!(place.api.requests().is_empty());
    };
    check(
        |options| options.key_variable = Some("NOT_SET".into()),
        "the variable NOT_SET, which holds the key, is not set; export it, or set keyVariable to the name that your \
         key has",
    )
    .await;
    check(|options| options.model = None, "no model is chosen, for the agent or in the options")
        .await;
    check(
        |options| options.base_url = "http://api.example/v1".into(),
        "`http://api.example/v1` is beyond this machine and not encrypted; use https, or say plainHttp: true where you \
         trust the way",
    )
    .await;
}

#[tokio::test]
async fn a_key_that_is_refused_is_not_repeated() {
    let wrong = ApiError::new(401, "invalid_api_key", "Incorrect API key provided: sk-secret.");
    let place = Place::new([Rule::always(Reply::Error(wrong))]);
    let (finished, events) = place.run("go").await;
    let (message, retryable) = failure(&finished.reason);
    assert_eq!(message, "the service answered 401: Incorrect API key provided: [redacted].");
    assert!(!retryable);
    assert!(!format!("{events:?}{:?}", place.runtime).contains("sk-secret"));
}

/// A test for the moment that is waited for.
type Moment = fn(&RunEvent) -> bool;

/// Moments at which a run is stopped: its task, and the event at which it is asked to stop.
const MOMENTS: &[(&str, Moment)] = &[
    ("at its start", |event| matches!(event, RunEvent::Started(_))),
    ("while it speaks", |event| is_progress(event, "one")),
    ("before it tries again", |event| is_back_off(event, "the service answered 500")),
    ("under pressure", |event| is_back_off(event, "the service answered 429")),
    (
        "in a tool",
        |event| matches!(event, RunEvent::ToolUsed(used) if &*used.name == "sessions_wait"),
    ),
    ("while it sums up", |event| is_progress(event, "sums up")),
];

fn is_back_off(event: &RunEvent, begin: &str) -> bool {
    back_off(event).is_some_and(|why| why.starts_with(begin))
}

/// The words in which it is told that the service is asked again.
fn back_off(event: &RunEvent) -> Option<&str> {
    match event {
        RunEvent::BacksOff { why, .. } => Some(why),
        _ => None,
    }
}

fn is_progress(event: &RunEvent, begin: &str) -> bool {
    matches!(event, RunEvent::Progress(text) if text.starts_with(begin))
}

#[tokio::test]
async fn a_request_to_stop_is_heard_at_any_moment() {
    let during = |task: &str| Condition::Prompt(task.into());
    let later = Duration::from_secs(50);
    let rules = [
        Rule::when(
            during("speaks"),
            Reply::Slow { text: "one\n two\n three\n".into(), pause_ms: 300 },
        ),
        Rule::when(during("tries"), Reply::Error(ApiError::new(500, "x", "sorry"))),
        Rule::when(during("pressure"), Reply::rate_limit(later)),
        Rule::when(during("tool"), Reply::call("sessions_wait", json!({}))),
        Rule::when(during("sums up"), Reply::call("sessions_spawn", json!({"task": "x"}))),
        Rule::always(Reply::Hang),
    ];
    for stop in [Stop::Firm, Stop::Soft { grace: Duration::from_secs(60) }] {
        for (task, moment) in MOMENTS {
            let place = Place::with(rules.clone(), |options| {
                options.retries.backoff_seconds = 50.0;
                options.compaction.at_tokens = Some(1);
            });
            let (handle, signal) = StopHandle::new();
            let moment = *moment;
            let at = move |event: &RunEvent| {
                if moment(event) {
                    handle.stop(stop);
                }
            };
            // More children than will ever live: a wait for them does not end.
            let listener = admitting(99).looking(at);
            let (finished, events) = place.run_until(parent(task), listener, signal).await;
            assert_eq!(
                finished.reason.status(),
                RunStatus::Cancelled,
                "{task}: {:?}",
                finished.reason
            );
            assert!(events.iter().any(moment), "{task} was reached: {events:?}");
        }
    }
}

#[tokio::test]
async fn what_was_said_before_a_stop_is_kept() {
    let slow = Reply::Slow { text: "one\n two\n three".into(), pause_ms: 200 };
    let place = Place::new([Rule::always(slow)]);
    let (handle, signal) = StopHandle::new();
    let at = move |event: &RunEvent| {
        if is_progress(event, "one") {
            handle.stop(Stop::Firm);
        }
    };
    let listener = Listener::at(at);
    let (finished, _) = place.run_until(launch("go"), listener, signal).await;
    assert!(text(&finished).starts_with("one\n"), "{:?}", text(&finished));
    let sent = place.api.requests()[0].body.to_string().len() as u64;
    let usage = finished.usage.expect("no usage was reported");
    assert_eq!(usage.total(), TokenCount::AtLeast(sent), "what the model has written is not known");
}

#[tokio::test]
async fn a_run_that_is_dropped_closes_its_connection() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}/v1", server.local_addr().expect("an address"));
    let options = OpenAiOptions { base_url, model: Some("m".into()), ..OpenAiOptions::default() };
    let runtime = OpenAiRuntime::new("openai", options, &[]);
    let host = RunHost::new(Listener::default());
    let run = runtime.start(launch("go"), RunContext::new(host, StopHandle::new().1));
    let (mut connection, read) = tokio::select! {
        _ = run => panic!("the endpoint does not answer"),
        accepted = async {
            let (mut connection, _) = server.accept().await.expect("it calls");
            let read = connection.read(&mut [0; 1 << 16]).await.expect("a request");
            (connection, read)
        } => accepted,
    };
    assert!(read > 0);
    // The run is gone with the select.
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).await.expect("the connection ends in peace");
}

#[tokio::test]
async fn another_model_goes_on() {
    let model = |name: &str| Condition::Model(name.into());
    let missing = ApiError::new(404, "model_not_found", "no such model");
    let place = Place::with(
        [
            Rule::when(model("small"), Reply::Error(missing)),
            Rule::when(model("busy"), Reply::overloaded()),
            Rule::when(model("large"), Reply::text("I am here")),
        ],
        |options| options.fallback_models = vec!["busy".into(), "large".into(), "never".into()],
    );
    let (finished, events) = place.run("go").await;
    assert_eq!(text(&finished), "I am here");
    let asked: Vec<_> = place.api.conversations().into_iter().map(|seen| seen.model).collect();
    assert_eq!(asked, ["small", "busy", "busy", "busy", "large"]);
    let expected = "the service answered 404: no such model; goes on with busy";
    assert_eq!(progress(&events)[0], expected);
    let changes = events.iter().filter_map(|event| match event {
        RunEvent::ModelChanged(model) => Some(&**model),
        _ => None,
    });
    assert_eq!(changes.collect::<Vec<_>>(), ["large"], "the one that has answered");
    assert_eq!(finished.usage.expect("no usage was reported").total().known(), Some(15));
    // What is wrong with the request would be wrong with any model.
    let wrong = Place::with([Rule::always(Reply::invalid("bad"))], |options| {
        options.fallback_models = vec!["large".into()];
    });
    wrong.run("go").await;
    assert_eq!(wrong.api.requests().len(), 1);
}
