//! The real program against a scripted service.

#[path = "../common/mod.rs"]
mod common;
mod turns;

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::Place;
use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
use offshoot_model::{BudgetGrant, Grant, InputRange, MicroUsd, Reason, Rights};
use offshoot_real_clients::{Clients, install};
use offshoot_runtime::{
    Finished, Input, Launch, Output, Pass, RunEvent, Stop, StopHandle, UsageProbe, check_contract,
};
use offshoot_runtime_claude::{ClaudeOptions, OwnServer};
use offshoot_test_support::{Watched, named_pipe};
use serde_json::json;

/// The program, the service and a place for both.
struct Stage {
    api: FakeModelApi,
    place: Place,
}

impl Stage {
    fn new(clients: &Clients, rules: impl IntoIterator<Item = Rule>) -> Self {
        Self::with(clients, rules, |_| {})
    }

    fn with(
        clients: &Clients,
        rules: impl IntoIterator<Item = Rule>,
        change: impl FnOnce(&mut ClaudeOptions),
    ) -> Self {
        let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
        let environment = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("ANTHROPIC_BASE_URL", &api.url()),
            ("ANTHROPIC_API_KEY", "none"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
            ("DISABLE_TELEMETRY", "1"),
        ];
        let mut options = ClaudeOptions {
            command: clients.claude().to_str().expect("UTF-8").to_owned(),
            environment: environment.map(|(name, value)| (name.into(), value.into())).into(),
            ..ClaudeOptions::default()
        };
        change(&mut options);
        Self { api, place: Place::new(options) }
    }

    /// Runs one task, and answers how it came out.
    async fn reason(&self, task: &str) -> Reason {
        self.place.run(self.place.launch(task)).await.0.reason
    }

    /// Runs one launch that answers.
    async fn says(&self, launch: Launch) -> String {
        match self.place.run(launch).await.0 {
            finished if !finished.reason.status().is_success() => panic!("{finished:?}"),
            finished => match finished.output {
                Output::Text(text) => text.to_string(),
                other => panic!("{other:?}"),
            },
        }
    }

    fn granted(&self, task: &str, change: impl FnOnce(&mut Grant)) -> Launch {
        let mut launch = self.place.launch(task);
        let mut grant = (*launch.grant).clone();
        change(&mut grant);
        launch.grant = Arc::new(grant);
        launch
    }
}

fn only(rights: &[&str]) -> Rights {
    Rights { allow: Some(rights.iter().map(ToString::to_string).collect()), ..Rights::all() }
}

fn hang() -> Rule {
    Rule::when(Condition::Prompt("hang".into()), Reply::Hang)
}

