//! Shaking hands, listing and calling.

use super::*;

#[test]
fn they_shake_hands_and_see_the_tools() {
    both("they_shake_hands_and_see_the_tools", &[], &json!([{}]), |library, report| {
        assert_eq!(report["server"]["name"], "offshoot");
        assert!(report["instructions"].as_str().is_some_and(|words| !words.is_empty()));
        let list = &report["answers"][0];
        assert_eq!(names(list)[0], "sessions_spawn", "{library:?}");
        for tool in list["tools"].as_array().expect("tools") {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["description"].is_string(), "{tool}");
        }
    });
}

#[test]
fn a_client_of_either_age_is_served() {
    let Some(client) = Library::Python.install("a_client_of_either_age_is_served") else { return };
    for (mode, protocol) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let place = Place::new(AGENTS);
        let plan = json!({ "server": place.server(&["mcp"]), "steps": [{}], "mode": mode });
        let report = place.tree(&[], &client.words(&plan));
        assert_eq!(report["protocol"], protocol);
        assert_eq!(names(&report["answers"][0])[0], "sessions_spawn");
    }
}

#[test]
fn a_child_is_spawned_and_its_result_waited_for() {
    let steps = json!([
        { "tool": "sessions_spawn", "arguments": { "task": "one", "agentId": "echo", "label": "first" } },
        { "tool": "sessions_spawn", "arguments": { "task": "two", "agentId": "half" } },
        { "tool": "sessions_wait", "arguments": { "runs": ["$0.runId", "$1.sessionKey"] } },
        { "tool": "sessions_list" },
        { "tool": "sessions_status" },
    ]);
    both("a_child_is_spawned_and_its_result_waited_for", &[], &steps, |library, report| {
        assert_eq!(answer(report, 0)["status"], "accepted");
        let waited = answer(report, 2);
        assert_eq!(waited["status"], "ended");
        let of = |place: usize, field: &str| waited["ended"][place][field].clone();
        assert_eq!((of(0, "status"), of(0, "data")), ("completed".into(), "one".into()));
        assert_eq!((of(1, "status"), of(1, "data")), ("failed".into(), "half".into()));
        let runs =
            answer(report, 3)["runs"].as_array().expect("the answer has no list of runs").clone();
        assert_eq!(runs.len(), 3, "{library:?}");
        assert_eq!(runs[1]["label"], "first");
        assert_eq!(answer(report, 4)["depth"], 0);
    });
}

#[test]
fn a_value_is_kept_and_read_by_a_child() {
    let steps = json!([
        { "tool": "context_put", "arguments": { "name": "plan", "json": { "steps": [1, 2.5, "three"] } } },
        { "tool": "context_info", "arguments": { "name": "plan" } },
        { "tool": "sessions_spawn", "arguments": {
            "task": "x", "agentId": "echo", "context": [{ "name": "plan" }], "wait": true,
        } },
        { "tool": "context_read", "arguments": { "name": "plan" } },
    ]);
    both("a_value_is_kept_and_read_by_a_child", &[], &steps, |_, report| {
        let kept = answer(report, 0);
        assert_eq!((&kept["name"], &kept["kind"]), (&"plan".into(), &"json".into()));
        assert_eq!(answer(report, 1)["variables"][0]["hash"], kept["hash"]);
        let said = answer(report, 2)["outcome"]["data"].as_str().expect("the prompt").to_owned();
        assert!(said.contains(r#"Context variable "plan""#), "{said}");
        let value = &answer(report, 3)["value"]["json"];
        assert_eq!(value, &json!({ "steps": [1, 2.5, "three"] }));
    });
}
