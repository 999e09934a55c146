//! The request of each tool at the door, and its answer.

use offshoot_door::{
    Cancel, ContextGet, ContextGrant, ContextInfo, ContextPut, Delegate, History, KeyedResult,
    List, Merge, MergeOrder, Observed, Report, RunName, Send, Spawn, SpawnMany,
};
use serde_json::{Value as Json, json};

use super::*;

#[tokio::test]
async fn only_what_the_session_may_use_is_listed() {
    async fn check(may_spawn: bool, prefers: bool, expected: &[&str]) {
        let house = House::of(may_spawn, prefers, Options::default()).await;
        let tools = house.client.list_all_tools().await.expect("a list");
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, expected);
        house.close().await;
    }
    let always =
        ["sessions_report", "sessions_status", "context_put", "context_info", "context_read"];
    check(false, true, &always).await;
    let all = [
        "sessions_spawn",
        "sessions_spawn_many",
        "sessions_wait",
        "sessions_merge",
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "sessions_cancel",
        "sessions_report",
        "sessions_status",
        "context_put",
        "context_info",
        "context_read",
    ];
    check(true, false, &all).await;
    let with_choice: Vec<_> = [&all[..1], &["sessions_delegate"], &all[1..]].concat();
    check(true, true, &with_choice).await;
}

#[tokio::test]
async fn a_hidden_tool_is_answered_by_the_door() {
    let mut house = House::with(false, Options::default()).await;
    let result = house.call("sessions_spawn", json!({ "task": "deeper" })).await;
    assert_eq!(house.heard().await, Heard::Asked(Spawn::task("deeper").into()));
    assert_eq!(result.is_error, Some(true));
    let expected = json!({
        "status": "forbidden",
        "code": "depth_limit",
        "message": "Maximum subagent depth reached (3).",
        "hint": "do it yourself",
        "governedBy": { "key": "maxDepth", "agent": "main", "value": 3, "origin": "built-in" },
    });
    assert_eq!(result.structured_content, Some(expected));
    house.close().await;
}

#[tokio::test]
async fn each_tool_asks_its_question() {
    let mut house = House::new().await;
    let spawn = Spawn { label: Some("l".into()), ..Spawn::task("count") };
    let plan = ContextGrant { name: "plan".into(), from: None };
    let planned = Spawn { context: vec![plan], ..Spawn::task("count") };
    let typed = Spawn {
        task_type: Some("sums".parse().expect("a type")),
        agent: Some(AgentId::parse("scout").expect("an id")),
        ..Spawn::task("count")
    };
    let cancel = Cancel { run: RunName("0198".into()), only: true };
    let put = ContextPut::new("plan", Value::Text("tea".into()));
    let get = ContextGet { name: "plan".into(), offset: Some(1), ..ContextGet::default() };
    let info = ContextInfo { name: Some("plan".into()) };
    let report = Report { text: "half way".into() };
    let list = List { limit: Some(2), ..List::default() };
    let many = SpawnMany { children: vec![Spawn::task("count")], ..SpawnMany::default() };
    let history = History { run: RunName("0198".into()), after: Some(4), limit: None };
    let send = Send { to: RunName("0198".into()), text: "stop counting".into() };
    let value = JsonText::parse("[1,2]".into()).expect("JSON");
    let merge = Merge {
        order: MergeOrder {
            strategy: "structured".into(),
            on_failure: Some("skip".into()),
            ..MergeOrder::default()
        },
        runs: vec![RunName("0198".into())],
        results: vec![KeyedResult { key: "mine".into(), value }],
    };
    let grep = ContextGet {
        name: "plan".into(),
        grep: Some("te[a-z]".into()),
        context_lines: Some(1),
        ..ContextGet::default()
    };
    let plan =
        json!({ "name": "plan", "kind": "text", "size": 3, "hash": ContentHash::of(b"tea") });
    let cases: Vec<(&str, Json, Request, Json)> = vec![
        (
            "sessions_spawn",
            json!({ "task": "count", "label": "l" }),
            spawn.into(),
            json!({ "status": "accepted", "runId": run(7), "sessionKey": key() }),
        ),
        (
            "sessions_delegate",
            json!({ "task": "count", "context": [{ "name": "plan" }] }),
            Delegate { spawn: planned, choose_only: false }.into(),
            json!({ "status": "execute_directly", "reason": "no_match", "message": "no preferred agent fits" }),
        ),
        (
            "sessions_delegate",
            json!({ "task": "count", "type": "sums", "agentId": "scout" }),
            Delegate { spawn: typed, choose_only: false }.into(),
            json!({ "status": "execute_directly", "reason": "no_match", "message": "no preferred agent fits", "observation": 1 }),
        ),
        (
            "sessions_delegate",
            json!({ "done": 1, "failed": true }),
            Observed { observation: 1, failed: true }.into(),
            json!({}),
        ),
        (
            "sessions_spawn_many",
            json!({ "tasks": [{ "task": "count" }] }),
            many.into(),
            json!({ "status": "accepted", "children": [{ "runId": run(7), "sessionKey": key() }] }),
        ),
        (
            "sessions_history",
            json!({ "run": "0198", "after": 4 }),
            history.into(),
            json!({ "entries": [], "more": false }),
        ),
        ("sessions_send", json!({ "to": "0198", "text": "stop counting" }), send.into(), json!({})),
        (
            "sessions_merge",
            json!({
                "strategy": "structured", "onFailure": "skip", "runs": ["0198"],
                "results": [{ "key": "mine", "value": [1, 2] }],
            }),
            merge.into(),
            json!({ "strategy": "sum", "data": 42, "name": "merged-1" }),
        ),
        (
            "context_read",
            json!({ "name": "plan", "grep": "te[a-z]", "contextLines": 1 }),
            grep.into(),
            json!({ "variable": plan, "value": { "text": "tea" }, "more": false }),
        ),
        ("sessions_report", json!({ "text": "half way" }), report.into(), json!({})),
        ("sessions_list", json!({ "limit": 2 }), list.into(), json!({ "runs": [] })),
        ("sessions_cancel", json!({ "run": "0198", "only": true }), cancel.into(), json!({})),
        ("context_put", json!({ "name": "plan", "text": "tea" }), put.into(), plan.clone()),
        (
            "context_info",
            json!({ "name": "plan" }),
            info.into(),
            json!({ "variables": [plan.clone()] }),
        ),
        (
            "context_read",
            json!({ "name": "plan", "offset": 1 }),
            get.into(),
            json!({ "variable": plan, "value": { "text": "tea" }, "more": false }),
        ),
    ];
    for (tool, arguments, asked, expected) in cases {
        let result = house.call(tool, arguments).await;
        assert_eq!(house.heard().await, Heard::Asked(asked), "{tool}");
        assert_eq!(result.is_error, Some(false), "{tool}");
        let [text] = &result.content[..] else { panic!("{tool}: one text") };
        let text = &text.as_text().expect("a text").text;
        let text: Json = serde_json::from_str(text).expect("JSON");
        assert_eq!(text, expected, "{tool}: as text");
        assert_eq!(result.structured_content, Some(expected), "{tool}");
    }
    let status = house.call("sessions_status", json!({})).await.structured_content;
    assert_eq!(status.expect("a status")["maxDepth"], 3);
    house.close().await;
}

