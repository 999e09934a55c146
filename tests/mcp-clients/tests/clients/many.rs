//! Many children, their results as one, and looking back at them.

use super::*;
use crate::place::refusal;

#[test]
fn many_children_are_spawned_and_their_results_merged() {
    let steps = json!([
        { "tool": "sessions_spawn_many", "arguments": {
            "tasks": [
                { "task": "4", "agentId": "echo", "label": "four" },
                { "task": "5", "agentId": "nobody" },
                { "task": "38", "agentId": "echo" },
            ],
            "wait": true, "merge": { "strategy": "sum" },
        } },
        { "tool": "sessions_merge", "arguments": {
            "strategy": "structured", "runs": ["$0.children.0.runId"],
            "results": [{ "key": "mine", "value": [1, 2] }],
        } },
        { "tool": "context_info", "arguments": { "name": "$1.name" } },
        { "tool": "sessions_merge", "arguments": { "strategy": "sum" } },
        { "tool": "sessions_merge", "arguments": { "strategy": "loudest" } },
        { "tool": "sessions_spawn_many", "arguments": { "tasks": [{ "task": "x", "agentId": "nobody" }] } },
    ]);
    both("many_children_are_spawned_and_their_results_merged", &[], &steps, |library, report| {
        let many = answer(report, 0);
        assert_eq!(many["status"], "ended", "{library:?} {many}");
        assert_eq!(many["children"][1]["refusal"]["code"], "unknown_agent");
        assert_eq!(many["merged"]["data"], 42);
        let merged = answer(report, 1);
        assert_eq!(merged["data"], json!({ "four": "4", "mine": [1, 2] }));
        assert_eq!(answer(report, 2)["variables"][0]["name"], merged["name"]);
        assert_eq!(answer(report, 3)["data"], 42, "of all children that have ended");
        assert_eq!(refusal(report, 4)["code"], "invalid_request");
        assert_eq!(answer(report, 5)["status"], "refused");
    });
}

#[test]
fn a_value_is_split_among_children_and_searched() {
    let steps = json!([
        { "tool": "context_put", "arguments": { "name": "log", "text": "one\ntwo\nthree\nfour\nfive\n" } },
        { "tool": "sessions_spawn_many", "arguments": {
            "tasks": [{ "task": "read it", "agentId": "reader" }],
            "split": { "name": "log", "by": "lines:2" },
        } },
        { "tool": "sessions_wait", "arguments": { "merge": { "strategy": "concatenate" } } },
        { "tool": "context_read", "arguments": { "name": "log", "grep": "^t", "contextLines": 0 } },
        { "tool": "context_read", "arguments": { "name": "log", "offset": 4, "length": 3 } },
        { "tool": "context_read", "arguments": { "name": "log", "grep": "(" } },
    ]);
    both("a_value_is_split_among_children_and_searched", &[], &steps, |library, report| {
        let many = answer(report, 1);
        assert_eq!(many["status"], "accepted");
        assert_eq!(many["children"].as_array().map(Vec::len), Some(3), "{library:?} {many}");
        let merged = &answer(report, 2)["merged"];
        assert_eq!(merged["data"], "one\ntwo\n---\nthree\nfour\n---\nfive", "{merged}");
        assert_eq!(answer(report, 3)["value"]["text"], "2:two\n3:three\n");
        let part = answer(report, 4);
        assert_eq!((&part["value"]["text"], &part["more"]), (&"two".into(), &true.into()));
        assert_eq!(part["next"], 7);
        assert_eq!(refusal(report, 5)["code"], "invalid_request");
    });
}

#[test]
fn what_there_is_of_a_merge_comes_with_what_is_pending() {
    let steps = json!([
        { "tool": "sessions_spawn", "arguments": { "task": "7", "agentId": "echo", "wait": true } },
        { "tool": "sessions_spawn", "arguments": { "task": "x", "agentId": "slow" } },
        { "tool": "sessions_wait", "progress": true, "arguments": { "merge": { "strategy": "sum" } } },
        { "tool": "sessions_wait", "arguments": { "merge": { "strategy": "first" } } },
        { "tool": "sessions_wait" },
    ]);
    let test = "what_there_is_of_a_merge_comes_with_what_is_pending";
    served(test, &[], &["mcp", "--patience", "1"], &steps, |library, report| {
        let waited = answer(report, 2);
        assert_eq!(waited["status"], "pending", "{library:?}");
        assert_eq!(
            (&waited["merged"]["data"], &waited["ended"][0]["data"]),
            (&7.into(), &"7".into())
        );
        // Who has its answer early ends the others.
        assert_eq!(answer(report, 3)["merged"]["data"], "7");
        assert_eq!(answer(report, 4)["ended"][1]["status"], "cancelled");
    });
}

#[test]
fn a_history_is_read_and_a_command_takes_no_letters() {
    let steps = json!([
        { "tool": "sessions_spawn", "arguments": { "task": "what it was told", "agentId": "echo", "wait": true } },
        { "tool": "sessions_history", "arguments": { "run": "$0.runId" } },
        { "tool": "sessions_history", "arguments": { "run": "$0.sessionKey", "limit": 1 } },
        { "tool": "sessions_spawn", "arguments": { "task": "x", "agentId": "slow" } },
        { "tool": "sessions_send", "arguments": { "to": "$3.runId", "text": "hurry up" } },
        { "tool": "sessions_history", "arguments": { "run": "0198c7de-0000-7000-8000-000000000000" } },
        { "tool": "sessions_cancel", "arguments": { "run": "$3.runId" } },
    ]);
    both("a_history_is_read_and_a_command_takes_no_letters", &[], &steps, |library, report| {
        let entries = answer(report, 1)["entries"].as_array().expect("entries").clone();
        assert_eq!(entries[0]["kind"], "task", "{library:?} {entries:?}");
        assert_eq!(entries[0]["text"], "what it was told");
        let result = entries.iter().find(|entry| entry["kind"] == "answer").expect("it answered");
        assert_eq!(result["text"], "what it was told", "{entries:?}");
        let first = answer(report, 2);
        assert_eq!((&first["entries"][0], &first["more"]), (&entries[0], &true.into()));
        let refused = refusal(report, 4);
        assert!(refused["message"].is_string(), "{refused}");
        assert_eq!(refusal(report, 5)["code"], "invalid_request");
    });
}
