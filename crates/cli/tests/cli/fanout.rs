//! `offshoot fanout`.

use crate::command::{Place, Table, check};

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
