//! What cannot be had, and how it is said.

use super::*;
use crate::place::refusal;

#[test]
fn what_is_wrong_is_said_where_the_model_reads_it() {
    let steps = json!([
        { "tool": "sessions_dream" },
        { "tool": "sessions_spawn" },
        { "tool": "sessions_spawn", "arguments": { "task": "x", "timeout": 3 } },
        { "tool": "sessions_spawn", "arguments": { "task": "x", "agentId": "nobody" } },
        { "tool": "sessions_spawn", "arguments": { "task": "1", "agentId": "echo" } },
        { "tool": "sessions_spawn", "arguments": { "task": "2", "agentId": "echo" } },
        { "tool": "sessions_wait" },
    ]);
    let flags = ["--max-spawns", "1"];
    let test = "what_is_wrong_is_said_where_the_model_reads_it";
    both(test, &flags, &steps, |library, report| {
        // No tool: that is the program's mistake, not the model's.
        let error = &report["answers"][0]["error"];
        assert_eq!(error["code"], -32602, "{library:?} {error}");
        let said = error["message"].as_str().expect("the message is not text");
        assert!(said.contains("there is no tool `sessions_dream`"), "{said}");
        for (step, message) in [(1, "the key `task` is missing"), (2, "unknown key `timeout`")] {
            let refused = refusal(report, step);
            assert_eq!(
                (&refused["status"], &refused["code"]),
                (&"error".into(), &"invalid_request".into())
            );
            assert!(
                refused["message"].as_str().is_some_and(|said| said.contains(message)),
                "{refused}"
            );
        }
        assert_eq!(refusal(report, 3)["code"], "unknown_agent");
        assert_eq!(answer(report, 4)["status"], "accepted");
        let refused = refusal(report, 5);
        assert_eq!(
            (&refused["status"], &refused["code"]),
            (&"forbidden".into(), &"spawn_limit".into())
        );
        assert_eq!(refused["governedBy"]["key"], "subagents.maxSpawns");
        // A refusal ends nothing.
        assert_eq!(answer(report, 6)["ended"][0]["data"], "1");
    });
}

#[test]
fn at_the_depth_limit_no_spawn_tool_is_seen_and_a_call_all_the_same_is_refused() {
    let test = "at_the_depth_limit_no_spawn_tool_is_seen_and_a_call_all_the_same_is_refused";
    let steps = json!([
        {},
        { "tool": "sessions_spawn", "arguments": { "task": "deeper" } },
        { "tool": "sessions_status" },
    ]);
    for library in Library::ALL {
        let Some(client) = library.install(test) else { continue };
        let place = Place::new(AGENTS);
        let words = client.words(&json!({ "server": place.server(&["mcp"]), "steps": steps }));
        // A root that has one child, and that child is the client.
        let spawn = r#"exec "$OFFSHOOT" spawn --wait child -- "$@""#;
        let root = ["sh", "-c", spawn, "sh"].map(str::to_owned);
        let report = place
            .tree(&["--max-depth", "1", "--allow-recursive-spawn"], &[&root[..], &words].concat());
        let listed = names(&report["answers"][0]);
        assert!(listed.contains(&"sessions_status"), "{listed:?}");
        for hidden in ["sessions_spawn", "sessions_wait", "sessions_list", "sessions_cancel"] {
            assert!(!listed.contains(&hidden), "{library:?} {listed:?}");
        }
        assert_eq!(refusal(&report, 1)["code"], "depth_limit");
        let status = answer(&report, 2);
        assert_eq!((&status["depth"], &status["maySpawn"]), (&1.into(), &false.into()));
    }
}
