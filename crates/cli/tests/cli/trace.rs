//! Tests of the context of a run: in its environment, in `show` from the record alone, and at the ends of what it may hold.

use serde_json::{Value, json};

use crate::command::Place;

const TEAM: &str = r#"
[[agents.list]]
id = "main"
subagents.allowAgents = ["main", "chezmoi-workflow"]

[[agents.list]]
id = "chezmoi-workflow"
canDelegate = true
preferredSubagents = [{ git-coordinator = "For commits" }]

[[agents.list]]
id = "git-coordinator"
canDelegate = true
"#;

/// Two scripts: the one starts the other, which prints the context that it was given.
fn place() -> Place {
    let place = Place::new();
    place.file("team.toml", TEAM);
    place.file("flow.sh", r#""$OFFSHOOT" spawn --agent git-coordinator --wait "$1" -- sh leaf.sh"#);
    place
        .file("leaf.sh", r#"cat "${OFFSHOOT_TRACE_FILE:-/dev/null}"; printf %s "$OFFSHOOT_TRACE""#);
    place
}

fn run(place: &Place, request: &str) -> Value {
    let script = r#""$OFFSHOOT" spawn --agent chezmoi-workflow --wait "sync the templates" -- sh flow.sh "format the commit""#;
    let words = ["-q", "run", "--config", "team.toml", request, "--", "sh", "-c", script];
    let out = place.run(&words).expect_code(0);
    serde_json::from_str(out.stdout()).expect("a program is told of its place in JSON")
}

fn agents(context: &Value) -> Vec<&str> {
    let trace = context["trace"].as_array().expect("a trace");
    trace.iter().map(|step| step["agent"].as_str().expect("an agent")).collect()
}

#[test]
fn a_run_knows_those_above_it() {
    let place = place();
    for request in ["commit all of it", "and again"] {
        let told = run(&place, request);
        assert_eq!(told["recursionDepth"], 2);
        assert_eq!(told["parentAgent"], "chezmoi-workflow");
        assert_eq!(told["rootUserRequest"], request);
        assert_eq!(agents(&told), ["main", "chezmoi-workflow", "git-coordinator"]);
        assert_eq!(told["parentTaskId"], told["trace"][1]["runId"]);

        // The record alone says the same.
        let id = told["trace"][2]["runId"].as_str().expect("the run has no id");
        let shown = place.run(&["show", "--json", id]).expect_code(0);
        let shown: Value = serde_json::from_str(shown.stdout()).expect("JSON");
        assert_eq!(shown["delegation"], told);
        let text = place.run(&["show", id]).expect_code(0).stdout().to_owned();
        let of = |at: usize| {
            format!("({})", told["trace"][at]["runId"].as_str().expect("the run has no id"))
        };
        assert!(text.contains(&format!("trace        main {}\n", of(0))), "{text}");
        assert!(text.contains(&format!("→ chezmoi-workflow {}\n", of(1))), "{text}");
        assert!(text.contains(&format!("→ git-coordinator {}\n", of(2))), "{text}");
        assert!(text.contains(&format!("root's task  {request}\n")), "{text}");

        let root = told["trace"][0]["runId"].as_str().expect("the run has no id");
        let shown = place.run(&["show", "--json", root]).expect_code(0);
        let shown: Value = serde_json::from_str(shown.stdout()).expect("JSON");
        let trace = json!([{ "agent": "main", "runId": root }]);
        let at_the_top = json!({ "recursionDepth": 0, "rootUserRequest": request, "trace": trace });
        assert_eq!(shown["delegation"], at_the_top);
    }
}

#[test]
fn a_long_request_is_cut_and_still_arrives() {
    let place = place();
    let long = "ü".repeat(60_000);
    let script = r#""$OFFSHOOT" spawn --agent chezmoi-workflow --wait x -- sh flow.sh y"#;
    let words = ["-q", "run", "--config", "team.toml", &long, "--", "sh", "-c", script];
    let out = place.run(&words).expect_code(0);
    let told: Value = serde_json::from_str(out.stdout()).expect("JSON");
    let request = told["rootUserRequest"].as_str().expect("a request");
    assert_eq!(request, format!("{}…", "ü".repeat(4096)));
}

#[test]
fn a_piece_knows_its_map() {
    let place = place();
    place.file("in", "a\nb\n");
    let script = r#"printf '%s\n' "$OFFSHOOT_TRACE""#;
    let words = ["-q", "map", "--split", "lines:1", "--merge", "concatenate", "in"];
    let out = place.run(&[&words[..], &["--", "sh", "-c", script]].concat()).expect_code(0);
    let told: Vec<Value> = out
        .stdout()
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(told.len(), 2);
    for context in &told {
        assert_eq!(context["recursionDepth"], 1);
        assert_eq!(agents(context), ["main", "main"]);
        assert_eq!(context["parentTaskId"], told[0]["parentTaskId"]);
    }
}
