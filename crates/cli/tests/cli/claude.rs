//! Claude Code: the real program, before a service that answers by rules.

use std::fs;
use std::time::Duration;

use offshoot_fake_model_api::{Condition, Reply, Rule};
use offshoot_real_clients::install;
use serde_json::json;

use crate::command::{Place, Table, check};
use crate::stage::Stage;

fn echo() -> Rule {
    Rule::always(Reply::text("you said {{prompt}}"))
}

#[test]
fn claude_code_is_the_runtime_where_no_other_is_named() {
    let Some(clients) = install("claude_code_is_the_runtime_where_no_other_is_named") else {
        return;
    };
    let stage = Stage::new(clients, [echo()]);
    check("claude_run", &stage.run(&["run", "say hello"]));
    let report = stage.run(&["run", "--json", "--budget-usd", "1", "say hello"]).expect_code(0);
    assert!(!report.stderr.contains("no budget"), "{}", report.stderr);
    let report = report.json();
    assert_eq!(
        (&report["data"], &report["status"]),
        (&"you said say hello".into(), &"completed".into())
    );
    assert!(report["cost"]["knownUsd"].as_f64().is_some_and(|usd| usd > 0.0), "{report}");
}

#[test]
fn the_default_budget_counts() {
    let Some(clients) = install("the_default_budget_counts") else { return };
    let stage = Stage::new(clients, [echo()]);
    stage.place.file("c.toml", "[runtimes.claude]\ndefaultUsd = 0\n");
    check("claude_no_money", &stage.run(&["run", "--config", "c.toml", "x"]));
    assert!(stage.api.requests().is_empty(), "what may cost nothing does not ask");
}

#[test]
fn one_that_is_not_logged_in_is_a_failure_with_its_reason() {
    let Some(clients) = install("one_that_is_not_logged_in_is_a_failure_with_its_reason") else {
        return;
    };
    let stage = Stage::new(clients, [echo()]);
    let mut command = stage.command(&["run", "x"]);
    command.env_remove("ANTHROPIC_API_KEY");
    check("claude_not_logged_in", &stage.place.outcome(command, &[]));
}

#[test]
fn a_rate_limit_is_waited_out() {
    let Some(clients) = install("a_rate_limit_is_waited_out") else { return };
    let slow_down = Rule::always(Reply::rate_limit(Duration::ZERO)).times(1);
    let stage = Stage::new(clients, [slow_down, echo()]);
    let outcome = stage.run(&["-q", "run", "x"]).expect_code(0);
    assert_eq!(outcome.stdout(), "you said x\n");
}

#[test]
fn a_root_outlives_an_overload_of_its_service() {
    let Some(clients) = install("a_root_outlives_an_overload_of_its_service") else { return };
    // More often than the program tries by itself, which here is three times.
    let overloaded = Rule::always(Reply::overloaded()).times(3);
    let stage = Stage::new(clients, [overloaded, Rule::always(Reply::text("recovered"))]);
    let outcome = stage.run(&["run", "x"]).expect_code(0);
    assert_eq!(outcome.stdout(), "recovered\n");
    let tree = stage.place.run(&["tree", "--json"]).json();
    let root = tree[0]["runId"].as_str().expect("the run has no id");
    let shown = stage.place.run(&["show", root]).expect_code(0);
    let shown = shown.stdout();
    assert!(shown.contains("goes on in ") && shown.contains(", attempt 2, after: "), "{shown}");
}

