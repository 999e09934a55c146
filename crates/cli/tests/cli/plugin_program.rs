//! Plugins that are programs, in Python and JavaScript: usage, cost, turns, children and trust.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;
use offshoot_test_support::{installed, skip};
use serde_json::{Value, json};

use crate::command::Place;

/// The example in Python, in a folder of this place.
pub(crate) fn python(place: &Place, folder: &str) -> PathBuf {
    example(place, folder, "python-agent", "agent.py")
}

/// An example of one file, in a folder of this place.
fn example(place: &Place, folder: &str, name: &str, file: &str) -> PathBuf {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name);
    let made = place.path().join(folder).join(name);
    fs::create_dir_all(&made).expect("the folder cannot be made");
    for file in ["plugin.toml", file] {
        fs::copy(example.join(file), made.join(file)).expect("the file cannot be copied");
        fs::set_permissions(made.join(file), Permissions::from_mode(0o644))
            .expect("the mode cannot be set");
    }
    made
}

#[test]
fn a_program_is_a_runtime_with_usage_cost_turns_and_children() {
    usage_cost_turns_and_children("python-agent", "agent.py");
}

#[test]
fn a_program_of_node_is_a_runtime_with_usage_cost_turns_and_children() {
    if installed("node").is_none() {
        let test = "a_program_of_node_is_a_runtime_with_usage_cost_turns_and_children";
        return skip(test, "there is no node");
    }
    usage_cost_turns_and_children("node-agent", "agent.mjs");
}

