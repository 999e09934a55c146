//! `offshoot mcp` with a client that is no run of ours: lines written by hand.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};

use offshoot_fake_model_api::{Condition, Reply, Rule};
use offshoot_real_clients::{Clients, install};
use offshoot_test_support::named_pipe;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::command::{Outcome, Place, Table};
use crate::mcp_clients::{page, setting};
use crate::stage::Stage;

/// A client that says exactly what the test wants.
pub(crate) struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
    errors: BufReader<std::process::ChildStderr>,
}

impl Client {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(&[&["mcp"], arguments].concat());
        let mut server =
            command.stdin(Stdio::piped()).spawn().expect("the program cannot be started");
        let mut client = Self {
            input: server.stdin.take().expect("the stream is not a pipe"),
            output: BufReader::new(server.stdout.take().expect("the stream is not a pipe")),
            errors: BufReader::new(server.stderr.take().expect("the stream is not a pipe")),
            server,
        };
        let who = json!({ "name": "test", "version": "1" });
        client.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who }),
        );
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("the server reads");
    }

    /// One question and its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the server answers");
        let answer: Value = serde_json::from_str(&line).expect("an answer is JSON");
        answer["result"].clone()
    }

    /// The structured content of a call.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        result["structuredContent"].clone()
    }

    /// The tools on offer.
    pub(crate) fn tools(&mut self) -> Value {
        self.ask("tools/list", &json!({}))["tools"].clone()
    }

    /// The next line on standard error.
    fn complaint(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).expect("the line cannot be read");
        line
    }

    /// Closes its end and waits for the other.
    pub(crate) fn leave(self) -> (i32, String) {
        let Self { mut server, input, mut errors, .. } = self;
        drop(input);
        let mut rest = String::new();
        errors.read_to_string(&mut rest).expect("messages are UTF-8");
        let status = server.wait().expect("the child cannot be waited for");
        (status.code().expect("it ends by itself"), rest)
    }
}

#[test]
fn a_client_that_goes_lets_its_children_finish() {
    let place = Place::new();
    let gate = place.path().join("gate");
    named_pipe(&gate);
    let mut client = Client::start(&place, &["--", "sh", "-c", "cat gate; echo done"]);
    let spawned = client.call("sessions_spawn", json!({ "task": "x" }));
    assert_eq!(spawned["status"], "accepted");
    let Client { mut server, input, mut errors, .. } = client;
    drop(input);
    let mut said = String::new();
    errors.read_line(&mut said).expect("the line cannot be read");
    assert_eq!(said, "waiting for 1 agent below this root\n");
    // It lives, or this would wait for ever.
    File::create(&gate)
        .expect("there is a reader")
        .write_all(b"it was ")
        .expect("the reader is gone");
    let status = server.wait().expect("the child cannot be waited for");
    assert_eq!(status.code(), Some(0));
    let trees = place.run(&["tree", "--json"]).json();
    assert_eq!(trees[0]["status"], "client_gone");
    assert_eq!(trees[0]["children"][0]["status"], "completed");
    let run = trees[0]["children"][0]["runId"].as_str().expect("the run has no id").to_owned();
    let shown = place.run(&["show", &run, "--json"]).expect_code(0);
    assert!(shown.stdout().contains("it was done"), "{}", shown.stdout());
}

