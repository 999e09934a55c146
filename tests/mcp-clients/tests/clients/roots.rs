//! Clients that the user has started, and no run of ours: each is a root.

use std::process::Command;

use super::*;
use crate::place::report;

/// Carries out the steps with a server of this place that belongs to no tree.
fn alone(
    place: &Place,
    client: &offshoot_mcp_clients::Client,
    flags: &[&str],
    steps: &Value,
) -> Value {
    let server = [&["mcp", "--config", "agents.toml"], flags].concat();
    let words = client.words(&json!({ "server": place.server(&server), "steps": steps }));
    let mut command: Command = place.program(words[0].as_ref());
    report(command.args(&words[1..]))
}

/// The trees of the record.
fn trees(place: &Place) -> Value {
    report(place.offshoot(&["tree", "--json"]).arg("-q"))
}

#[test]
fn who_only_looks_opens_nothing() {
    for library in Library::ALL {
        let Some(client) = library.install("who_only_looks_opens_nothing") else { continue };
        let place = Place::new(AGENTS);
        let report = alone(&place, &client, &["--", "cat"], &json!([{}, {}]));
        assert_eq!(names(&report["answers"][1])[0], "sessions_spawn");
        assert!(!place.path().join(".offshoot").exists(), "{library:?}");
    }
}

#[test]
fn a_client_of_the_users_own_is_a_root() {
    let steps = json!([
        { "tool": "sessions_status" },
        { "tool": "sessions_spawn", "arguments": { "task": "by the program" } },
        { "tool": "sessions_spawn", "arguments": { "task": "by an agent", "agentId": "echo" } },
        { "tool": "sessions_wait" },
        { "tool": "context_put", "arguments": { "name": "note", "text": "tea" } },
        { "tool": "context_read", "arguments": { "name": "note" } },
        { "tool": "sessions_spawn", "arguments": { "task": "one too many" } },
    ]);
    for library in Library::ALL {
        let Some(client) = library.install("a_client_of_the_users_own_is_a_root") else { continue };
        let place = Place::new(AGENTS);
        let flags = ["--label", "mine", "--max-spawns", "2", "--", "tr", "a-z", "A-Z"];
        let report = alone(&place, &client, &flags, &steps);
        let status = answer(&report, 0);
        let run = status["runId"].as_str().expect("a run of its own");
        assert_eq!(status["sessionKey"], format!("agent:main:mcp:{run}"));
        assert_eq!((&status["depth"], &status["maySpawn"]), (&0.into(), &true.into()));
        let ended = &answer(&report, 3)["ended"];
        assert_eq!(
            (&ended[0]["data"], &ended[1]["data"]),
            (&"BY THE PROGRAM".into(), &"by an agent".into())
        );
        assert_eq!(answer(&report, 5)["value"]["text"], "tea");
        assert_eq!(place::refusal(&report, 6)["code"], "spawn_limit");

        let trees = trees(&place);
        assert_eq!(trees.as_array().map(Vec::len), Some(1), "{library:?}");
        assert_eq!(
            (&trees[0]["label"], &trees[0]["status"]),
            (&"mine".into(), &"client_gone".into())
        );
        assert_eq!(trees[0]["children"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn a_client_that_goes_takes_its_children_along_where_they_are_to_go() {
    let test = "a_client_that_goes_takes_its_children_along_where_they_are_to_go";
    let steps =
        json!([{ "tool": "sessions_spawn", "arguments": { "task": "x", "agentId": "slow" } }]);
    for library in Library::ALL {
        let Some(client) = library.install(test) else { continue };
        let defaults = "[agents.defaults.subagents]\n";
        let cascade = format!("{defaults}onParentEnd = \"cascade\"\n");
        let place = Place::new(&AGENTS.replace(defaults, &cascade));
        let report = alone(&place, &client, &["--", "cat"], &steps);
        assert_eq!(answer(&report, 0)["status"], "accepted");
        // The client has waited for the server, and the server for the tree.
        let trees = trees(&place);
        assert_eq!(trees[0]["status"], "client_gone", "{library:?}");
        assert_eq!(trees[0]["children"][0]["status"], "cancelled");
    }
}
