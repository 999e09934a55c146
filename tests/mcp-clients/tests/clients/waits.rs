//! Calls that block.

use super::*;

#[test]
fn a_long_wait_shows_signs_of_life_and_answers_pending() {
    let steps = json!([
        { "tool": "sessions_spawn", "arguments": { "task": "x", "agentId": "slow" } },
        { "tool": "sessions_wait", "progress": true },
        { "tool": "sessions_wait", "arguments": { "timeoutSeconds": 0 } },
        { "tool": "sessions_cancel", "arguments": { "run": "$0.runId" } },
        { "tool": "sessions_wait" },
    ]);
    let test = "a_long_wait_shows_signs_of_life_and_answers_pending";
    served(test, &[], &["mcp", "--patience", "1"], &steps, |library, report| {
        let run = answer(report, 0)["runId"].clone();
        let waited = answer(report, 1);
        assert_eq!(waited, &json!({ "status": "pending", "ended": [], "pending": [run] }));
        let told = report["answers"][1]["progress"].as_array().expect("progress").clone();
        assert!(!told.is_empty(), "{library:?}");
        let numbers: Vec<f64> =
            told.iter().map(|told| told["progress"].as_f64().expect("a number")).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        assert!(told[0]["message"].is_string(), "{told:?}");
        // The client did not ask for signs of life.
        assert_eq!(report["answers"][2]["progress"], json!([]));
        assert_eq!(answer(report, 4)["ended"][0]["status"], "cancelled");
    });
}

#[test]
fn a_wait_that_is_given_up_hurts_no_run() {
    let steps = json!([
        { "tool": "sessions_spawn", "arguments": { "task": "x", "agentId": "slow" } },
        { "tool": "sessions_wait", "cancel": true },
        { "tool": "sessions_status" },
        { "tool": "sessions_spawn", "arguments": { "task": "again", "agentId": "echo", "wait": true } },
        { "tool": "sessions_cancel", "arguments": { "run": "$0.runId" } },
        { "tool": "sessions_wait", "arguments": { "runs": ["$0.runId"] } },
    ]);
    both("a_wait_that_is_given_up_hurts_no_run", &[], &steps, |library, report| {
        assert_eq!(report["answers"][1]["cancelled"], true, "{library:?} {report}");
        // The server goes on, and so does the child.
        assert_eq!(answer(report, 2)["caller"], "run");
        assert_eq!(answer(report, 3)["outcome"]["data"], "again");
        assert_eq!(answer(report, 5)["ended"][0]["status"], "cancelled");
    });
}
