//! Tasks with a type: what was done directly and what was delegated, and what that recommends.

use serde_json::Value;

use crate::command::Place;

/// A lead that prefers one agent.
const TEAM: &str = r#"
[[agents.list]]
id = "lead"
preferredSubagents = [{ scanner = "For secrets" }]

[[agents.list]]
id = "scanner"
command = ["sh", "-c", "cat >/dev/null; echo safe"]
"#;

fn place() -> Place {
    let place = Place::new();
    place.file("team.toml", TEAM);
    place
}

/// Runs a script as the lead.
fn as_lead(place: &Place, script: &str) -> String {
    let run = ["-q", "run", "--config", "team.toml", "--agent", "lead"];
    let command = ["x", "--", "sh", "-c", script];
    place.run(&[&run[..], &command].concat()).expect_code(0).stdout().to_owned()
}

fn learned(place: &Place) -> Value {
    let page: Value = place.run(&["stats", "--delegation", "--json"]).expect_code(0).json();
    page["types"].clone()
}

/// Begins with a task itself, and leaves the number of the observation in `$id`.
const DIRECT: &str = r#"id=$("$OFFSHOOT" -q --json delegate --type scan "translate it" | sed -n 's/.*"observation": \([0-9]*\).*/\1/p')"#;

#[test]
fn ten_on_both_sides_recommend_and_less_say_what_is_missing() {
    let place = place();
    let script = format!(
        r#"for n in 1 2 3 4 5 6 7 8 9 10; do
            "$OFFSHOOT" -q delegate --type scan --wait "look for secrets" >> answers
            {DIRECT}
            [ "$id" = "$n" ] || echo "the observation $n is called $id"
            if [ "$n" -lt 8 ]; then "$OFFSHOOT" delegate --done "$id"; else "$OFFSHOOT" delegate --done "$id" --failed; fi
        done"#
    );
    assert_eq!(as_lead(&place, &script).trim_end(), "");
    place.run(&["audit", "last"]).expect_code(0);
    let types = learned(&place);
    assert_eq!(types[0]["type"], "scan");
    let numbers = |side: &str| (&types[0][side]["observations"], &types[0][side]["succeeded"]);
    assert_eq!(numbers("directly"), (&10.into(), &7.into()));
    assert_eq!(numbers("delegated"), (&10.into(), &10.into()));
    let advice = serde_json::json!({ "what": "prefer", "way": "delegated", "because": "success" });
    assert_eq!(types[0]["advice"], advice);
    assert_eq!(types[0]["agents"][0]["agent"], "lead");
    assert_eq!(types[0]["agents"][1]["agent"], "scanner");
    let page = place.run(&["stats", "--delegation"]).expect_code(0);
    let advice =
        "delegate it: of the type `scan` more of them succeed (directly 7 of 10 succeeded, half";
    assert!(page.stdout().contains(advice), "{}", page.stdout());
    // None of it is as young as that.
    let since = place.run(&["stats", "--delegation", "--since", "0s"]).expect_code(0);
    assert_eq!(since.stdout(), "no task with a type in 0 trees\n");
}

