//! `offshoot tree`, `list`, `show` and `events`.

use std::fs;

use serde_json::{Value, json};

use crate::command::{Place, Table, check};
use crate::forged::forge;

/// A place in which three pieces ran, of which one failed; and the id of their tree.
fn with_a_tree() -> (Place, String) {
    let place = Place::new();
    for name in ["one", "two", "three"] {
        place.file(name, name);
    }
    let script = "read x || true; echo got $x; [ $x != two ] || exit 7";
    let map =
        ["map", "--json", "--label", "thirds", "one", "two", "three", "--", "sh", "-c", script];
    let report = place.run(&map).expect_code(1).json();
    let id = report["runId"].as_str().expect("the report names the root").to_owned();
    (place, id)
}

#[test]
fn a_tree_is_shown_as_text_and_as_json() {
    let (place, id) = with_a_tree();
    check("look_tree", &place.run(&["tree"]));
    assert_eq!(place.run(&["tree", &id]).stdout(), place.run(&["tree"]).stdout());
    let trees = place.run(&["tree", "--json"]).expect_code(0).json();
    let root = &trees[0];
    assert_eq!(root["runId"], id.as_str());
    assert_eq!(root["id"], id.as_str());
    assert_eq!((&root["depth"], &root["parent"]), (&0.into(), &Value::Null));
    let children = root["children"].as_array().expect("it has children");
    let statuses: Vec<_> = children.iter().map(|child| child["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "failed", "completed"]);
    for child in children {
        assert_eq!(child["parent"], id.as_str());
        for key in [
            "sessionKey",
            "agent",
            "startedAt",
            "endedAt",
            "executionTimeMs",
            "tokenUsage",
            "ownUsage",
            "ownCost",
            "subtreeUsage",
            "cost",
        ] {
            assert!(!child[key].is_null(), "{key}: {child}");
        }
    }
    // A run below the root, with what is below it.
    let child = children[1]["runId"].as_str().expect("the run has no id");
    check("look_tree_of_a_piece", &place.run(&["tree", child]));
}

#[test]
fn runs_are_listed() {
    let (place, id) = with_a_tree();
    let names = |arguments: &[&str]| {
        let list = place.run(arguments).expect_code(0);
        let rows = list
            .stdout()
            .lines()
            .skip(1)
            // The label is the last column; the reason of a failure follows it.
            .map(|row| {
                let labels = ["thirds", "one", "two", "three"];
                row.split("  ").map(str::trim).find(|it| labels.contains(it)).map(str::to_owned)
            });
        rows.collect::<Option<Vec<String>>>().expect("no row is empty")
    };
    assert_eq!(names(&["list"]), ["thirds"]);
    assert_eq!(names(&["list", "--all"]), ["thirds", "one", "two", "three"]);
    let listed = place.run(&["list", "--json"]).expect_code(0).json();
    assert_eq!((&listed[0]["runId"], &listed[0]["children"]), (&id.as_str().into(), &3.into()));
}

#[test]
fn a_run_is_named_by_id_beginning_or_key() {
    let mut table = Table::default();
    let (place, id) = with_a_tree();
    let key = format!("agent:main:run:{id}");
    for name in [id.as_str(), &id[..35], &id.to_uppercase(), &key, &key.to_uppercase()] {
        let shown = place.run(&["show", name, "--json"]).expect_code(0).json();
        assert_eq!(shown["runId"], id.as_str(), "{name}");
    }
    // All ids of one tree begin with the moment at which they were minted.
    table.row(&place.run(&["cancel", &id[..8]]));
    table.row(&place.run(&["show", "ffffffff"]));
    table.row(&place.run(&["show", "agent:main:subagent:"]));
    table.row(&place.run(&["tree", "main"]));
    table.check("look_wrong");
}

#[test]
fn a_run_is_explained() {
    let (place, id) = with_a_tree();
    let trees = place.run(&["tree", "--json"]).expect_code(0).json();
    let failed = trees[0]["children"][1]["runId"].as_str().expect("the run has no id").to_owned();
    check("look_show_root", &place.run(&["show", &id]));
    check("look_show_failed", &place.run(&["show", &failed]));
    let shown = place.run(&["show", &failed, "--json"]).expect_code(0).json();
    assert_eq!((&shown["data"], &shown["partial"]), (&"got two".into(), &true.into()));
    assert_eq!(shown["input"]["length"], 3);
    assert_eq!(place.run(&["show", &failed, "--answer"]).expect_code(0).stdout(), "got two\n");
    let answer = place.run(&["show", &id, "--answer"]).expect_code(0);
    assert_eq!(answer.stdout(), "got one\n---\ngot three\n");
}

#[test]
fn json_has_a_second_form_and_the_first_on_request() {
    let (place, id) = with_a_tree();
    let lines = |format: &[&str]| -> Vec<Value> {
        let words = [&["events", &id, "--json"], format].concat();
        let events = place.run(&words).expect_code(0);
        events.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (second, first) = (lines(&[]), lines(&["--format", "1"]));
    assert_eq!(second, lines(&["--format", "2"]));
    for (second, first) in second.iter().zip(&first) {
        let (kind, word) = (&second["kind"], second["kind"]["type"].as_str().expect("a type"));
        assert!(second["at"].as_str().expect("a moment").ends_with('Z'), "{second}");
        assert!(first["at"].is_u64(), "{first}");
        match &first["kind"] {
            Value::String(only) => assert_eq!(kind, &json!({ "type": only })),
            older => assert!(older[word].is_object(), "{older}"),
        }
    }
    let modified = |events: &[Value], at: &str| {
        let admitted = events[0].pointer(at).expect("the plan of a map names its files");
        admitted["inputs"][0]["modified"].clone()
    };
    assert!(modified(&second, "/kind/plan").is_string());
    assert!(modified(&first, "/kind/admitted/plan").is_u64());
    let ended = second.iter().filter(|event| event["kind"]["type"] == "ended");
    let reasons: Vec<&Value> = ended.map(|event| &event["kind"]["reason"]).collect();
    assert!(reasons.contains(&&json!({ "type": "exit_code", "code": 7 })), "{reasons:?}");

    let failed = |words: &[&str], at: &str| {
        let shown = place.run(words).expect_code(0).json();
        shown.pointer(at).expect("the second piece has failed").clone()
    };
    let below = "/0/children/1/reason";
    assert_eq!(failed(&["tree", "--json"], below)["type"], "exit_code");
    assert_eq!(failed(&["tree", "--json", "--format", "1"], below)["kind"], "exit_code");
    let map = ["map", "--on-failure", "skip", "--json", "one", "two", "--", "sh", "-c"];
    let fails = "read x || true; [ $x != two ] || exit 7";
    let below = "/tree/children/1/reason";
    assert_eq!(failed(&[&map[..], &[fails]].concat(), below)["type"], "exit_code");
    let older = [&["map", "--format", "1"], &map[1..], &[fails]].concat();
    assert_eq!(failed(&older, below)["kind"], "exit_code");
    let forms = ["1", "2"].map(|format| ["stats", "--json", "--format", format]);
    let forms = forms.map(|words| place.run(&words).expect_code(0));
    assert_eq!(forms[0].stdout(), forms[1].stdout());
    let forms = ["1", "2"].map(|format| ["list", "--json", "--format", format]);
    let [older, newer] = forms.map(|words| place.run(&words).expect_code(0).json()[0].clone());
    assert_eq!(
        (&newer["reason"]["type"], &newer["why"]),
        (&"pieces_failed".into(), &older["reason"])
    );
    let wrong = place.run(&["events", "--format", "3"]).expect_code(2);
    let said =
        "error: --format: found \"3\", allowed is one of 1, 2\nhint: for example: --format 1\n";
    assert_eq!(wrong.stderr, said);
}

#[test]
fn events_are_printed_in_order() {
    let (place, id) = with_a_tree();
    let events = place.run(&["events", &id, "--json"]).expect_code(0);
    let events: Vec<Value> = events
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let numbers: Vec<_> =
        events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "without gaps");
    let trees = place.run(&["tree", "--json"]).expect_code(0).json();
    let piece = trees[0]["children"][1]["runId"].as_str().expect("the run has no id").to_owned();
    check("look_events_of_a_piece", &place.run(&["events", &piece]));
    let all = place.run(&["events", &id]).expect_code(0);
    assert_eq!(all.stdout().lines().count(), events.len());
}

#[test]
fn where_nothing_ran_nothing_is_made() {
    let mut table = Table::default();
    let place = Place::new();
    table.row(&place.run(&["tree"]));
    assert_eq!(place.run(&["tree", "--json"]).expect_code(0).stdout(), "[]\n");
    assert_eq!(place.run(&["list", "--json"]).expect_code(0).stdout(), "[]\n");
    table.row(&place.run(&["show", "0198"]));
    assert!(!place.path().join(".offshoot").exists());
    fs::write(place.path().join("file"), "").expect("the file cannot be written");
    table.row(&place.run(&["tree", "--data-dir", "file"]));
    table.check("look_nothing");
}

#[test]
fn the_data_folder_is_a_flag_or_a_variable() {
    let place = Place::new();
    place.run(&["run", "x", "--data-dir", "one", "--", "cat"]).expect_code(0);
    let listed =
        place.run_with("OFFSHOOT_DATA_DIR", "one", &["list", "--json"]).expect_code(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert!(!place.path().join(".offshoot").exists());
}

/// The plan of a tree is text to those who look: they neither build nor understand it, however large it is and whatever is in it.
#[test]
fn a_plan_that_cannot_be_understood_hinders_no_reader() {
    let (place, id) = with_a_tree();
    let look = || {
        let tree = place.run(&["tree"]).expect_code(0).stdout().to_owned();
        (tree, place.run(&["list", "--all", "--json"]).expect_code(0).json())
    };
    let before = look();
    // Deeper than a reader would go, and with a number that is none for it.
    let deep = format!("{}1e999{}", "[".repeat(500), "]".repeat(500));
    let many = format!("{{\"path\":\"{}\"}},", "x".repeat(100)).repeat(20_000);
    let plan = format!(r#"{{"deep":{deep},"inputs":[{many}0],"inputs":0}}"#);
    let body = format!(
        "UPDATE events SET body = replace(body, json_extract(body, '$.admitted.plan'), '{plan}')
         WHERE seq = 1"
    );
    forge(&place, &body);
    assert_eq!(look(), before);
    let refused = place.run(&["resume", &id]).expect_code(2);
    assert!(refused.stderr.contains("the plan of tree"), "{}", refused.stderr);
}
