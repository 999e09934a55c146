//! Sessions of the real Claude Code that others write to, and that outlive their supervisor.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use offshoot_fake_model_api::{Condition, Reply, Rule};
use offshoot_real_clients::install;
use offshoot_test_support::named_pipe;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::stage::Stage;

const RIGHTS: &str = "[[agents.list]]\nid = \"main\"\ntools = { allow = [\"exec\", \"spawn\"] }\n";
const RUN: &[&str] =
    &["-q", "run", "--runtime", "claude", "--allow-recursive-spawn", "--config", "c.toml"];

fn at(task: &str, step: usize, reply: Reply) -> Rule {
    Rule::when(Condition::Prompt(task.into()), reply).and(Condition::Step(step))
}

#[test]
fn a_letter_reaches_a_child_at_its_work() {
    let Some(clients) = install("a_letter_reaches_a_child_at_its_work") else { return };
    let tool = |name: &str, input| Reply::call(format!("mcp__offshoot__sessions_{name}"), input);
    let letter = json!({"to": "{{result:/runId}}", "text": "the word is plum"});
    let heard = || Reply::text("the word was plum");
    let rules = [
        at("top", 1, tool("spawn", json!({"task": "listen"}))),
        at("top", 2, tool("send", letter)),
        at("top", 3, tool("wait", json!({}))),
        at("top", 4, Reply::text("{{result:/ended/0/data}}")),
        // It works until it has heard, whether in the midst of a turn or before the first.
        Rule::when(Condition::System("the word is plum".into()), heard()),
        Rule::when(Condition::Prompt("the word is plum".into()), heard()),
        Rule::when(
            Condition::Prompt("listen".into()),
            Reply::call("Bash", json!({"command": "true"})),
        ),
    ];
    let stage = Stage::new(clients, rules);
    stage.place.file("c.toml", RIGHTS);
    let outcome = stage.run(&[RUN, &["top"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "the word was plum\n");
}

#[test]
fn a_session_goes_on_where_its_supervisor_was_killed() {
    let Some(clients) = install("a_session_goes_on_where_its_supervisor_was_killed") else {
        return;
    };
    let hang = Reply::call("Bash", json!({"command": "echo up > up; cat hold"}));
    let rules = [
        Rule::when(
            Condition::Prompt("You were interrupted".into()),
            Reply::text("went on in {{turn}}"),
        ),
        at("work", 1, hang),
    ];
    let stage = Stage::new(clients, rules);
    stage.place.file("c.toml", RIGHTS);
    for name in ["up", "hold"] {
        let pipe = stage.place.path().join(name);
        named_pipe(&pipe);
    }
    let mut command = stage.command(&[RUN, &["work"]].concat());
    let mut child = command.stderr(Stdio::null()).spawn().expect("the program cannot be started");
    let opened = fs::File::open(stage.place.path().join("up")).expect("the tool opens its side");
    let mut word = String::new();
    BufReader::new(opened).read_line(&mut word).expect("the tool writes a line");
    assert_eq!(word, "up\n");
    let id = i32::try_from(child.id()).expect("ids are small");
    assert!(id > 1, "a process of our own");
    let locks = stage.place.locks_of(child.id());
    kill_process(Pid::from_raw(id).expect("not zero"), Signal::KILL)
        .expect("the process cannot be signalled");
    child.wait().expect("the child cannot be waited for");
    locks.wait();

    let resumed = stage.run(&["-q", "resume", "--config", "c.toml"]).expect_code(0);
    assert_eq!(resumed.stdout(), "went on in 2\n");
    assert_eq!(stage.agents(), 0);
}
