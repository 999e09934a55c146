//! Agents whose requests to models go through the meter: the real Claude Code before a service that answers by rules.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use offshoot_fake_model_api::{Break, Condition, FakeModelApi, Recorded, Reply, Rule, Script};
use offshoot_real_clients::install;
use offshoot_test_support::named_pipe;
use serde_json::Value;

use crate::command::{Outcome, Place};
use crate::stage::Stage;
use crate::walls::followed_until;

/// The key of the operator, which no agent may see.
pub(crate) const KEY: &str = "sk-operator-7f3a9c";

/// The model that the tests ask, and its prices: a token read costs 3 and one written 15 millionths of a dollar.
const CONFIG: &str = r#"
[runtimes.claude]
keyEnv = "OPERATOR_KEY"
env = ["OPERATOR_*", "ANTHROPIC_*"]

[[agents.list]]
id = "main"
model = "priced-1"

[prices.priced-1]
inputPerMillion = 3
outputPerMillion = 15
maxOutputTokens = 32000
contextWindowTokens = 200000
"#;

/// A program that asks a model twice, and for a longer answer the second time.
const AGENT: &str = r#"
import json, os, urllib.error, urllib.request
body = {"model": "priced-1", "messages": [{"role": "user", "content": "greet"}]}
headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
for limit in (100, 5000):
    body["max_tokens"] = limit
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"], flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
        raise SystemExit(1)
"#;

fn stage(name: &str, rules: impl IntoIterator<Item = Rule>) -> Option<Stage> {
    let stage = Stage::new(install(name)?, rules);
    stage.place.file("c.toml", CONFIG);
    Some(stage)
}

/// The command, with the operator's key under a name of its own.
fn command(stage: &Stage, arguments: &[&str]) -> Command {
    let arguments = [&["--config", "c.toml"], arguments].concat();
    let mut command = stage.command(&arguments);
    command.env_remove("ANTHROPIC_API_KEY").env("OPERATOR_KEY", KEY);
    command
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    stage.place.outcome(command(stage, arguments), &[])
}

/// The prices alone.
pub(crate) fn prices() -> &'static str {
    &CONFIG[CONFIG.find("[prices").expect("it has prices")..]
}

pub(crate) fn events(place: &Place) -> Vec<Value> {
    let events = place.run(&["events", "last", "--json"]).expect_code(0);
    let event = |line: &str| serde_json::from_str(line).expect("a line is JSON");
    events.stdout().lines().map(event).collect()
}

pub(crate) fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    let kinds = events.iter().map(|event| &event["kind"]);
    kinds.filter(|found| found["type"] == kind).collect()
}

