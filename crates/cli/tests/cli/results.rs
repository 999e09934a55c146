//! Results of runs that are no success: what the evidence says, and beside it what the run says itself.

use serde_json::{Value, json};

use crate::command::Place;

const SAYS: &str = r#"printf "working\n{\"status\": \"error\", \"error\": \"not clean\", \"recovery_suggestion\": \"git stash\", \"parent_can_retry\": false}\n""#;

#[test]
fn what_a_child_says_of_its_error_reaches_its_parent_beside_the_evidence() {
    let place = Place::new();
    let children = format!(
        r#"ask() {{ "$OFFSHOOT" -q spawn --wait --json "$@" 2>/dev/null; }}
           echo '['
           ask "fails" -- sh -c '{SAYS}; exit 3'; echo ,
           ask "fails again" -- sh -c '{SAYS}; exit 3'; echo ,
           ask "is well" -- sh -c '{SAYS}'; echo ,
           ask "says nothing" -- sh -c 'echo "{{\"lines\": 1}}"; exit 64'; echo ,
           ask "says much" -- sh -c 'seq 30000; {SAYS}; exit 3'
           echo ']'"#
    );
    let outcome = place.tree(&[], &children).expect_code(0);
    let envelopes: Vec<Value> = serde_json::from_str(outcome.stdout()).expect("five envelopes");
    let said =
        json!({"error": "not clean", "recoverySuggestion": "git stash", "parentCanRetry": false});
    for at in [0, 1, 4] {
        let error = &envelopes[at]["error"];
        assert_eq!(envelopes[at]["status"], "failed");
        assert_eq!(error["code"], "exit_code");
        assert_eq!(error["parentCanRetry"], true, "by the evidence: {error}");
        assert_eq!(error["said"], said, "{error}");
    }
    assert_eq!(envelopes[2]["status"], "completed", "its own words do not decide");
    assert_eq!(envelopes[2]["error"], Value::Null);
    assert_eq!(envelopes[3]["error"]["parentCanRetry"], false, "it was used wrongly");
    assert_eq!(envelopes[3]["error"]["said"], Value::Null);
    place.run(&["audit", "last"]).expect_code(0);

    let id = envelopes[0]["runId"].as_str().expect("a run");
    let shown = place.run(&["show", "--json", id]).json();
    assert_eq!(shown["error"]["said"], said, "it stands on record");
    let shown = place.run(&["show", id]).expect_code(0);
    let words = "not clean; it suggests: git stash; it cannot be tried again";
    let mut rows = shown.stdout().lines();
    let row = rows.find_map(|row| row.strip_prefix("its words")).expect("its row");
    assert_eq!(row.trim_start(), words);
}

