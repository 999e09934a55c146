//! `offshoot fanout`.

use crate::command::{Place, Table, check};
use crate::openai::stage;

#[test]
fn each_task_is_the_input_of_one_run() {
    let place = Place::new();
    let outcome =
        place.run(&["-q", "fanout", "--task", "one", "--task", "two", "--", "tr", "a-z", "A-Z"]);
    check("fanout", &outcome);
    place.file("tasks.jsonl", "{\"task\":\"1+1\",\"label\":\"a\"}\n\n{\"task\":\"2+2\"}\n");
    let file = ["-q", "fanout", "--tasks", "tasks.jsonl", "--merge", "structured", "--", "cat"];
    check("fanout_file", &place.run(&file));
    let standard_input = ["-q", "fanout", "--tasks", "-", "--", "cat"];
    let outcome = place.feed(&standard_input, "{\"task\":\"x\"}").expect_code(0);
    assert_eq!(outcome.stdout(), "x\n");
}

#[test]
fn context_is_named_in_the_prompt_and_there_to_be_read() {
    let place = Place::new();
    place.file("plan.md", "step one\n");
    let outcome =
        place.run(&["-q", "fanout", "--task", "t", "--context", "plan=plan.md", "--", "cat"]);
    check("fanout_context", &outcome);
    let fanout = ["-q", "fanout", "--task", "t", "--context", "plan=plan.md", "--"];
    let script = "cat \"$OFFSHOOT_CONTEXT\"";
    let outcome = place.run(&[&fanout[..], &["sh", "-c", script]].concat()).expect_code(0);
    let path = outcome.json()["plan"]["path"].as_str().expect("a path").to_owned();
    assert_eq!(std::fs::read_to_string(path).expect("the file cannot be read"), "step one\n");
}

/// Agents that are programs, and no agent `main` that could run anything.
const AGENTS: &str = "[[agents.list]]\nid = \"upper\"\ncommand = [\"tr\", \"a-z\", \"A-Z\"]\n\
    [[agents.list]]\nid = \"count\"\ncommand = [\"wc\", \"-c\"]\ncwd = \"there\"\n";

#[test]
fn tasks_for_defined_agents_need_no_command() {
    let place = Place::new();
    place.file("c.toml", AGENTS);
    place.file("there/x", "");
    let lines =
        "{\"task\":\"one\",\"agent\":\"upper\"}\n{\"task\":\"three\",\"agent\":\"count\"}\n";
    place.file("tasks.jsonl", lines);
    let fanout = ["-q", "fanout", "--config", "c.toml", "--tasks", "tasks.jsonl"];
    // Nothing else is found: neither `claude` nor a command.
    let outcome = place.run(&fanout).expect_code(0);
    assert_eq!(outcome.stdout(), "ONE\n---\n5\n");
    let mut table = Table::default();
    table.row(&place.run(&[&fanout[..], &["--dry-run"]].concat()));
    let json = place.run(&[&fanout[..], &["--dry-run", "--json"]].concat()).expect_code(0).json();
    let runs = serde_json::json!({"agent": "count", "runtime": "exec", "command": ["wc", "-c"]});
    assert_eq!(json["pieces"][1]["runs"], runs, "{json}");
    // Where one task has no agent of its own, something must run it.
    place.file("tasks.jsonl", [lines, "{\"task\":\"x\"}\n"].concat());
    table.row(&place.run(&fanout));
    table.row(&place.run(&[&fanout[..], &["--dry-run", "--", "cat"]].concat()));
    table.check("fanout_agents");
}

#[test]
fn a_dry_run_counts_the_tasks_that_may_cost() {
    let settings = "[prices.small]\ninputPerMillion = 1\noutputPerMillion = 1\n\
                    [[agents.list]]\nid = \"count\"\ncommand = [\"wc\", \"-c\"]\n";
    let (place, api) = stage([], settings);
    let lines = "{\"task\":\"a\",\"agent\":\"count\"}\n{\"task\":\"b\",\"runtime\":\"openai\"}\n";
    place.file("tasks.jsonl", lines);
    let fanout = ["-q", "--config", "c.toml", "fanout", "--tasks", "tasks.jsonl", "--dry-run"];
    let with = |more: &[&str]| place.run(&[&fanout[..], more].concat()).expect_code(0);
    let planned = with(&["--budget-usd", "0.3"]).stdout().to_owned();
    for expected in [
        "budget: one pool of $0.30 for all; the first agent takes $0.15 as it starts: later",
        "at most $0.30",
    ] {
        assert!(planned.contains(expected), "{planned}");
    }
    let json = with(&["--budget-usd", "0.3", "--json"]).json();
    let cost = serde_json::json!({"mayCost": true, "atMostUsd": 0.3});
    assert_eq!((&json["cost"], &json["budget"]["shared"]), (&cost, &"pool".into()), "{json}");
    assert_eq!(json["budget"]["smallest"]["usd"], 0.15, "{json}");
    // A program that costs nothing takes nothing from the pool, so that no number of agents at first is true.
    assert!(json["budget"].get("atFirst").is_none(), "{json}");
    place.file("tasks.jsonl", "{\"task\":\"a\"}\n".repeat(4));
    let planned = with(&["--runtime", "openai", "--budget-usd", "0.4"]).stdout().to_owned();
    assert!(planned.contains("as it starts, and at most 2 work at once, or twice"), "{planned}");
    let rich = with(&["--runtime", "openai", "--budget-usd", "90", "--json"]).json();
    assert_eq!(rich["budget"]["atFirst"], 4, "no more than there are");
    assert!(api.requests().is_empty());
}