#[test]
fn an_observation_is_closed_once_and_at_the_latest_by_the_end() {
    let place = place();
    let script = format!(
        r#"exec 2>&1
        {DIRECT}; {DIRECT}; echo "$id"
        "$OFFSHOOT" delegate --done 1; echo $?
        "$OFFSHOOT" delegate --done 1; echo $?
        "$OFFSHOOT" delegate --done 7 | head -1
        "$OFFSHOOT" delegate --failed x | head -1
        "$OFFSHOOT" delegate --type "two words" x | head -1
        "$OFFSHOOT" delegate | head -1
        "$OFFSHOOT" delegate --type scan "translate it""#
    );
    let said = as_lead(&place, &script);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["2", "0"], "{said}");
    assert!(lines[2].contains("this session has no open observation 1"), "{said}");
    let from = lines.iter().position(|line| line.contains("no open observation 7"));
    let rest = &lines[from.expect("a refusal")..];
    assert!(said.contains("allowed is 1 to 64 letters"), "{said}");
    assert!(rest.contains(&"when it is over: offshoot delegate --done 3"), "{said}");
    assert_eq!(rest.last(), Some(&"execute_directly"), "{said}");
    let types = learned(&place);
    assert_eq!(types[0]["directly"]["observations"], 3, "{types}");
    assert_eq!(types[0]["directly"]["succeeded"], 3, "{types}");
    let missing =
        serde_json::json!({ "what": "unknown", "directlyMissing": 7, "delegatedMissing": 10 });
    assert_eq!(types[0]["advice"], missing);
    let events = place.run(&["events", "last"]).expect_code(0);
    let opened = "observation_opened  3, does a task of the type `scan` itself";
    assert!(events.stdout().contains(opened), "{}", events.stdout());
    assert!(events.stdout().contains("observation_closed  1, done"), "{}", events.stdout());
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_run_with_a_type_is_an_observation_whichever_asks_for_it() {
    let place = place();
    let tasks = r#"{"task":"a","type":"sum"}
{"task":"b","type":"sum"}
{"task":"c"}
"#;
    place.file("tasks.jsonl", tasks);
    place.run(&["-q", "fanout", "--tasks", "tasks.jsonl", "--", "grep", "a"]);
    as_lead(&place, r#""$OFFSHOOT" -q spawn --wait --type sum x -- true"#);
    let types = learned(&place);
    let delegated = &types[0]["delegated"];
    assert_eq!((&delegated["observations"], &delegated["succeeded"]), (&3.into(), &2.into()));
    place.file("wrong.jsonl", "{\"task\":\"a\",\"type\":\"two words\"}");
    let wrong = place.run(&["fanout", "--tasks", "wrong.jsonl", "--", "cat"]).expect_code(2);
    assert!(
        wrong.stderr.contains("`type` is `two words`, and a type of tasks has"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn what_was_learned_decides_where_it_is_asked_for() {
    let place = place();
    // Directly 9 of 10 fail, the scanner does all that it gets.
    let script = format!(
        r#"for n in 1 2 3 4 5 6 7 8 9 10; do
            {DIRECT}
            if [ "$n" = 1 ]; then "$OFFSHOOT" delegate --done "$id"; else "$OFFSHOOT" delegate --done "$id" --failed; fi
            [ "$n" = 10 ] || "$OFFSHOOT" -q delegate --type scan --wait "look for secrets" >> answers
        done"#
    );
    as_lead(&place, &script);
    // It is off: the words choose.
    let words = r#""$OFFSHOOT" -q delegate --type scan --wait "translate it""#;
    assert_eq!(as_lead(&place, words), "execute_directly\n");
    place.file("team.toml", format!("[agents.defaults.subagents]\nlearnDelegation = true\n{TEAM}"));
    // Nine are not enough; the tenth is made in this very tree, and seen by the next that asks in it.
    let said = as_lead(
        &place,
        r#"exec 2>&1
            "$OFFSHOOT" delegate --explain --dry-run --type scan "translate it"
            "$OFFSHOOT" -q delegate --type scan --wait "look for secrets"
            "$OFFSHOOT" delegate --explain --type scan --wait "translate it"
            "$OFFSHOOT" -q delegate --json --type scan "translate it" | grep -c '"learned": "delegate it: .*(directly 2 of 11'
            "$OFFSHOOT" -q delegate --json --type other "look for secrets" | grep -c '"learned": "no recommendation'
            "$OFFSHOOT" -q delegate --json "look for secrets" | grep -c learned
            "$OFFSHOOT" wait > /dev/null"#,
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "no agent was compared, or none has a word in common with the task");
    let missing = "learned: no recommendation for `scan` yet: 0 more done directly and 1 more delegated are needed";
    assert_eq!(lines[1], missing, "{said}");
    assert_eq!(lines[3..5], ["execute_directly", "safe"], "{said}");
    let learned =
        lines.iter().find(|line| line.starts_with("learned: delegate it: of the type `scan` more"));
    let learned = learned.expect("the numbers");
    assert!(learned.contains("; `scanner` has done best of those: 10 of 10 succeeded"), "{said}");
    assert!(lines.contains(&"handed on to `scanner`"), "{said}");
    assert_eq!(lines[lines.len() - 4..], ["safe", "1", "1", "0"], "{said}");
    place.run(&["audit", "last"]).expect_code(0);
    // Without an agent that asks, the whole record decides.
    let ask =
        ["delegate", "--config", "team.toml", "--dry-run", "--from", "lead", "--type", "scan"];
    let chosen = place.run(&[&ask[..], &["translate it"]].concat()).expect_code(0);
    assert_eq!(chosen.stdout(), "scanner\n");
}

#[test]
fn what_went_better_directly_is_not_handed_on() {
    let place = place();
    let failing = TEAM.replace("echo safe", "exit 1");
    place.file(
        "team.toml",
        format!("[agents.defaults.subagents]\nlearnDelegation = true\n{failing}"),
    );
    let script = format!(
        r#"for n in 1 2 3 4 5 6 7 8 9 10; do
            {DIRECT}
            "$OFFSHOOT" delegate --done "$id"
            "$OFFSHOOT" -q delegate --type scan --wait "look for secrets" >> answers 2>&1
        done
        "$OFFSHOOT" -q --json delegate --type scan "look for secrets"
        "$OFFSHOOT" delegate --agent scanner --type scan "look for secrets" > named"#
    );
    let answer: Value = serde_json::from_str(&as_lead(&place, &script)).expect("one answer");
    assert_eq!(
        (&answer["status"], &answer["reason"]),
        (&"execute_directly".into(), &"learned".into())
    );
    let message = answer["message"].as_str().expect("a sentence");
    let numbers = "of the type `scan` more of them succeed (directly 10 of 10 succeeded";
    assert!(message.starts_with(numbers), "{message}");
    assert_eq!(answer["learned"], format!("do it directly: {message}"));
    assert_eq!(answer["observation"], 11);
    let tree = place.run(&["tree", "last"]).expect_code(0);
    assert_eq!(tree.stdout().matches("scanner").count(), 11, "a named agent gets it all the same");
}