fn usage_cost_turns_and_children(name: &str, file: &str) {
    let place = Place::new();
    example(&place, "plugins", name, file);
    place.file(
        "p.toml",
        format!(
            "[plugins]\npath = [\"plugins\"]\n\
             [agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\n\
             [[agents.list]]\nid = \"main\"\nruntime = \"{name}\"\n",
        ),
    );
    let run = |task: &str, more: &[&str]| {
        place.run(&[&["run", "--config", "p.toml"], more, &[task]].concat())
    };
    assert_eq!(run("hello", &[]).expect_code(0).stdout(), "HELLO\n");
    let told = run("two words", &["--json"]).expect_code(0).json();
    assert_eq!(
        (&told["data"], &told["usage"]["input"]),
        (&"TWO WORDS".into(), &2.into()),
        "{told}"
    );
    assert_eq!(told["cost"]["knownUsd"], 0.002, "{told}");
    // The tool that it used is in the record, and in what is said of the run.
    let root = told["runId"].as_str().expect("the run has no id");
    let events = place.run(&["events", root, "--json"]).expect_code(0);
    let used = events.stdout().lines().filter_map(|line| {
        let event: Value = serde_json::from_str(line).expect("the text is not JSON");
        Some(event["kind"].clone()).filter(|kind| kind["type"] == "tool_used")
    });
    let input = r#"{"text":"two words"}"#;
    let digest = ContentHash::of(input.as_bytes()).to_string();
    let input = json!({"text": input, "size": input.len(), "digest": digest});
    assert_eq!(
        used.collect::<Vec<_>>(),
        [json!({"type": "tool_used", "name": "upper", "input": input})]
    );
    let show = place.run(&["show", root]).expect_code(0);
    let show = show.stdout();
    assert!(show.contains(r#"upper {"text":"two words"}"#), "{show}");
    // The answer of a child of the same kind, which has a process of its own.
    assert_eq!(run("ask who is there", &[]).expect_code(0).stdout(), "WHO IS THERE\n");
    let failed = run("fail on purpose", &[]).expect_code(1);
    assert!(failed.stderr.contains("on purpose"), "{}", failed.stderr);
    let stopped = run("wait", &["--timeout", "1"]);
    assert!(stopped.stderr.contains("timed out after 1 s"), "{}", stopped.stderr);
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn a_program_hands_a_task_on_to_the_agent_that_fits() {
    let place = Place::new();
    python(&place, "plugins");
    let team = r#"
[plugins]
path = ["plugins"]

[agents.defaults.subagents]
budget.allowUnknownCost = true

[[agents.list]]
id = "main"
runtime = "python-agent"
preferredSubagents = [{ shouter = "To shout what it is told" }, { guide = "To say where it is" }]

[[agents.list]]
id = "shouter"
runtime = "python-agent"

[[agents.list]]
id = "guide"
runtime = "exec"
command = ["pwd"]
cwd = "below"
"#;
    place.file("below/file", "");
    place.file("p.toml", team);
    let run = |task: &str| place.run(&["run", "--config", "p.toml", task]).expect_code(0);
    assert_eq!(run("delegate shout: this").stdout(), "SHOUT: THIS\n");
    let tree = place.run(&["tree", "last"]).expect_code(0);
    assert!(tree.stdout().contains("shouter"), "{}", tree.stdout());
    assert_eq!(run("delegate translate").stdout(), "TRANSLATE (no_match)\n");
    // As any child, it works in the folder of its agent.
    let below = place.path().join("below");
    assert_eq!(run("delegate say where").stdout(), format!("{}\n", below.display()));
    // A child of a session that may have none does it itself.
    assert_eq!(run("ask delegate shout").stdout(), "SHOUT (recursion_disabled)\n");
    let page = place.run(&["stats", "--delegation", "--json"]).expect_code(0).json();
    let louder = &page["types"][0];
    assert_eq!(
        (&louder["type"], &louder["delegated"]["observations"]),
        (&"louder".into(), &2.into())
    );
    assert_eq!(louder["directly"]["observations"], 2, "{page}");
    assert_eq!(louder["directly"]["succeeded"], 2, "{page}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_program_of_a_project_is_trusted_with_its_files() {
    let place = Place::new();
    let folder = python(&place, ".offshoot/plugins");
    let run = || place.run(&["run", "--runtime", "python-agent", "hello"]);
    let refused = run().expect_code(5);
    assert!(refused.stderr.contains("is not trusted"), "{}", refused.stderr);
    place.run(&["plugin", "trust", "python-agent"]).expect_code(0);
    assert_eq!(run().expect_code(0).stdout(), "HELLO\n");
    let script = folder.join("agent.py");
    let text = fs::read_to_string(&script).expect("the file cannot be read");
    fs::write(&script, format!("{text}\n# changed\n")).expect("the file cannot be written");
    let changed = run().expect_code(5);
    assert!(changed.stderr.contains("has changed since it was trusted"), "{}", changed.stderr);
    // The trust in the whole project covers each file of it.
    place.run(&["plugin", "trust", "python-agent", "--remove"]).expect_code(0);
    place.run(&["trust"]).expect_code(0);
    assert_eq!(run().expect_code(0).stdout(), "HELLO\n");
    // A copy is held to its digest.
    let place = Place::new();
    python(&place, "here");
    place.run(&["plugin", "add", "here/python-agent"]).expect_code(0);
    assert_eq!(
        place.run(&["run", "--runtime", "python-agent", "hi"]).expect_code(0).stdout(),
        "HI\n"
    );
    let list = place.run(&["plugin", "list", "--json"]).expect_code(0).json();
    let copy = Path::new(list[0]["folder"].as_str().expect("a folder")).join("agent.py");
    fs::write(copy, "print()").expect("the file cannot be written");
    let changed = place.run(&["run", "--runtime", "python-agent", "hi"]).expect_code(5);
    assert!(changed.stderr.contains("the digest is"), "{}", changed.stderr);
}

#[test]
fn fields_of_a_line_for_the_log_are_shown_as_pairs() {
    let place = Place::new();
    let script = python(&place, "plugins").join("agent.py");
    let text = fs::read_to_string(&script).expect("the file cannot be read");
    let (start, line) =
        ("    run.event(1, \"saying it louder\")\n", r#"{"count": 3, "name": "a\nb"}"#);
    let log =
        format!("    send(op=\"log\", level=3, target=\"work\", message=\"hi\", fields={line})\n");
    let text = text.replace(start, &format!("{log}{start}"));
    fs::write(script, text).expect("the file cannot be written");
    let run = ["run", "--plugin-path", "plugins", "--runtime", "python-agent", "hello"];
    let said = place.run_with("OFFSHOOT_LOG", "info", &run).expect_code(0).stderr;
    let expected = r#"plugin says part="work" said="hi" fields={count=3 name="a\nb"}"#;
    assert!(said.contains(expected), "{said}");
}