#[tokio::test]
async fn what_goes_wrong_is_a_result() {
    let house = House::new().await;
    let cases = [
        ("sessions_spawn", json!({}), "invalid_request", "the key `task` is missing"),
        (
            "sessions_spawn",
            json!({ "task": 3 }),
            "invalid_request",
            "`task`: found integer `3`, expected a string",
        ),
        ("sessions_wait", json!({ "mode": "most" }), "invalid_request", "`mode`: found `most`"),
        ("context_put", json!({ "name": "n" }), "invalid_request", "takes exactly one of"),
        ("sessions_spawn", json!({ "task": "impossible" }), "failed", "out of paper"),
    ];
    for (tool, arguments, code, message) in cases {
        let result = house.call(tool, arguments.clone()).await;
        assert_eq!(result.is_error, Some(true), "{tool} {arguments}");
        let found = result.structured_content.expect("a refusal");
        assert_eq!(found["code"], code, "{tool} {arguments}");
        let said = found["message"].as_str().expect("the message is not text");
        assert!(said.contains(message), "{tool} {arguments}: {said}");
    }
    house.close().await;
}

#[tokio::test]
async fn what_is_no_tool_is_a_protocol_error() {
    let house = House::new().await;
    let error = house.client.call_tool(params("sessions_dream", json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("there is no tool `sessions_dream`"), "{error}");
    house.close().await;
}

#[tokio::test]
async fn a_supervisor_that_is_gone_is_a_result() {
    let House { client, door, served: _served, .. } = House::new().await;
    door.stop().await;
    let result = client.call_tool(params("sessions_list", json!({}))).await.expect("a result");
    assert_eq!(result.is_error, Some(true));
    let found = result.structured_content.expect("words");
    assert_eq!(found["message"], "the supervisor closed the connection");
}

#[tokio::test]
async fn permission_is_asked_only_where_that_was_wanted() {
    let question = json!({ "tool_name": "Bash", "input": { "command": "ls" }, "tool_use_id": "t" });
    let house = House::new().await;
    let error = house.client.call_tool(params("permission", question.clone())).await.unwrap_err();
    assert!(error.to_string().contains("there is no tool `permission`"), "{error}");
    house.close().await;

    let rights_of = |tool: &str| match tool {
        "Bash" => vec!["exec".to_owned()],
        _ => vec![],
    };
    let options = Options { permission: Some(rights_of), ..Options::default() };
    let house = House::with(false, options).await;
    let tools = house.client.list_all_tools().await.expect("a list");
    assert_eq!(tools.last().expect("tools").name, "permission");
    // As text alone, and the answer no is an answer to the program.
    let said = |result: CallToolResult| {
        assert_eq!((result.is_error, result.structured_content), (Some(false), None));
        let text = result.content[0].as_text().expect("a text").text.clone();
        serde_json::from_str::<Json>(&text).expect("JSON")
    };
    let allowed = said(house.call("permission", question).await);
    assert_eq!(allowed, json!({ "behavior": "allow", "updatedInput": { "command": "ls" } }));
    let denied = json!({ "tool_name": "Agent", "input": {} });
    assert_eq!(said(house.call("permission", denied).await)["behavior"], "deny");
    house.close().await;
}