#[test]
fn the_agent_that_nothing_runs_is_named() {
    let place = Place::new();
    place.file("c.toml", "[[agents.list]]\nid = \"reader\"\nsystemPrompt = \"read\"\n");
    place.file("tasks.jsonl", "{\"task\":\"a\",\"agent\":\"reader\"}\n");
    let fanout = ["-q", "fanout", "--config", "c.toml", "--tasks", "tasks.jsonl"];
    let outcome = place.run(&fanout).expect_code(5);
    let expected = "nothing says what runs the agent `reader`";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
}

#[test]
fn a_line_says_what_its_run_is_given() {
    let place = Place::new();
    place.file("notes", "a note\n");
    place.file("plan", "the plan\n");
    place.file("there/x", "");
    let script = "cat \"$OFFSHOOT_CONTEXT\" 2>/dev/null | tr -d ' \\n' | grep -o '\"[a-z]*\":{' | tr '\\n' ' '; \
                  basename \"$PWD\"; \"$OFFSHOOT\" -q spawn x -- true 2>&1 | head -1";
    let lines = [
        r#"{"task":"a","context":{"notes":"notes"},"cwd":"there","timeout":"90s","label":"first"}"#,
        r#"{"task":"b","tools":["read","exec"],"model":"m","thinking":"low","timeout":2}"#,
        r#"{"task":"c","runtime":"exec","tools":{"deny":["spawn"]},"weight":null}"#,
    ];
    place.file("tasks.jsonl", lines.join("\n"));
    let fanout = [
        "-q",
        "fanout",
        "--allow-recursive-spawn",
        "--tasks",
        "tasks.jsonl",
        "--context",
        "plan=plan",
    ];
    let outcome = place.run(&[&fanout[..], &["--json", "--", "sh", "-c", script]].concat());
    let report = outcome.expect_code(0).json();
    let said = report["data"].as_str().expect("text");
    let (first, rest) = said.split_once("\n---\n").expect("three answers");
    assert!(first.contains(r#""notes":{ "plan":{ there"#), "{first}");
    assert_eq!(rest.matches(r#""plan":{ "#).count(), 2, "{rest}");
    assert!(!rest.contains("notes") && !rest.contains("there"), "{rest}");
    assert_eq!(rest.matches("the right `spawn` is not among").count(), 2, "{rest}");
    let root = report["runId"].as_str().expect("a run");
    let events = place.run(&["events", "--json", root]).expect_code(0);
    let events = events.stdout();
    for part in [
        r#""model":"m","thinking":"low""#,
        r#""runTimeoutSeconds":90"#,
        r#""runTimeoutSeconds":2,"#,
    ] {
        assert!(events.contains(part), "{part}: {events}");
    }
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn fanouts_inside_one_agent_keep_their_files_apart() {
    let place = Place::new();
    place.file("first", "of the first\n");
    place.file("second", "of the second\n");
    let script = r#"
    for file in first second; do
        echo '{"task":"x","context":{"notes":"'$file'"}}' |
            "$OFFSHOOT" -q fanout --tasks - -- sh -c '"$OFFSHOOT" context get notes'
    done
    "$OFFSHOOT" --json context info | grep -o 'fanout [0-9]*, task 1: notes' | sort -u | wc -l"#;
    let told = place.tree(&[], script).expect_code(0);
    assert_eq!(told.stdout(), "of the first\nof the second\n2\n");
}

#[test]
fn a_budget_is_divided_by_weight() {
    let place = Place::new();
    place.file("c.toml", AGENTS.replace("cwd = \"there\"", ""));
    let lines = [
        r#"{"task":"a","agent":"upper","weight":3}"#,
        r#"{"task":"b","agent":"upper"}"#,
        r#"{"task":"c","agent":"count","budget":{"tokens":200}}"#,
    ];
    place.file("tasks.jsonl", lines.join("\n"));
    let fanout = ["-q", "fanout", "--config", "c.toml", "--tasks", "tasks.jsonl", "--json"];
    let report = place.run(&[&fanout[..], &["--budget-tokens", "1000"]].concat()).json();
    let root = report["runId"].as_str().expect("a run");
    let events = place.run(&["events", "--json", root]).expect_code(0);
    let granted = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        let admitted = &event["kind"];
        let label = admitted["label"].as_str()?.to_owned();
        Some((label, admitted["grant"]["budget"]["tokens"].as_u64()?))
    };
    let mut granted: Vec<_> = events.stdout().lines().filter_map(granted).collect();
    granted.sort();
    // A fifth of the 800 that are left stays with the root.
    let expected = [("a", 480), ("b", 160), ("c", 200)].map(|(label, it)| (label.to_owned(), it));
    assert_eq!(granted, expected);
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn labels_identify() {
    let place = Place::new();
    let lines = [
        r#"{"task":"x","label":"host-b"}"#,
        r#"{"task":"y","label":"host-b"}"#,
        r#"{"task":"list the risks of the plan, and of what it leaves out"}"#,
        r#"{"task":"z","label":"host-b"}"#,
    ];
    place.file("tasks.jsonl", lines.join("\n"));
    let fanout = ["-q", "fanout", "--tasks", "tasks.jsonl", "--merge", "structured"];
    let outcome = place.run(&[&fanout[..], &["--", "wc", "-c"]].concat()).expect_code(0);
    let expected = serde_json::json!({
        "host-b": "1", "host-b (2)": "1", "list the risks of the plan, and of what": "53", "host-b (3)": "1",
    });
    assert_eq!(outcome.json(), expected);
    place.run(&["show", "host-b (3)"]).expect_code(0);
    place.run(&["show", "list the risks of the plan, and of what"]).expect_code(0);
}

#[test]
fn lines_that_cannot_be_used_are_named() {
    let mut table = Table::default();
    let place = Place::new();
    for line in [
        r#"{"task":"x","tiemout":3}"#,
        r#"{"task":"x","budget":{"usdd":3}}"#,
        r#"{"task":"x","tools":{"alow":[]}}"#,
        r#"{"task":"x","zzz":3}"#,
        r#"["x"]"#,
        r#"{"label":"x"}"#,
        r#"{"task":3}"#,
        r#"{"task":"x","label":["a"]}"#,
        r#"{"task":"x","label":""}"#,
        r#"{"task":"x","agent":"no such: name"}"#,
        r#"{"task":"x","timeout":"soon"}"#,
        r#"{"task":"x","timeout":true}"#,
        r#"{"task":"x","budget":5}"#,
        r#"{"task":"x","budget":{"usd":"5"}}"#,
        r#"{"task":"x","budget":{"tokens":0.5}}"#,
        r#"{"task":"x","weight":0}"#,
        r#"{"task":"x","tools":"read"}"#,
        r#"{"task":"x","tools":[1]}"#,
        r#"{"task":"x","tools":{"deny":"read"}}"#,
        r#"{"task":"x","context":["a"]}"#,
        r#"{"task":"x","context":{"a":1}}"#,
        r#"{"task":"x","context":{"a":"nowhere"}}"#,
        r#"{"task":"x","cwd":"nowhere"}"#,
        r#"{"task":"x","runtime":"nowhere"}"#,
        r#"{"task":"x",}"#,
    ] {
        let outcome = place.feed(
            &["fanout", "--tasks", "-", "--", "cat"],
            format!("{{\"task\":\"fine\"}}\n{line}\n"),
        );
        let text = outcome.text();
        let (_, said) = text.split_once("--- stderr\n").expect("a message");
        table.0.push(format!("{line}\n{said}"));
        assert!([2, 5].contains(&outcome.code), "{line}: {}", outcome.code);
    }
    table.check("fanout_lines_wrong");
}

#[test]
fn a_label_that_is_none_is_bad_input() {
    let place = Place::new();
    let long = "l".repeat(101);
    for label in ["", " ", "a\nb", &long] {
        place.run(&["run", "--label", label, "x", "--", "true"]).expect_code(2);
        place.run(&["fanout", "--label", label, "--task", "x", "--", "true"]).expect_code(2);
        place.run(&["map", "--label", label, "-", "--", "true"]).expect_code(2);
        let child = place.tree(
            &[],
            &format!("\"$OFFSHOOT\" -q spawn --label '{label}' x -- true 2>/dev/null; echo $?"),
        );
        assert_eq!(child.stdout(), "2\n");
    }
}

#[test]
fn tasks_that_cannot_be_used_are_named() {
    let mut table = Table::default();
    let place = Place::new();
    place.file("bad.jsonl", "{\"task\":\"x\"}\n{\"tsk\":\"y\"}\n");
    table.row(&place.run(&["fanout", "--tasks", "bad.jsonl", "--", "cat"]));
    table.row(&place.run(&["fanout", "--tasks", "nowhere", "--", "cat"]));
    table.row(&place.run(&["fanout", "--task", "", "--", "cat"]));
    table.row(&place.run(&["fanout", "--", "cat"]));
    table.row(&place.run_with("PATH", "/nowhere", &["fanout", "--task", "x"]));
    table.row(&place.run(&[
        "fanout",
        "--task",
        "x",
        "--context",
        "a=bad.jsonl",
        "--context",
        "a=bad.jsonl",
        "--",
        "cat",
    ]));
    place.file("none.jsonl", "\n");
    let nothing = place.run(&["fanout", "--tasks", "none.jsonl", "--", "cat"]).expect_code(0);
    assert_eq!(nothing.stdout(), "\n");
    table.check("fanout_wrong");
}