/// True if a file below a folder holds this text.
fn holds(folder: &Path, text: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_symlink() {
            continue;
        }
        let found = match path.is_dir() {
            true => holds(&path, text),
            false => {
                let bytes = fs::read(&path).unwrap_or_default();
                let has = bytes.windows(text.len()).any(|part| part == text.as_bytes());
                has.then_some(path)
            }
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[test]
fn what_claude_uses_is_counted_request_by_request() {
    let rules = [Rule::always(Reply::text("hello"))];
    let Some(stage) = stage("what_claude_uses_is_counted_request_by_request", rules) else {
        return;
    };
    let outcome = run(&stage, &["-q", "run", "--budget-usd", "2", "--runtime", "claude", "greet"]);
    assert_eq!(outcome.expect_code(0).stdout(), "hello\n");
    let events = events(&stage.place);
    let [reserved, settled] =
        ["request_reserved", "request_settled"].map(|kind| of_kind(&events, kind));
    assert!(!reserved.is_empty());
    assert_eq!(reserved.len(), settled.len(), "each is settled once");
    assert!(settled.iter().all(|it| it["ending"] == "answered"), "{settled:?}");
    // The service says 10 tokens read and 5 written for each answer.
    let metered: f64 =
        settled.iter().map(|it| it["cost"]["meteredUsd"].as_f64().unwrap_or(0.0)).sum();
    assert!((metered - 0.000105 * settled.len() as f64).abs() < 1e-9, "{settled:?}");
    let shown = stage.place.run(&["show", "last"]).expect_code(0);
    assert!(shown.stdout().contains(" metered"), "{}", shown.stdout());
    assert!(shown.stdout().contains("requests  to models: "), "{}", shown.stdout());
    stage.place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn the_key_is_nowhere() {
    // The agent prints its environment and that of everything above it that it may read.
    let look =
        "env; cat /proc/self/environ /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'\n";
    let call = Reply::call("Bash", serde_json::json!({"command": "sh look.sh"}));
    let rules = [
        Rule::when(Condition::Result(String::new()), Reply::text("{{result}}")),
        Rule::always(call),
    ];
    let Some(stage) = stage("the_key_is_nowhere", rules) else { return };
    stage.place.file("look.sh", look);
    let rights = "model = \"priced-1\"\ntools = { allow = [\"exec\"] }";
    stage.place.file("c.toml", CONFIG.replace("model = \"priced-1\"", rights));
    let mut command =
        command(&stage, &["run", "--budget-usd", "2", "--runtime", "claude", "look around"]);
    command.env("OFFSHOOT_LOG", "trace");
    let outcome = stage.place.outcome(command, &[]).expect_code(0);
    let said = outcome.stdout();
    assert!(said.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:"), "{said}");
    for text in [said, &outcome.stderr] {
        assert!(!text.contains(KEY), "{text}");
    }
    // What the service was sent has it, and nothing else of this tree.
    assert!(stage.api.requests().iter().all(|request| request.api_key.as_deref() == Some(KEY)));
    let logs = stage.place.run(&["logs", "last"]).expect_code(0);
    assert!(!logs.stdout().contains(KEY));
    assert_eq!(holds(&stage.place.path(), KEY), None, "no file has it");
}

#[test]
fn a_request_that_cannot_be_paid_never_leaves() {
    let rules = [Rule::always(Reply::text("hello"))];
    let Some(stage) = stage("a_request_that_cannot_be_paid_never_leaves", rules) else { return };
    // Less than the system prompt alone may cost.
    let arguments = ["run", "--budget-usd", "0.001", "--runtime", "claude", "greet"];
    let outcome = run(&stage, &arguments).expect_code(4);
    let messages = stage.api.requests().iter().filter(|it| it.is_message()).count();
    assert_eq!(messages, 0, "{}", outcome.text());
    let events = events(&stage.place);
    assert_eq!(of_kind(&events, "request_reserved").len(), 0);
    assert!(outcome.stderr.contains("budget"), "{}", outcome.text());
    stage.place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn unknown_cost_is_not_free() {
    let rules = [Rule::always(Reply::text("hello"))];
    let Some(stage) = stage("unknown_cost_is_not_free", rules) else { return };
    stage.place.file("c.toml", CONFIG.replace("model = \"priced-1\"", "model = \"other-1\""));
    let arguments = ["run", "--budget-usd", "2", "--runtime", "claude", "greet"];
    let outcome = run(&stage, &arguments);
    assert_ne!(outcome.code, 0);
    assert!(outcome.text().contains("cost_unbounded"), "{}", outcome.text());
    assert!(outcome.text().contains("the model other-1 has no price"), "{}", outcome.text());
    assert_eq!(stage.api.requests().iter().filter(|it| it.is_message()).count(), 0);
}

/// Asks the meter at this address for a message, from the process of the test. Returns the whole answer.
pub(crate) fn ask_as_a_stranger(address: &str, ticket: &str) -> String {
    let body = r#"{"model":"m","max_tokens":1,"messages":[]}"#;
    let mut connection = TcpStream::connect(address).expect("the meter listens");
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-api-key: {ticket}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).expect("it is read");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer is text");
    answer
}

/// A program that is no run of the tree has the address and a ticket, and hears no.
#[test]
fn a_strangers_request_is_refused() {
    let tell = r#"echo "$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY" > told; cat hold"#;
    let place = Place::new();
    place.file("c.toml", "[runtimes.exec]\nmeter = \"on\"\n");
    for name in ["told", "hold"] {
        named_pipe(place.path().join(name));
    }
    let mut command =
        place.command(&["--config", "c.toml", "-q", "run", "x", "--", "sh", "-c", tell]);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let mut tree = command.spawn().expect("the program was built for this test");
    let told = fs::read_to_string(place.path().join("told")).expect("the agent tells");
    let (address, ticket) = told.trim().split_once(' ').expect("two words");
    assert_ne!(ticket, KEY);
    let address = address.strip_prefix("http://").expect("an address of this machine");
    let ask = |ticket: &str| ask_as_a_stranger(address, ticket);
    for (ticket, why) in [
        (ticket, "the process that sent it does not belong to the agent of its ticket"),
        (
            "offshoot-meter-00000000000000000000000000000000",
            "its ticket is that of no running agent",
        ),
        (KEY, "its ticket is that of no running agent"),
    ] {
        let answer = ask(ticket);
        assert!(answer.contains("unknown_caller") && answer.contains(why), "{answer}");
    }
    fs::write(place.path().join("hold"), "").expect("the agent waits for its end");
    assert!(tree.wait().expect("it ends").success());
    let events = events(&place);
    assert_eq!(of_kind(&events, "request_reserved").len(), 0);
}

#[test]
fn a_subscription_passes_unchanged() {
    let rules = [Rule::always(Reply::text("hello"))];
    let Some(stage) = stage("a_subscription_passes_unchanged", rules) else { return };
    stage.place.file("c.toml", CONFIG.replace("keyEnv = \"OPERATOR_KEY\"", "meter = \"on\""));
    let mut command = command(&stage, &["-q", "run", "--runtime", "claude", "greet"]);
    command.env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy");
    let outcome = stage.place.outcome(command, &[]);
    assert_eq!(outcome.expect_code(0).stdout(), "hello\n");
    let messages = stage.api.requests();
    let mut messages = messages.iter().filter(|request| request.is_message());
    let shows = |it: &Recorded| it.authorization.as_deref() == Some("Bearer sk-ant-oat01-dummy");
    assert!(messages.all(shows));
    let events = events(&stage.place);
    assert!(!of_kind(&events, "request_settled").is_empty());
}

#[test]
fn a_broken_stream_is_charged() {
    let broken = Reply::Broken(Break::Cut);
    let rules = [Rule::always(broken)];
    let Some(stage) = stage("a_broken_stream_is_charged", rules) else { return };
    let arguments = ["-q", "run", "--budget-usd", "2", "--runtime", "claude", "greet"];
    let outcome = run(&stage, &arguments);
    assert_ne!(outcome.code, 0, "{}", outcome.text());
    let events = events(&stage.place);
    let settled = of_kind(&events, "request_settled");
    let broken: Vec<_> = settled.iter().filter(|it| it["ending"] == "broken").collect();
    assert!(!broken.is_empty(), "{settled:?}");
    for it in broken {
        let reserved = of_kind(&events, "request_reserved");
        let of_it = reserved.iter().find(|reserved| reserved["request"] == it["request"]);
        let most = of_it.expect("it was reserved")["micro_usd"].as_f64().expect("an amount") / 1e6;
        let charged = it["cost"]["estimatedUsd"].as_f64().expect("it costs something");
        assert!(it["cost"].get("meteredUsd").is_none(), "no bound is counted: {it}");
        // What was read is known by then; what would have been written is not, and costs its bound.
        assert!(charged > 0.5 * most && charged <= most, "{charged} of {most}");
    }
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// Under a key the program says nothing of quotas: the headers of the answer tell.
#[test]
fn a_wall_is_seen_on_the_way() {
    let wall = Reply::wall(Duration::from_secs(2));
    let rules = [
        Rule::when(Condition::Prompt("two".into()), wall).times(1),
        Rule::always(Reply::text("read")),
    ];
    let Some(stage) = stage("a_wall_is_seen_on_the_way", rules) else { return };
    stage.place.file("in", "one\ntwo\nthree\n");
    let map = [
        "-q",
        "map",
        "--split",
        "lines:1",
        "--runtime",
        "claude",
        "--max-concurrent",
        "1",
        "--task",
        "read it",
        "in",
    ];
    let outcome = run(&stage, &[&map[..], &["--budget-usd", "2"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout().matches("read").count(), 3, "{}", outcome.text());
    let events = events(&stage.place);
    let [parked, unparked] = ["parked", "unparked"].map(|kind| of_kind(&events, kind).len());
    assert_eq!((parked, unparked), (1, 1));
    let declined = of_kind(&events, "request_settled");
    let declined = declined.iter().filter(|it| it["ending"] == "declined").count();
    assert_eq!(declined, 1, "no request is sent again before the reset");
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// A program that obeys the usual variables is metered too, and its budget holds: what cannot be paid does not leave.
#[test]
fn a_program_that_obeys_its_base_url_is_metered() {
    let api = FakeModelApi::start(Script::new([Rule::always(Reply::text("hello"))]))
        .expect("a free port");
    let place = Place::new();
    let prices = prices();
    place.file("c.toml", format!("[runtimes.exec]\nmeter = \"on\"\n\n{prices}"));
    place.file("agent.py", AGENT);
    let run = |budget: &str| {
        let arguments = [
            "--config",
            "c.toml",
            "-q",
            "run",
            "--budget-usd",
            budget,
            "x",
            "--",
            "python3",
            "agent.py",
        ];
        let mut command = place.command(&arguments);
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("{}/v1", api.url()));
        place.outcome(command, &[])
    };
    assert_eq!(run("1").expect_code(0).stdout(), "hello\nhello\n");
    let of_two = events(&place);
    assert_eq!(of_kind(&of_two, "request_settled").len(), 2);
    // An answer of 5,000 tokens can cost 0.075 dollars.
    let outcome = run("0.02").expect_code(4);
    assert!(outcome.stderr.contains("budget"), "{}", outcome.text());
    let of_one = events(&place);
    assert_eq!(of_kind(&of_one, "request_reserved").len(), 1, "{}", outcome.text());
    assert_eq!(api.conversations().len(), 3, "it has not left");
    place.run(&["audit", "last"]).expect_code(0);
}

/// A program that has a login of its own, or another address written into it, passes the meter by: what it costs is not known, and a pool
/// of dollars is not spent on others as if it had cost nothing.
#[test]
fn a_program_that_ignores_its_base_url_has_an_unknown_cost() {
    let place = Place::new();
    let prices = prices();
    let run = |more: &str, words: &[&str]| {
        place.file("c.toml", format!("[runtimes.exec]\nmeter = \"on\"\n{more}\n{prices}"));
        let mut command = place.command(&[&["--config", "c.toml", "-q"], words].concat());
        command.env("OPENAI_API_KEY", KEY);
        place.outcome(command, &[])
    };
    let cost = || {
        let shown = place.run(&["show", "last", "--json"]).expect_code(0).json();
        shown["cost"]["unknownRuns"].as_u64().expect("it has a cost")
    };
    let one = ["run", "--budget-usd", "1", "x", "--", "true"];
    run("", &one).expect_code(0);
    assert_eq!(cost(), 1, "it has asked nothing through the meter");
    let shown = place.run(&["show", "last"]).expect_code(0);
    assert!(shown.stdout().contains("used     usage not reported"), "{}", shown.text());
    let mut doctor = place.command(&["--config", "c.toml", "doctor"]);
    doctor.env("OPENAI_API_KEY", KEY);
    let doctor = place.outcome(doctor, &[]);
    let said =
        "meter: a program that ignores its base URL passes it by, and what it costs is not known";
    assert!(doctor.text().contains(said), "{}", doctor.text());
    place.run(&["audit", "last"]).expect_code(0);
    run("cost = \"none\"", &one).expect_code(0);
    assert_eq!(cost(), 0, "the operator says that such programs cost nothing");
    // One that does not even start has cost nothing.
    run("", &["run", "--budget-usd", "1", "x", "--", "./missing"]);
    assert_eq!(cost(), 0);
    let words = ["run", "--budget-usd", "1", "x", "--", "sh", "-c", "sleep 60"];
    run("", &[&words[..1], &["--timeout", "1s"], &words[1..]].concat());
    assert_eq!(cost(), 1, "nor is it known of one that was stopped");
    place.file("in", "one\ntwo\nthree\n");
    let map = ["map", "--budget-usd", "3", "--split", "lines:1", "--merge", "concatenate"];
    run("", &[&map[..], &["--max-concurrent", "1", "in", "--", "cat"]].concat()).expect_code(0);
    let events = events(&place);
    let drawn = of_kind(&events, "budget_drawn");
    let drawn: Vec<u64> = drawn.iter().filter_map(|event| event["micro_usd"].as_u64()).collect();
    let sum: u64 = drawn.iter().sum();
    assert!(drawn.len() == 3 && sum <= 3_000_000, "no dollar is given twice: {drawn:?}");
    place.run(&["audit", "last"]).expect_code(0);
}

/// A request that was under way when the supervisor was killed may have been answered: it is charged at its bound, and the session goes
/// on with what is left of its grant.
#[test]
fn a_request_that_was_under_way_at_a_kill_is_charged_at_its_bound() {
    let rules = [Rule::always(Reply::Hang).times(1), Rule::always(Reply::text("went on"))];
    let name = "a_request_that_was_under_way_at_a_kill_is_charged_at_its_bound";
    let Some(stage) = stage(name, rules) else { return };
    let mut command =
        command(&stage, &["-q", "run", "--budget-usd", "2", "--runtime", "claude", "greet"]);
    let mut supervisor =
        command.stderr(Stdio::null()).spawn().expect("the program was built for this test");
    followed_until(&stage.place, "  request_reserved  ");
    let locks = stage.place.locks_of(supervisor.id());
    supervisor.kill().expect("it is a child that was not waited for");
    supervisor.wait().expect("the child cannot be waited for");
    locks.wait();
    let outcome = run(&stage, &["-q", "resume", "last"]);
    assert_eq!(outcome.expect_code(0).stdout(), "went on\n");
    let events = events(&stage.place);
    let settled = of_kind(&events, "request_settled");
    let lost: Vec<_> = settled.iter().filter(|it| it["ending"] == "lost").collect();
    assert!(!lost.is_empty(), "{settled:?}");
    for it in lost {
        let reserved = of_kind(&events, "request_reserved");
        let reserved = reserved.iter().find(|reserved| reserved["request"] == it["request"]);
        let most =
            reserved.expect("it was reserved")["micro_usd"].as_f64().expect("an amount") / 1e6;
        assert_eq!(it["cost"]["estimatedUsd"].as_f64(), Some(most));
        assert!(it["cost"].get("meteredUsd").is_none(), "no bound is counted: {it}");
    }
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// A key that is missing is named before anything starts, and to the runs that need it alone.
#[test]
fn a_key_that_is_missing_is_named_to_those_that_need_it() {
    let Some(stage) = stage("a_key_that_is_missing_is_named_to_those_that_need_it", []) else {
        return;
    };
    let place = |arguments: &[&str]| {
        let mut command = command(&stage, arguments);
        command.env_remove("OPERATOR_KEY");
        stage.place.outcome(command, &[])
    };
    let refused = place(&["run", "--runtime", "claude", "x"]).expect_code(5);
    let named = "the variable OPERATOR_KEY, which runtimes.claude.keyEnv names, is not set";
    assert!(refused.stderr.contains(named), "{}", refused.text());
    assert!(refused.stderr.contains("export it, or name another variable"), "{}", refused.text());
    assert_eq!(place(&["-q", "run", "x", "--", "echo", "fine"]).expect_code(0).stdout(), "fine\n");
}

/// Other vendors' programs obey their base URLs, or are told one: the real ones, each with one request that is paid and one that is not.
#[test]
fn codex_and_gemini_are_metered_as_programs() {
    let Some(clients) = install("codex_and_gemini_are_metered_as_programs") else { return };
    let api = FakeModelApi::start(Script::new([Rule::always(Reply::text("hello"))]));
    let api = api.expect("a free port");
    let place = Place::new();
    let prices = prices();
    place.file("c.toml", format!("[runtimes.exec]\nmeter = \"on\"\n\n{prices}"));
    place.file(
        "home/.gemini/settings.json",
        r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#,
    );
    let gemini = format!("exec {} --skip-trust -m priced-1 -p greet", clients.gemini().display());
    let provider = r#"-c 'model_providers.m.name="m"' -c "model_providers.m.base_url=\"$OPENAI_BASE_URL\"" \
        -c 'model_providers.m.env_key="OPENAI_API_KEY"' -c 'model_providers.m.wire_api="responses"' \
        -c 'model_provider="m"' -c 'web_search="disabled"'"#;
    let codex = clients.codex();
    let codex = format!(
        "exec {} exec --skip-git-repo-check {provider} -m priced-1 greet < /dev/null",
        codex.display()
    );
    for script in [gemini, codex] {
        let run = |budget: &str| {
            let arguments = ["--config", "c.toml", "-q", "run", "--budget-usd", budget, "x", "--"];
            let mut command = place.command(&[&arguments[..], &["sh", "-c", &script]].concat());
            command.env("GEMINI_API_KEY", KEY).env("GOOGLE_GEMINI_BASE_URL", api.url());
            command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("{}/v1", api.url()));
            place.outcome(command, &[])
        };
        let asked = api.conversations().len();
        let outcome = run("2").expect_code(0);
        assert_eq!(outcome.stdout().trim_end(), "hello", "{}", outcome.text());
        let paid = events(&place);
        let settled = of_kind(&paid, "request_settled");
        assert!(!settled.is_empty(), "{}", outcome.text());
        assert!(settled.iter().all(|it| it["cost"]["meteredUsd"].is_number()), "{settled:?}");
        let answered = api.conversations().len();
        assert_eq!(answered - asked, settled.len(), "each that left was charged");
        let outcome = run("0.0001").expect_code(4);
        assert_eq!(api.conversations().len(), answered, "none left: {}", outcome.text());
        let logs = place.run(&["logs", "last"]).expect_code(0);
        let said =
            logs.stdout().matches("offshoot refused this request (budget_exhausted)").count();
        assert!((1..=3).contains(&said), "it stops at once and says why: {}", logs.stdout());
        let told = events(&place);
        let first = of_kind(&told, "request_refused");
        assert_eq!(first[0]["code"], "budget_exhausted", "{first:?}");
        place.run(&["audit", "last"]).expect_code(0);
    }
}

/// A program comes to the end of its budget. With `onCap = "pause"` its request waits, and leaves when the operator has given more.
#[test]
fn at_the_cap_a_program_waits_until_it_is_given_more() {
    let api = FakeModelApi::start(Script::new([Rule::always(Reply::text("hello"))]))
        .expect("a free port");
    let place = Place::new();
    let prices = prices();
    let config = format!(
        "[runtimes.exec]\nmeter = \"on\"\n\n[agents.defaults.subagents.budget]\nonCap = \"pause\"\n\n{prices}"
    );
    place.file("c.toml", config);
    place.file("agent.py", AGENT);
    let arguments = [
        "--config",
        "c.toml",
        "-q",
        "run",
        "--budget-usd",
        "0.02",
        "x",
        "--",
        "python3",
        "agent.py",
    ];
    let mut command = place.command(&arguments);
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("{}/v1", api.url()));
    let child = command.spawn().expect("the program was built for this test");
    // An answer of 5,000 tokens can cost 0.075 dollars.
    followed_until(&place, "waits for more budget");
    assert_eq!(api.conversations().len(), 1, "it has not left");
    let tree = place.run(&["tree", "last"]).expect_code(0);
    assert!(
        tree.stdout().contains("a request to a model waits for room in the budget"),
        "{}",
        tree.stdout()
    );
    place.run(&["budget", "last", "--add", "1"]).expect_code(0);
    let outcome = place.finish(child, &command, &[]).expect_code(0);
    assert_eq!(outcome.stdout(), "hello\nhello\n");
    assert_eq!(api.conversations().len(), 2);
    place.run(&["audit", "last"]).expect_code(0);
}