#[test]
fn a_client_that_goes_takes_its_children_along_where_that_was_asked_for() {
    let place = Place::new();
    let arguments = ["--on-client-gone", "cascade", "--", "sleep", "1000"];
    let mut client = Client::start(&place, &arguments);
    assert_eq!(client.call("sessions_spawn", json!({ "task": "x" }))["status"], "accepted");
    assert_eq!(client.leave().0, 0);
    let trees = place.run(&["tree", "--json"]).json();
    assert_eq!(trees[0]["status"], "client_gone");
    let child = &trees[0]["children"][0];
    assert_eq!(child["status"], "cancelled");
    let run = child["runId"].as_str().expect("the run has no id").to_owned();
    let shown = place.run(&["show", &run]);
    assert!(shown.stdout().contains("cancelled  by its parent's end"), "{}", shown.stdout());
    let root = trees[0]["runId"].as_str().expect("the run has no id");
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn a_signal_stops_everything_though_the_client_stays() {
    let place = Place::new();
    let mut client = Client::start(&place, &["--", "sleep", "1000"]);
    assert_eq!(client.call("sessions_spawn", json!({ "task": "x" }))["status"], "accepted");
    let pid = i32::try_from(client.server.id()).expect("a number of a process");
    let pid = Pid::from_raw(pid).expect("not zero");
    kill_process(pid, Signal::TERM).expect("it is ours, and not reaped");
    // The input stays open: it ends all the same.
    let status = client.server.wait().expect("the child cannot be waited for");
    assert_eq!(status.code(), Some(130));
    assert!(client.complaint().starts_with("stopping everything"));
    let trees = place.run(&["tree", "--json"]).json();
    assert_eq!(trees[0]["status"], "client_gone");
    assert_eq!(trees[0]["children"][0]["status"], "cancelled");
}

#[test]
fn below_a_root_of_its_own_a_server_belongs_to_the_agent_that_starts_it() {
    let place = Place::new();
    let script = place.file(
        "inner.sh",
        r#"printf '%s\n' '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
             '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
             '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sessions_status","arguments":{}}}' > lines
           env -i "$OFFSHOOT" --data-dir elsewhere mcp --max-depth 9 < lines | tail -n 1"#,
    );
    let script = script.to_str().expect("a plain name");
    let mut client = Client::start(&place, &["--", "sh", script]);
    let spawned = client.call("sessions_spawn", json!({ "task": "x", "wait": true }));
    let printed = spawned["outcome"]["data"].as_str().expect("what it printed");
    let inner: Value = serde_json::from_str(printed).expect("an answer");
    let status = &inner["result"]["structuredContent"];
    assert_eq!(status["runId"], spawned["runId"]);
    assert_eq!((&status["depth"], &status["maxDepth"]), (&1.into(), &3.into()));
    assert_eq!(client.leave().0, 0);
    assert!(!place.path().join("elsewhere").exists());
}

#[test]
fn what_is_wrong_is_said_before_a_client_is_served() {
    let mut table = Table::default();
    let place = Place::new();
    table.row(&place.run(&["mcp", "--", "no-such-program"]));
    table.row(&place.run(&["mcp", "--max-depth", "99", "--", "cat"]));
    table.row(&place.run(&["mcp", "--agent", "no such: name", "--", "cat"]));
    table.check("mcp_wrong");
}

#[test]
fn a_tree_that_cannot_be_opened_is_told_to_the_model() {
    let place = Place::new();
    place.file("file", "in the way");
    let mut client = Client::start(&place, &["--data-dir", "file/below", "--", "cat"]);
    for _ in 0..2 {
        let answer = client.call("sessions_status", json!({}));
        assert_eq!(answer["code"], "failed", "{answer}");
        let said = answer["message"].as_str().expect("the message is not text");
        assert!(said.contains("file/below"), "{said}");
    }
    assert_eq!(client.leave().0, 0);
}

#[test]
fn claude_code_of_the_users_own_has_children_of_its_kind() {
    let test = "claude_code_of_the_users_own_has_children_of_its_kind";
    let Some(clients) = install(test) else { return };
    let prompt = |words: &str, reply| Rule::when(Condition::Prompt(words.into()), reply);
    let spawn = "mcp__offshoot__sessions_spawn";
    let arguments = json!({ "task": "name a fruit", "wait": true });
    let stage = Stage::new(
        clients,
        [
            prompt("go and ask", Reply::call(spawn, arguments)).and(Condition::Step(1)),
            prompt("go and ask", Reply::text("it said {{result:/outcome/data}}")),
            prompt("name a fruit", Reply::text("fig")),
        ],
    );
    let claude = |arguments: &[&str]| claude(clients, &stage, arguments);
    claude(&["mcp", "add-json", "offshoot", &server(&["mcp", "--budget-usd", "5"])]).expect_code(0);
    let page = page();
    let approved: Vec<_> = setting(&page, "Claude Code").split(' ').collect();
    let outcome = claude(&[&["-p", "go and ask"], &approved[..]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "it said fig\n");
    let trees = stage.place.run(&["tree", "--json"]).json();
    let key = trees[0]["sessionKey"].as_str().expect("a key");
    assert!(key.starts_with("agent:main:mcp:"), "{key}");
    assert_eq!(trees[0]["status"], "client_gone");
    assert_eq!(trees[0]["children"][0]["status"], "completed");
    assert_eq!(stage.agents(), 0);
}

#[test]
fn claude_code_asks_for_permission_and_the_rights_of_the_session_answer() {
    let test = "claude_code_asks_for_permission_and_the_rights_of_the_session_answer";
    let Some(clients) = install(test) else { return };
    let touch = Reply::call("Bash", json!({ "command": "touch made", "description": "make it" }));
    let rules =
        [Rule::when(Condition::Step(1), touch), Rule::always(Reply::text("it said {{result}}"))];
    let stage = Stage::new(clients, rules);
    stage
        .place
        .file("strict.toml", "[[agents.list]]\nid = \"main\"\ntools = { deny = [\"exec\"] }\n");
    let claude = |arguments: &[&str]| claude(clients, &stage, arguments);
    let lax = server(&["mcp", "--permission-tool"]);
    let strict = server(&["mcp", "--permission-tool", "--config", "strict.toml"]);
    claude(&["mcp", "add-json", "lax", &lax]).expect_code(0);
    claude(&["mcp", "add-json", "strict", &strict]).expect_code(0);
    let made = stage.place.path().join("made");
    let asks = |server: &str| {
        let tool = format!("mcp__{server}__permission");
        claude(&["-p", "make it", "--permission-prompt-tool", &tool]).expect_code(0)
    };
    let denied = asks("strict");
    assert!(denied.stdout().contains("no right to use Bash"), "{}", denied.stdout());
    assert!(!made.exists());
    asks("lax");
    assert!(made.exists());
}

/// Claude Code as its user starts it.
fn claude(clients: &Clients, stage: &Stage, arguments: &[&str]) -> Outcome {
    let ours = stage.command(&[]);
    #[expect(clippy::disallowed_methods, reason = "the user starts it, not we")]
    let mut command = std::process::Command::new(clients.claude());
    let variables = ours.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.env_clear().envs(variables).current_dir(stage.place.path()).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    stage.place.outcome(command, &[])
}

/// The entry of a server in its configuration.
fn server(arguments: &[&str]) -> String {
    let entry = json!({
        "type": "stdio", "command": env!("CARGO_BIN_EXE_offshoot"), "args": arguments,
        // Else its tools may stand behind a search, and the first prompt does not wait for them.
        "alwaysLoad": true,
    });
    entry.to_string()
}

#[test]
fn a_model_has_agents_merge_what_its_children_say() {
    let place = Place::new();
    place.file(
        "home/.config/offshoot/config.toml",
        "[[agents.list]]\nid = \"pair\"\n\
         command = [\"sh\", \"-c\", \"grep -v '^.Result' | grep . | paste -sd+\"]\n\
         [[agents.list]]\nid = \"judge\"\n\
         command = [\"echo\", \"{\\\"winner\\\": 2, \\\"reason\\\": \\\"it is even\\\"}\"]\n\
         [agents.defaults.subagents]\nallowAgents = [\"*\"]\n",
    );
    let mut client = Client::start(&place, &["--", "cat"]);
    let many = json!({
        "tasks": [{ "task": "1" }, { "task": "2" }, { "task": "3" }],
        "wait": true, "merge": { "strategy": "reduce-with=pair" },
    });
    let many = client.call("sessions_spawn_many", many);
    assert_eq!(many["merged"]["data"], "1+2+3", "{many}");
    let best = client.call("sessions_merge", json!({ "strategy": "best-of=judge" }));
    assert_eq!(best["data"], "2", "{best}");
    assert_eq!(best["chosen"]["reason"], "it is even", "{best}");
    let again = client.call("sessions_merge", json!({ "strategy": "summarize-with=pair" }));
    assert_eq!(again["data"], "1+2+3", "{again}");
    let unknown = client.call("sessions_merge", json!({ "strategy": "summarize-with=nothing" }));
    assert!(unknown.to_string().contains("nothing"), "{unknown}");
    assert_eq!(client.leave().0, 0);
    place.run(&["audit", "last"]).expect_code(0);
}