#[test]
fn a_root_and_a_piece_that_fail_say_why_too() {
    let place = Place::new();
    let run = |more: &[&str]| {
        let script = format!("{SAYS}; exit 3");
        let arguments: Vec<&str> =
            [&["run"], more, &["publish", "--", "sh", "-c", &script]].concat();
        place.run(&arguments).expect_code(1)
    };
    let text = run(&[]).text();
    let words = "it says: not clean; it suggests: git stash; it cannot be tried again\n";
    assert!(text.contains(words), "{text}");
    assert_eq!(run(&["--json"]).json()["error"]["said"]["error"], "not clean");
    let script = format!("{SAYS}; exit 3");
    let pieces =
        place.run(&["fanout", "--json", "--task", "a", "--task", "b", "--", "sh", "-c", &script]);
    let pieces = pieces.expect_code(1).json();
    for failure in pieces["failures"].as_array().expect("failures") {
        assert_eq!(failure["envelope"]["error"]["said"]["error"], "not clean", "{failure}");
    }
    assert_eq!(pieces["failures"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_page_about_results_has_every_ending_in_order() {
    let page = include_str!("../../../../docs/results.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let schema = include_str!("../../../../docs/messages.md");
    let ends = schema.split("## Ends of runs").nth(1).and_then(|rest| rest.split("\n## ").next());
    let codes = ends.expect("its section").lines();
    let codes = codes.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.collect::<Vec<_>>(), codes.collect::<Vec<_>>());
}

const COMMIT: &str = r#"{"type":"object","properties":{"sha":{"type":"string","pattern":"^[0-9a-f]{6}$"}},"required":["sha"]}"#;

#[test]
fn an_answer_has_the_form_that_was_asked_for() {
    let place = Place::new();
    place.file("s.json", COMMIT);
    let run = |answer: &str, code| {
        let arguments =
            ["run", "--json", "--schema", "s.json", "commit", "--", "printf", "%s", answer];
        place.run(&arguments).expect_code(code).json()
    };
    let right = run(r#"{"sha": "abc123"}"#, 0);
    assert_eq!(right["data"], json!({"sha": "abc123"}), "it is JSON, and not a text");
    let fenced = run("```json\n{\"sha\": \"abc123\"}\n```", 0);
    assert_eq!(fenced["data"], json!({"sha": "abc123"}));
    for answer in [r#"{"sha": "none"}"#, r#"{"sha": "none", "error": "x"}"#] {
        let wrong = run(answer, 1);
        assert_eq!(wrong["status"], "failed");
        assert_eq!(wrong["error"]["code"], "schema_mismatch");
        let message = wrong["error"]["message"].as_str().expect("a message");
        assert!(message.contains("/sha: \"none\" does not match"), "{message}");
        assert_eq!(wrong["error"]["parentCanRetry"], true);
        assert_eq!(wrong["data"]["sha"], "none", "the raw answer is kept");
    }
    let no_json = run("sorry", 1);
    assert_eq!(no_json["data"], "sorry");
    // One that failed by itself has its own reason.
    let failed =
        place.run(&["run", "--json", "--schema", "s.json", "x", "--", "sh", "-c", "exit 3"]);
    assert_eq!(failed.expect_code(1).json()["error"]["code"], "exit_code");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn each_child_and_each_piece_has_its_own_form() {
    let place = Place::new();
    place.file("s.json", COMMIT);
    let outcome = place.tree(
        &[],
        r#"ask() { "$OFFSHOOT" -q spawn --wait "$@" 2>/dev/null; echo " $?"; }
           ask --schema s.json a -- printf '{"sha": "abc123"}'
           ask --schema s.json b -- printf '{"sha": 1}'
           ask c -- printf '{"sha": 1}'
           ask --schema s.json d -- sh -c 'seq 30000; printf 1'"#,
    );
    let stdout = outcome.expect_code(0);
    let lines: Vec<&str> = stdout.stdout().lines().collect();
    let codes: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with(' ')).collect();
    assert_eq!(codes, [" 0", " 1", " 0", " 1"], "{lines:?}");
    place.run(&["audit", "last"]).expect_code(0);

    place.file(
        "t.jsonl",
        format!("{{\"task\":\"a\",\"schema\":{COMMIT}}}\n{{\"task\":\"b\",\"schema\":{{\"type\":\"string\"}}}}\n{{\"task\":\"c\"}}\n"),
    );
    let fanout = ["fanout", "--jsonl", "--keep-order", "--tasks", "t.jsonl", "--", "cat"];
    let outcome = place.run(&fanout).expect_code(1);
    let lines = outcome.stdout().lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("lines of JSON");
    let codes: Vec<&Value> = lines.iter().map(|line| &line["envelope"]["error"]["code"]).collect();
    assert_eq!(codes, [&json!("schema_mismatch"), &Value::Null, &Value::Null]);
}

#[test]
fn an_agent_has_a_form_for_its_answers() {
    let place = Place::new();
    place.file(
        "c.toml",
        "[[agents.list]]\nid = \"main\"\nsubagents = { allowAgents = [\"git\"] }\n\
         [[agents.list]]\nid = \"git\"\ncommand = [\"echo\", \"none\"]\n\
         schema = { type = \"object\", required = [\"sha\"] }\n",
    );
    let outcome = place.tree(
        &["--config", "c.toml"],
        r#""$OFFSHOOT" -q spawn --wait --json --agent git x 2>/dev/null"#,
    );
    let error = &serde_json::from_str::<Value>(outcome.stdout()).expect("an envelope")["error"];
    assert_eq!(error["code"], "schema_mismatch", "{error}");
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_the_path() {
    let place = Place::new();
    let table = [
        (r#"{"properties": {"a": {"type": "nothing"}}}"#.to_owned(), "/properties/a/type: "),
        (r#"{"items": {"$ref": "https://a.example/x"}}"#.to_owned(), "/items/$ref: "),
        (r##"{"allOf": [{"$ref": "#"}]}"##.to_owned(), "it leads back to itself"),
        (format!(r#"{{"title": "{}"}}"#, "x".repeat(70_000)), "65536 bytes at most"),
        ("{".to_owned(), "no JSON"),
    ];
    for (schema, expected) in &table {
        place.file("s.json", schema);
        let run = place.run(&["run", "--schema", "s.json", "x", "--", "echo", "1"]).expect_code(2);
        let text = run.text();
        assert!(text.contains("s.json: ") && text.contains(expected), "{text}");
    }
    assert_eq!(place.run(&["list", "--all", "--json"]).json(), json!([]), "nothing was started");
    place.file("c.toml", "[[agents.list]]\nid = \"main\"\nschema = { type = \"nothing\" }\n");
    let run = place.run(&["--config", "c.toml", "run", "x", "--", "echo", "1"]).expect_code(2);
    assert!(run.text().contains("the schema cannot be used: /type: "), "{}", run.text());
}
