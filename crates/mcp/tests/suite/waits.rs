//! Calls that block.

use offshoot_door::{MergeOrder, RunName, WaitMode};
use rmcp::model::{ClientRequest, Request as McpRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use super::*;

/// A client that loses its patience at once.
const IMPATIENT: Options = Options {
    patience: Duration::from_millis(20),
    pulse: Duration::from_secs(5),
    permission: None,
};

fn wait(runs: &[RunId], mode: WaitMode, timeout_ms: u64) -> Request {
    let runs = runs.iter().map(|run| RunName(run.to_string())).collect();
    Wait { runs, mode: Some(mode), timeout_ms: Some(timeout_ms), ..Wait::default() }.into()
}

#[tokio::test]
async fn results_come_as_they_are() {
    let mut house = House::new().await;
    let result = house.call("sessions_wait", json!({ "runs": [run(7)] })).await;
    // 45 seconds unless told otherwise.
    assert_eq!(house.heard().await, Heard::Asked(wait(&[run(7)], WaitMode::All, 45_000)));
    assert_eq!(result.is_error, Some(false));
    let found = result.structured_content.expect("results");
    assert_eq!(found["status"], "ended");
    assert_eq!(found["ended"], json!([completed("42")]));
    assert_eq!(found["pending"], json!([]));
    house.close().await;
}

#[tokio::test]
async fn a_spawn_can_wait_for_its_child() {
    let mut house = House::new().await;
    let result = house.call("sessions_spawn", json!({ "task": "count", "wait": true })).await;
    assert_eq!(house.heard().await, Heard::Asked(Spawn::task("count").into()));
    let expected = json!({
        "status": "ended", "runId": run(7), "sessionKey": key(), "outcome": completed("42"),
    });
    assert_eq!(result.structured_content, Some(expected));
    house.close().await;
}

#[tokio::test]
async fn many_children_can_be_waited_for_and_merged() {
    let mut house = House::with(true, IMPATIENT).await;
    let arguments = json!({
        "tasks": [{ "task": "count" }, { "task": "impossible" }],
        "wait": true, "merge": { "strategy": "sum" },
    });
    let result = house.call("sessions_spawn_many", arguments).await;
    let children = vec![Spawn::task("count"), Spawn::task("impossible")];
    let order = MergeOrder { strategy: "sum".into(), ..MergeOrder::default() };
    let (mode, timeout_ms) = (Some(WaitMode::All), Some(20));
    let wait = Wait { runs: vec![], mode, timeout_ms, merge: Some(order), ..Wait::default() };
    let many = SpawnMany { children, wait: Some(wait), ..SpawnMany::default() };
    assert_eq!(house.heard().await, Heard::Asked(many.into()));
    let found = result.structured_content.expect("results");
    assert_eq!(found["status"], "pending");
    assert_eq!(found["children"][0]["runId"], json!(run(7)));
    assert_eq!(found["children"][1]["refusal"]["code"], "depth_limit");
    assert_eq!((&found["ended"], &found["pending"]), (&json!([completed("42")]), &json!([run(8)])));
    assert_eq!(found["merged"], json!({ "strategy": "sum", "data": 42 }));
    let result =
        house.call("sessions_spawn_many", json!({ "tasks": [{ "task": "impossible" }] })).await;
    assert_eq!(result.structured_content.expect("an answer")["status"], "refused");
    house.close().await;
}

#[tokio::test]
async fn a_long_wait_is_answered_before_the_client_gives_up() {
    async fn check(arguments: serde_json::Value, asked: Request, expected: &str) {
        let mut house = House::with(true, IMPATIENT).await;
        let result = house.call("sessions_wait", arguments).await;
        assert_eq!(house.heard().await, Heard::Asked(asked));
        assert_eq!(result.is_error, Some(false));
        let found = result.structured_content.expect("results");
        assert_eq!(found["status"], expected);
        assert_eq!(found["ended"], json!([completed("42")]));
        assert_eq!(found["pending"], json!([run(8)]));
        house.close().await;
    }
    let both = [run(7), run(8)];
    check(json!({ "runs": both }), wait(&both, WaitMode::All, 20), "pending").await;
    let any = json!({ "runs": both, "mode": "any", "timeoutSeconds": 600 });
    check(any, wait(&both, WaitMode::Any, 20), "ended").await;
    let at_once = json!({ "runs": both, "timeoutSeconds": 0 });
    check(at_once, wait(&both, WaitMode::All, 0), "pending").await;
}

#[tokio::test]
async fn a_wait_that_was_answered_waits_for_what_is_new() {
    let mut house = House::with(true, IMPATIENT).await;
    let both = [run(7), run(8)];
    let any = json!({ "runs": both, "mode": "any" });
    let asked = |runs: &[RunId], timeout_ms| Heard::Asked(wait(runs, WaitMode::Any, timeout_ms));
    for times in 1..=10 {
        let result = house.call("sessions_wait", any.clone()).await;
        let found = result.structured_content.expect("results");
        assert_eq!((&found["status"], &found["pending"]), (&json!("ended"), &json!([run(8)])));
        // One of them was told before: then the other one is waited for.
        let then = [asked(&[run(8)], 20), asked(&both, 0)];
        for expected in [asked(&both, 20)].iter().chain(then.iter().filter(|_| times > 1)) {
            assert_eq!(house.heard().await, *expected, "{times}");
            assert_eq!(house.heard().await, Heard::WaitDropped);
        }
        let note = found["note"].as_str();
        assert_eq!(note.is_some_and(|note| note.contains("10 times in a row")), times == 10);
    }
    house.close().await;
}

#[tokio::test]
async fn signs_of_life_until_the_call_is_cancelled() {
    let pulse = Duration::from_millis(5);
    let mut house = House::with(true, Options { pulse, ..Options::default() }).await;
    let call = McpRequest::new(params("sessions_wait", json!({ "runs": [run(8)] })));
    let options = PeerRequestOptions::no_options();
    let call = house
        .client
        .send_cancellable_request(ClientRequest::CallToolRequest(call), options)
        .await
        .expect("it is sent");
    assert_eq!(house.heard().await, Heard::Asked(wait(&[run(8)], WaitMode::All, 45_000)));
    // What the door told comes first or second, and then once more with every pulse.
    let mut told = Vec::new();
    while told.len() < 4 {
        let progress = house.progress().await;
        assert_eq!(progress.progress_token, call.progress_token);
        told.push((progress.progress, progress.message.expect("words")));
    }
    told.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let numbers: Vec<f64> = told.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1.0, 2.0, 3.0, 4.0]);
    let heard_of_it = told.iter().any(|(_, words)| words == "1 of 2 ended");
    assert!(heard_of_it, "{told:?}");

    call.cancel(None).await.expect("it is cancelled");
    assert_eq!(house.heard().await, Heard::WaitDropped);
    house.close().await;
}