fn echo() -> Rule {
    Rule::always(Reply::text("you said {{prompt}}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_runtime_passes_the_contract() {
    let Some(clients) = install("every_runtime_passes_the_contract") else { return };
    let stage = Stage::new(clients, [hang(), echo()]);
    let (answers, hangs) = (|| stage.place.launch("answer"), || stage.place.launch("hang"));
    let broken = check_contract(&stage.place.claude, answers, hangs).await;
    assert_eq!(broken, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pinned_version_is_known_to_work() {
    let Some(clients) = install("the_pinned_version_is_known_to_work") else { return };
    let stage = Stage::new(clients, []);
    let found = stage.place.claude.check(stage.place.folder.path()).await;
    assert_eq!(found.expect("the program is not installed").path, clients.claude());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_task_arrives_as_it_is() {
    let Some(clients) = install("the_task_arrives_as_it_is") else { return };
    let stage = Stage::new(clients, [echo()]);
    let secret = stage.place.folder.path().join("secret");
    std::fs::write(&secret, "SECRET").expect("a file");
    let task = format!("say \"ä\"\n\n--print -p @{} \u{1f600}", secret.display());
    let launch = stage.granted(&task, |grant| grant.tools = only(&[]).into());
    assert_eq!(stage.says(launch).await, format!("you said {task}"));
    let asked =
        stage.api.requests().iter().map(|request| request.body.to_string()).collect::<String>();
    assert!(!asked.contains("SECRET"), "a file that a task names is not read for it");
    // What looks like one of the program's own commands is a task.
    assert_eq!(stage.says(stage.place.launch("/compact")).await, "you said  /compact");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_of_the_input_arrives() {
    let Some(clients) = install("a_piece_of_the_input_arrives") else { return };
    let stage = Stage::new(clients, [echo()]);
    let path = stage.place.folder.path().join("input");
    std::fs::write(&path, "0123456789".repeat(20_000)).expect("a file");
    let piece = |offset, length| {
        let path = Arc::new(path.clone());
        let mut launch = stage.place.launch("count");
        launch.input = Input::Piece(InputRange { path, offset, length, header: 0, hash: None });
        launch
    };
    assert_eq!(stage.says(piece(3, 4)).await, "you said count\n\n3456");
    let large = piece(5, 150_000);
    let file = large.run_folder.join("piece");
    let said = stage.says(large).await;
    assert!(said.contains(&format!("(150000 bytes):\nRead {}\n", file.display())), "{said}");
    assert!(std::fs::read_to_string(file).is_ok_and(|piece| piece.starts_with("56789")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_the_tools_on_offer() {
    let Some(clients) = install("rights_are_the_tools_on_offer") else { return };
    let stage = Stage::new(clients, [echo()]);
    let offered = async |rights: Rights| {
        stage.says(stage.granted("x", |grant| grant.tools = rights.into())).await;
        let mut tools = stage.api.conversations().pop().expect("it asked").tools;
        tools.sort_unstable();
        tools
    };
    assert_eq!(offered(only(&["read", "search"])).await, ["Glob", "Grep", "Read"]);
    assert_eq!(offered(only(&[])).await, [""; 0]);
    let mut no_exec = Rights::all();
    no_exec.deny.insert("exec".into());
    let left = offered(no_exec).await;
    assert!(left.contains(&"Edit".into()) && !left.contains(&"Bash".into()), "{left:?}");
    let all = offered(Rights::all()).await;
    assert!(all.contains(&"Bash".into()), "{all:?}");
    for inner in ["Agent", "Task", "Workflow", "SendMessage", "ListAgents", "ScheduleWakeup"] {
        assert!(!all.contains(&inner.to_owned()), "{all:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_tool_works_and_another_does_not() {
    let Some(clients) = install("a_granted_tool_works_and_another_does_not") else { return };
    let call = Reply::call("Bash", json!({"command": "echo $((40 + 2)) ${OFFSHOOT_DEPTH}"}));
    let rules = [Rule::when(Condition::Step(1), call), Rule::always(Reply::text("{{result}}"))];
    let stage = Stage::new(clients, rules);
    let launch = |rights: Rights| stage.granted("x", |grant| grant.tools = rights.into());
    assert_eq!(stage.says(launch(only(&["exec"]))).await, "42 1");
    let refused = stage.says(launch(only(&["read"]))).await;
    assert!(refused.contains("No such tool available: Bash"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn use_and_cost_are_told() {
    let Some(clients) = install("use_and_cost_are_told") else { return };
    let stage = Stage::new(clients, [Rule::always(Reply::text("done"))]);
    let (finished, events) = stage.place.run(stage.place.launch("x")).await;
    assert_eq!(finished.usage.expect("no usage was reported").total().known(), Some(15));
    assert!(
        finished.cost.expect("no cost was reported").known_usd > MicroUsd::default(),
        "{:?}",
        finished.cost
    );
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            RunEvent::Used { usage, .. } => usage.total().known(),
            _ => None,
        })
        .collect();
    let [begins, ends, rest @ ..] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*begins, *ends), (10, 15), "when a call begins, and when it ends");
    assert!(rest.iter().all(|tokens| *tokens == 15), "each call counts once: {told:?}");
    assert!(events.contains(&RunEvent::Progress("done".into())), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_reasons() {
    let Some(clients) = install("limits_are_reasons") else { return };
    let call = Reply::call("Bash", json!({"command": "true"}));
    let stage = Stage::with(clients, [Rule::always(call)], |options| options.max_turns = Some(3));
    assert_eq!(stage.reason("x").await, Reason::TurnLimit);
    let usd = Some(MicroUsd::from_micros(200));
    let launch = stage.granted("x", |grant| grant.budget = BudgetGrant { tokens: None, usd });
    let (finished, _) = stage.place.run(launch).await;
    assert_eq!(finished.reason, Reason::Budget { unit: "usd".into(), request: None });
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_logged_in_has_failed() {
    let Some(clients) = install("one_that_is_not_logged_in_has_failed") else { return };
    let stage = Stage::with(clients, [echo()], |options| {
        options.environment.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
    });
    let (finished, _) = stage.place.run(stage.place.launch("x")).await;
    let message = "Not logged in · Please run /login".to_owned();
    assert_eq!(finished.reason, Reason::RuntimeError { message, retryable: false });
    assert_eq!(finished.output, Output::None, "what went wrong is not the answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn pressure_passes_or_is_worth_another_attempt() {
    let Some(clients) = install("pressure_passes_or_is_worth_another_attempt") else { return };
    let limit = Reply::rate_limit(Duration::ZERO);
    let stage = Stage::new(clients, [Rule::always(limit).times(1), echo()]);
    let (finished, events) = stage.place.run(stage.place.launch("x")).await;
    assert_eq!(finished.output, Output::Text("you said x".into()));
    let waits = |event: &RunEvent| matches!(event, RunEvent::BacksOff { why, .. } if why.starts_with("rate_limit; retry 1 of"));
    assert!(events.iter().any(waits), "{events:?}");
    stage.api.set_script(Script::new([Rule::always(Reply::overloaded())]));
    assert!(stage.reason("x").await.is_retryable());
    stage.api.set_script(Script::new([Rule::always(Reply::unauthorized())]));
    let reason = stage.reason("x").await;
    assert!(reason.is_runtime_fault() && !reason.is_retryable(), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_no_good_ends_it_at_once() {
    let Some(clients) = install("a_key_that_is_no_good_ends_it_at_once") else { return };
    let stage = Stage::with(clients, [Rule::always(Reply::unauthorized())], |options| {
        options.environment.retain(|(name, _)| name != "CLAUDE_CODE_MAX_RETRIES");
    });
    let (finished, _) = stage.place.run(stage.place.launch("x")).await;
    let message = "the service refuses the key or the login (authentication_failed)".to_owned();
    assert_eq!(finished.reason, Reason::RuntimeError { message, retryable: false });
    assert_eq!(exactly(&finished), (0, 0), "what was refused used nothing");
    let asked =
        stage.api.requests().iter().filter(|request| request.path.contains("messages")).count();
    assert!(asked <= 4, "it asked {asked} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_stopped_takes_its_tools_along() {
    let Some(clients) = install("one_that_is_stopped_takes_its_tools_along") else { return };
    // Opening the pipe to read waits for the tool to open it to write.
    let call = Reply::call("Bash", json!({"command": "echo $$ > pipe; exec sleep 600"}));
    let stage = Stage::new(clients, [Rule::always(call)]);
    let pipe = stage.place.folder.path().join("project/pipe");
    named_pipe(&pipe);
    let launch = stage.granted("x", |grant| grant.tools = only(&["exec"]).into());
    let (handle, stop) = StopHandle::new();
    let when_it_runs = async {
        let pid = tokio::task::spawn_blocking(move || std::fs::read_to_string(pipe)).await;
        let pid = pid.expect("reading does not panic").expect("the tool writes");
        let tool = Watched::new(pid.trim().parse().expect("a number"));
        assert!(!tool.is_gone());
        handle.stop(Stop::Soft { grace: Duration::from_secs(5) });
        tool
    };
    let ((finished, events), tool) =
        tokio::join!(stage.place.run_until(launch, stop), when_it_runs);
    assert_eq!(finished.reason.code(), "cancelled");
    assert_eq!(exactly(&finished), (15, 140), "of the call that asked for the tool");
    let Some(RunEvent::Started(Some(process))) = events.first() else { panic!("{events:?}") };
    assert!(Watched::new(process.pid).is_gone());
    assert!(tool.is_gone_within(Duration::from_secs(5)));
}

/// Tokens and millionths of a dollar of a run of which everything is known.
fn exactly(finished: &Finished) -> (u64, u64) {
    let (usage, cost) =
        finished.usage.zip(finished.cost).expect("no usage or no cost was reported");
    assert_eq!(cost.unknown_runs, 0, "{cost:?}");
    let tokens = usage.total().known();
    (tokens.unwrap_or_else(|| panic!("{usage:?}")), cost.known_usd.as_micros())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_stopped_in_a_call_of_the_model_tells_what_it_cost() {
    let name = "one_that_is_stopped_in_a_call_of_the_model_tells_what_it_cost";
    let Some(clients) = install(name) else { return };
    let call = Reply::call("Bash", json!({"command": "true"}));
    let rules = [Rule::when(Condition::Step(1), call), Rule::always(Reply::Hang)];
    let stage = Stage::new(clients, rules);
    let (handle, stop) = StopHandle::new();
    let when_it_hangs = async {
        stage.api.asked_for_step(2).await;
        handle.stop(Stop::Soft { grace: Duration::from_secs(20) });
    };
    let run = stage.place.run_until(stage.place.launch("x"), stop);
    let ((finished, _), ()) = tokio::join!(run, when_it_hangs);
    assert_eq!(finished.reason.code(), "cancelled");
    assert_eq!(exactly(&finished), (15, 140));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_has_cost_is_told_while_it_lasts() {
    let Some(clients) = install("what_a_turn_has_cost_is_told_while_it_lasts") else { return };
    // Opening the pipe to write waits for the other side, and so does the tool.
    let call = Reply::call("Bash", json!({"command": "cat pipe"}));
    let rules = [Rule::when(Condition::Step(1), call), Rule::always(Reply::text("{{result}}"))];
    let stage = Stage::new(clients, rules);
    let pipe = stage.place.folder.path().join("project/pipe");
    named_pipe(&pipe);
    let launch = stage.granted("x", |grant| grant.tools = only(&["exec"]).into());
    let (probe, told) = (UsageProbe::default(), Arc::new(Mutex::new(0)));
    let (_handle, stop) = StopHandle::new();
    let last = Arc::clone(&told);
    let listen = move |event: &RunEvent| {
        if let RunEvent::Used { cost, .. } = event {
            *last.lock().expect("no holder panics") = cost.known_usd.as_micros();
        }
    };
    let ask = async {
        let opened = tokio::task::spawn_blocking(move || std::fs::File::create(pipe)).await;
        let mut pipe = opened.expect("opening does not panic").expect("the tool reads");
        probe.ask().await;
        let cost = *told.lock().expect("no holder panics");
        std::io::Write::write_all(&mut pipe, b"on").expect("the tool reads");
        cost
    };
    let run = stage.place.probed(launch, stop, &probe, listen);
    let ((finished, _), cost) = tokio::join!(run, ask);
    assert_eq!(cost, 140, "of the call that asked for the tool, which is still at work");
    assert_eq!(exactly(&finished), (30, 280));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_the_form_that_was_asked_for() {
    let Some(clients) = install("an_answer_has_the_form_that_was_asked_for") else { return };
    let rules = [Rule::always(Reply::call("StructuredOutput", json!({"n": 3})))];
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let stage = Stage::with(clients, rules, |options| {
        options.json_schema = Some(schema.to_string());
    });
    match stage.place.run(stage.place.launch("x")).await.0.output {
        Output::Json(json) => assert_eq!(json.as_str(), r#"{"n":3}"#),
        other => panic!("{other:?}"),
    }
}

/// A server of one tool, in a few lines without a library. What it does not know it says so.
const SERVER: &str = r#"
import { createInterface } from "node:readline";
const answers = {
    initialize: ({ protocolVersion }) => ({
        protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "offshoot", version: "1" },
    }),
    "tools/list": () => ({
        tools: [{ name: "whoami", description: "tells", inputSchema: { type: "object" } }],
    }),
    "tools/call": () => ({
        content: [{ type: "text", text: `ticket ${process.env.OFFSHOOT_TICKET}` }],
    }),
};
for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const result = answers[method]?.(params);
    const error = { code: -32601, message: method };
    console.log(JSON.stringify({ jsonrpc: "2.0", id, ...(result ? { result } : { error }) }));
}
"#;

fn own_server(command: &str, args: &[&str]) -> OwnServer {
    let args = args.iter().map(ToString::to_string).collect();
    OwnServer { command: command.into(), args }
}

fn with_pass(launch: Launch) -> Launch {
    let pass = Pass { socket: Arc::new("/nowhere".into()), ticket: "t-123".into() };
    Launch { pass: Some(pass), ..launch }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_tools_are_attached_and_the_ticket_stays_in_its_file() {
    let name = "our_own_tools_are_attached_and_the_ticket_stays_in_its_file";
    let Some(clients) = install(name) else { return };
    let folder = tempfile::tempdir().expect("a folder for the server");
    let script = folder.path().join("whoami.mjs");
    std::fs::write(&script, SERVER).expect("a script");
    let rules = [
        Rule::when(Condition::Step(1), Reply::call("mcp__offshoot__whoami", json!({}))),
        Rule::always(Reply::text("{{result}}")),
    ];
    let server = own_server("node", &[script.to_str().expect("UTF-8")]);
    let stage = Stage::with(clients, rules, |options| options.own_server = Some(server));
    let launch = with_pass(stage.granted("x", |grant| grant.tools = only(&["read"]).into()));
    let file = launch.run_folder.join("servers.json");
    let at_start = file.clone();
    let look = move |event: &RunEvent| {
        if let RunEvent::Started(Some(process)) = event {
            let mode = at_start.metadata().expect("the file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let argv = std::fs::read(format!("/proc/{}/cmdline", process.pid))
                .expect("the file cannot be read");
            assert!(!String::from_utf8_lossy(&argv).contains("t-123"));
            // It may start no program, so only the server gets it.
            let env = std::fs::read(format!("/proc/{}/environ", process.pid))
                .expect("the file cannot be read");
            assert!(!String::from_utf8_lossy(&env).contains("t-123"));
        }
    };
    let (finished, _) = stage.place.listen(launch, StopHandle::new().1, look).await;
    assert_eq!(finished.output, Output::Text("ticket t-123".into()), "{:?}", finished.reason);
    assert!(!file.exists(), "it is of no use after the run");
    let first = &stage.api.conversations()[0];
    assert_eq!(first.tools, ["Read", "mcp__offshoot__whoami"]);
    assert!(first.system.contains("You are a sub-agent"), "{}", first.system);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_our_own_tools_a_run_that_needs_them_fails() {
    let Some(clients) = install("without_our_own_tools_a_run_that_needs_them_fails") else {
        return;
    };
    let server = own_server("false", &[]);
    let stage = Stage::with(clients, [echo()], |options| options.own_server = Some(server));
    let message = "the tools for sub-agents did not come up: failed".to_owned();
    let (finished, _) = stage.place.run(with_pass(stage.place.launch("x"))).await;
    assert_eq!(finished.reason, Reason::RuntimeError { message, retryable: false });
    assert_eq!(stage.reason("x").await.code(), "completed", "without a pass it needs none");
}