#[test]
fn a_session_around_the_tree_is_not_handed_on() {
    let name = "a_session_around_the_tree_is_not_handed_on";
    let Some(clients) = install(name) else { return };
    let at = |task: &str, step: usize, reply: Reply| {
        Rule::when(Condition::Prompt(task.into()), reply).and(Condition::Step(step))
    };
    let spawn = json!({"task": "inner", "wait": true});
    let look = json!({"command": "tr '\\0' '\\n' < /proc/$PPID/environ | sort"});
    let stage = Stage::new(
        clients,
        [
            at("outer", 1, Reply::call("mcp__offshoot__sessions_spawn", spawn)),
            at("outer", 2, Reply::text("{{result}}")),
            at("inner", 1, Reply::call("Bash", look)),
            at("inner", 2, Reply::text("looked")),
        ],
    );
    let config = "[agents.defaults.subagents.tools]\nallow = [\"exec\", \"spawn\"]\n";
    let config = stage.place.file("c.toml", config);
    // As a client does that has a session to talk to, beside what the program itself sets.
    let around = json!({
        "CLAUDE_CODE_MESSAGING_SOCKET": "/around", "CLAUDE_CODE_MESSAGING_TOKEN": "around",
        "CLAUDE_CODE_SESSION_ID": "around", "CLAUDE_CODE_CHILD_NOTES_DIR": "/around",
        "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS": "around",
    });
    let server = json!({"mcpServers": {"offshoot": {
        "type": "stdio", "command": env!("CARGO_BIN_EXE_offshoot"), "env": around,
        "args": ["mcp", "--config", config.to_str().expect("UTF-8")],
    }}});
    let servers = stage.place.file("servers.json", server.to_string());
    let like = stage.command(&[]);
    #[expect(clippy::disallowed_methods, reason = "a client that a test drives")]
    let mut outer = std::process::Command::new(clients.claude());
    outer.args(["--print", "--strict-mcp-config", "--allowedTools=mcp__offshoot", "outer"]);
    outer.arg(format!("--mcp-config={}", servers.display()));
    outer.current_dir(stage.place.path()).env_clear().stdin(std::process::Stdio::null());
    outer.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let outcome = outer.output().expect("the program cannot be started");
    let said = String::from_utf8_lossy(&outcome.stdout);
    assert!(said.contains("looked"), "{said} {}", String::from_utf8_lossy(&outcome.stderr));
    let looked = stage
        .api
        .conversations()
        .into_iter()
        .find(|asked| asked.prompt == "inner" && asked.step == 2);
    let environment = looked.expect("it went on").tool_results.join("\n");
    assert!(environment.contains("OFFSHOOT_RUN_ID="), "{environment}");
    assert!(environment.contains("ANTHROPIC_API_KEY="), "{environment}");
    for name in
        around.as_object().expect("a table").keys().map(String::as_str).chain(["CLAUDECODE"])
    {
        assert!(!environment.contains(&format!("{name}=")), "{name}: {environment}");
    }
}

#[test]
fn one_that_hangs_is_ended_and_leaves_nothing() {
    let Some(clients) = install("one_that_hangs_is_ended_and_leaves_nothing") else { return };
    let stage = Stage::new(clients, [Rule::always(Reply::Hang)]);
    // However far it came in that time: on a busy machine perhaps not even to its first question.
    check("claude_hangs", &stage.run(&["run", "--timeout", "12", "x"]));
    assert_eq!(stage.agents(), 0);
}

#[test]
fn a_task_for_every_piece() {
    let Some(clients) = install("a_task_for_every_piece") else { return };
    let words =
        |word: &str| Rule::when(Condition::Prompt(word.into()), Reply::text(format!("saw {word}")));
    let stage = Stage::new(clients, ["apples", "pears", "plums"].map(words));
    stage.place.file("fruit", "apples\npears\nplums\n");
    let map = ["-q", "map", "--split", "lines:1", "--merge", "concatenate", "fruit"];
    let outcome = stage.run(&[&map[..], &["--task", "what is it"]].concat()).expect_code(0);
    let found =
        ["apples", "pears", "plums"].map(|word| outcome.stdout().find(&format!("saw {word}")));
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{}", outcome.stdout());
    for request in stage.api.conversations() {
        assert!(request.prompt.contains("what is it"), "{}", request.prompt);
    }
    check("claude_map_no_task", &stage.run(&map[1..]));
}

#[test]
fn different_tasks() {
    let Some(clients) = install("different_tasks") else { return };
    let stage = Stage::new(clients, [echo()]);
    let fanout =
        ["-q", "fanout", "--task", "one", "--task", "two", "--merge", "structured", "--json"];
    let report = stage.run(&fanout).expect_code(0).json();
    assert_eq!(report["data"], serde_json::json!({"one": "you said one", "two": "you said two"}));
}

#[test]
fn what_is_wrong_is_said_before() {
    let mut table = Table::default();
    let place = Place::new();
    let run = |arguments: &[&str]| place.run_with("PATH", "/nowhere", arguments);
    table.row(&run(&["run", "--runtime", "claude", "x"]));
    place.file("c.toml", "[runtimes.claude.options]\nmaxTurn = 3\n");
    table.row(&run(&["run", "--runtime", "claude", "--config", "c.toml", "x"]));
    // A program that says which version it is, and nothing else.
    let old = place.file("bin/claude", "#!/bin/sh\necho '1.0.3 (Claude Code)'\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&old, mode).expect("the mode cannot be set");
    let path = format!("{}:/usr/bin:/bin", place.path().join("bin").display());
    table.row(&place.run_with("PATH", &path, &["-q", "run", "x"]));
    let outcome = place.run_with("PATH", &path, &["run", "--dry-run", "x"]).expect_code(0);
    let mut lines = outcome.stdout().lines().map(|line| line.split_whitespace().take(2));
    assert!(lines.any(|words| words.eq(["budget.usd", "5.0"])), "{}", outcome.stdout());
    assert!(outcome.stdout().contains("each runs: claude"), "{}", outcome.stdout());
    table.check("claude_wrong");
}

#[test]
fn a_dry_run_shows_the_command_line_that_is_started() {
    let place = Place::new();
    let program = place.file("claude", "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"argv.$$\"\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).expect("the mode cannot be set");
    let settings = format!(
        "[runtimes.claude]\ncommand = [\"nice\", \"{}\"]\ncost = \"none\"\n\
         [runtimes.claude.options]\npermissionMode = \"plan\"\nsettings = {{ a = 1 }}\n\
         [[agents.list]]\nid = \"critic\"\nruntime = \"claude\"\nmodel = \"opus\"\nthinking = \"high\"\n\
         systemPrompt = \"Be brief.\"\ntools.allow = [\"read\", \"spawn\"]\n",
        program.display()
    );
    place.file("c.toml", &settings);
    let run = ["run", "--config", "c.toml", "--agent", "critic", "--json"];
    let dry = place.run(&[&run[..], &["--dry-run", "x"]].concat()).expect_code(0).json();
    let shown: Vec<String> = serde_json::from_value(dry["plan"]["program"].clone())
        .unwrap_or_else(|error| panic!("{error}: {dry}"));
    // The program ends at once, and so does its run.
    place.run(&[&run[..], &["x"]].concat()).expect_code(1);
    let files = fs::read_dir(place.path()).expect("the folder cannot be read").flatten();
    let argv = files.map(|file| file.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("argv."))
    });
    let argv = fs::read_to_string(argv.expect("the program was started")).expect("text");
    let started: Vec<&str> =
        argv.lines().filter(|line| !line.starts_with("--max-budget-usd=")).collect();
    assert_eq!(shown[..2], ["nice".to_owned(), program.display().to_string()]);
    assert_eq!(shown.len() - 2, started.len(), "{shown:?}\n{argv}");
    for (shown, started) in shown[2..].iter().zip(started) {
        let value = shown.split_once('=').map(|(_, value)| value);
        let is_open = value.is_some_and(|value| value == "RUN_ID" || value.ends_with("_FILE"));
        let flag = |text: &str| text.split('=').next().map(str::to_owned);
        match is_open {
            true => assert_eq!(flag(shown), flag(started)),
            false => assert_eq!(shown, started),
        }
    }
    for expected in ["--model=opus", "--effort=high", "--permission-mode=plan"] {
        assert!(shown.iter().any(|argument| argument == expected), "{shown:?}");
    }
    // A task with a model of its own says so.
    let tasks = "{\"task\":\"a\"}\n{\"task\":\"b\",\"model\":\"haiku\"}\n";
    place.file("tasks", tasks);
    let fanout = ["fanout", "--config", "c.toml", "--agent", "critic", "--tasks", "tasks"];
    let out = place.run(&[&fanout[..], &["--dry-run"]].concat()).expect_code(0);
    assert!(
        out.stdout().contains("--model=opus") && out.stdout().contains("--model=haiku"),
        "{}",
        out.stdout()
    );
}
