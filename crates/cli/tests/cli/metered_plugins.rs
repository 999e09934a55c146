//! Runs of plugins whose requests to models go through the meter: a program that works for several runs at once, and a library.

use std::fs;
use std::process::Command;

use offshoot_fake_model_api::{FakeModelApi, Reply, Rule, Script};
use offshoot_test_support::{named_pipe, workspace_plugin};

use crate::command::{Outcome, Place};
use crate::metered::{KEY, ask_as_a_stranger, events, of_kind, prices};
use crate::walls::followed_until;

/// A runtime that asks a model twice for each run, for a longer answer the second time. It says nothing of the run before its first answer.
/// The task `tell` is answered with the names of variables of its environment that lead to a provider; `hand out` writes down the address and
/// the ticket, and waits; `ask and wait` asks once, and waits; `send out` has a program of its own ask.
const ASKS: &str = r#"
import json, os, subprocess, sys, threading, urllib.error, urllib.request

MANIFEST = {"v": 1, "name": "asks", "version": "0.1.0", "runtimes": [{"name": "asks", "abilities": {"cost": "estimated"}}]}
lock = threading.Lock()

def send(**line):
    with lock:
        print(json.dumps(line), flush=True)

def ask(meter, limit):
    body = {"model": "priced-1", "max_tokens": limit, "messages": [{"role": "user", "content": "greet"}]}
    headers = {"authorization": "Bearer " + meter["ticket"], "content-type": "application/json"}
    request = urllib.request.Request(meter["openai"] + "/chat/completions", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]

def work(id, launch):
    meter, code, said = launch["meter"], 0, ""
    if launch["task"] == "tell":
        said = " ".join(name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_", "GEMINI_", "OPERATOR_")))
    elif launch["task"] == "ask and wait":
        said = ask(meter, 100)
        open("hold").read()
    elif launch["task"] == "send out":
        asks = [sys.executable, __file__, json.dumps(meter)]
        said = subprocess.run(asks, stdout=subprocess.PIPE, text=True, check=True).stdout
    elif launch["task"] == "hand out":
        send(op="event", of=id, kind=5, payload={"v": 1, "status": "started"})
        with open("told", "w") as told:
            print(meter["openai"], meter["ticket"], file=told)
        open("hold").read()
    else:
        try:
            for limit in (100, 5000):
                said += ask(meter, limit) + " "
        except urllib.error.HTTPError as error:
            code, said = 1, str(error.code) + error.read().decode()
    reason = {"kind": "exit_code", "code": code} if code else {"kind": "completed", "exit_code": None}
    send(id=id, ok={"v": 1, "reason": reason, "output": "text"}, body=said)

if len(sys.argv) > 1:
    sys.exit(print(ask(json.loads(sys.argv[1]), 100)))
for text in sys.stdin:
    line = json.loads(text)
    op, id = line.get("op"), line.get("id")
    if op == "describe":
        send(id=id, ok=MANIFEST)
    elif op in ("init", "runtime"):
        send(id=id, ok={"v": 1})
    elif op == "start":
        os.chdir(line["launch"]["workingFolder"])
        threading.Thread(target=work, args=(id, line["launch"]), daemon=True).start()
    elif id is not None:
        send(id=id, error={"code": 5, "message": "unsupported: " + op})
"#;

struct Stage {
    place: Place,
    api: FakeModelApi,
    runtime: &'static str,
}

impl Stage {
    fn new() -> Self {
        Self::with("run")
    }

    /// With a process for each run, or one for all: `run` or `plugin`.
    fn with(per: &str) -> Self {
        let place = Place::new();
        let about = "name = \"asks\"\nversion = \"0.1.0\"\nabi = \"1.0\"\nruntimes = [\"asks\"]\n";
        let process = format!("[process]\nper = \"{per}\"\ncommand = [\"python3\", \"asks.py\"]\n");
        place.file("plugins/asks/plugin.toml", format!("{about}\n{process}"));
        place.file("plugins/asks/asks.py", ASKS);
        // A key of another runtime is none of the plugin's.
        let other = "[runtimes.claude]\nkeyEnv = \"OPERATOR_KEY\"\n";
        place.file("c.toml", format!("{other}[runtimes.asks]\nmeter = \"on\"\n{}", prices()));
        let api = FakeModelApi::start(Script::new([Rule::always(Reply::text("hello"))]));
        Self { place, api: api.expect("a free port"), runtime: "asks" }
    }

    /// With a library in place of the program: the runtime of chat endpoints.
    fn with_library() -> Self {
        let stage = Self { runtime: "chat", ..Self::new() };
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let about = "name = \"openai\"\nversion = \"0.1.0\"\nabi = \"1.0\"\nruntimes = [\"openai\", \"chat\"]\n";
        let files = format!("[files.{target}]\npath = \"liboffshoot_plugin_openai.so\"\n");
        let about = stage.place.file("plugins/openai/plugin.toml", format!("{about}\n{files}"));
        let built = workspace_plugin("openai");
        fs::copy(&built, about.with_file_name("liboffshoot_plugin_openai.so")).expect("built");
        let options =
            "[runtimes.chat]\nmeter = \"on\"\n[runtimes.chat.options]\nmodel = \"priced-1\"\n";
        stage.place.file("c.toml", format!("{options}{}", prices()));
        stage
    }

    fn command(&self, words: &[&str]) -> Command {
        let plugin = ["--plugin-path", "plugins", "--runtime", self.runtime];
        let (command, rest) = words.split_first().expect("a command");
        let words = [&["--config", "c.toml", "-q", command], &plugin[..], rest].concat();
        self.given(self.place.command(&words))
    }

    /// With the key and the address of the provider.
    fn given(&self, mut command: Command) -> Command {
        let url = format!("{}/v1", self.api.url());
        // A proxy that is not there: the meter is asked past it.
        command.env("HTTP_PROXY", "http://127.0.0.1:9").env("http_proxy", "http://127.0.0.1:9");
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", url).env("OPERATOR_KEY", KEY);
        command
    }

    fn run(&self, words: &[&str]) -> Outcome {
        self.place.outcome(self.command(words), &[])
    }
}

#[test]
fn what_a_plugin_asks_is_counted_and_what_cannot_be_paid_does_not_leave() {
    let stage = Stage::new();
    let outcome = stage.run(&["run", "--budget-usd", "1", "greet"]).expect_code(0);
    assert_eq!(outcome.stdout(), "hello hello \n");
    let of_two = events(&stage.place);
    assert_eq!(of_kind(&of_two, "request_settled").len(), 2);
    let shows = format!("Bearer {KEY}");
    assert!(stage.api.requests().iter().all(|it| it.authorization.as_deref() == Some(&*shows)));
    let shown = stage.place.run(&["show", "last"]).expect_code(0);
    assert!(shown.stdout().contains(" metered"), "{}", shown.text());
    // An answer of 5,000 tokens can cost 0.075 dollars.
    let outcome = stage.run(&["run", "--budget-usd", "0.02", "greet"]).expect_code(4);
    assert!(outcome.stderr.contains("budget"), "{}", outcome.text());
    assert_eq!(of_kind(&events(&stage.place), "request_reserved").len(), 1);
    assert_eq!(stage.api.conversations().len(), 3, "it has not left");
    stage.place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn what_a_program_of_a_plugin_asks_is_charged_to_its_run() {
    for per in ["run", "plugin"] {
        let stage = Stage::with(per);
        let outcome = stage.run(&["run", "--budget-usd", "1", "send out"]).expect_code(0);
        assert_eq!(outcome.stdout(), "hello\n\n", "a process for each {per}");
        assert_eq!(of_kind(&events(&stage.place), "request_settled").len(), 1);
        stage.place.run(&["audit", "last"]).expect_code(0);
    }
}

/// A library asks from within the supervisor.
#[test]
fn what_a_library_asks_is_counted_and_what_cannot_be_paid_does_not_leave() {
    let stage = Stage::with_library();
    let words = ["fanout", "--budget-usd", "1", "--merge", "concatenate", "--task", "a"];
    let outcome = stage.run(&[&words[..], &["--task", "b"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout().matches("hello").count(), 2);
    let of_two = events(&stage.place);
    assert_eq!(of_kind(&of_two, "request_settled").len(), 2);
    let mut runs: Vec<&str> = of_two
        .iter()
        .filter(|event| event["kind"]["type"] == "request_settled")
        .filter_map(|event| event["run"].as_str())
        .collect();
    runs.dedup();
    assert_eq!(runs.len(), 2, "each has asked for itself");
    let shows = format!("Bearer {KEY}");
    assert!(stage.api.requests().iter().all(|it| it.authorization.as_deref() == Some(&*shows)));
    let shown = stage.place.run(&["show", "last"]).expect_code(0);
    assert!(shown.stdout().contains(" metered"), "{}", shown.text());
    stage.place.run(&["audit", "last"]).expect_code(0);
    // The price of the question alone is more.
    let outcome = stage.run(&["run", "--budget-usd", "0.000001", "a"]).expect_code(4);
    assert!(outcome.stderr.contains("budget"), "{}", outcome.text());
    assert_eq!(stage.api.conversations().len(), 2, "it has not left");
    stage.place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn each_run_of_a_plugin_is_charged_its_own() {
    ["run", "plugin"].into_iter().for_each(each_run_is_charged_its_own);
}

fn each_run_is_charged_its_own(per: &str) {
    let stage = Stage::with(per);
    let tasks = ["--task", "one", "--task", "two", "--task", "three"];
    let words = [&["fanout", "--budget-usd", "3", "--merge", "concatenate"][..], &tasks].concat();
    stage.run(&words).expect_code(0);
    let events = events(&stage.place);
    let mut runs: Vec<&str> = events
        .iter()
        .filter(|event| event["kind"]["type"] == "request_settled")
        .map(|event| event["run"].as_str().expect("an event has a run"))
        .collect();
    assert_eq!(runs.len(), 6, "a process for each {per}");
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), 3, "two of each");
    stage.place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_metered_plugin_has_no_key_and_a_stranger_with_its_ticket_hears_no() {
    let stage = Stage::new();
    let told = stage.run(&["run", "--budget-usd", "1", "tell"]).expect_code(0);
    assert_eq!(told.stdout().trim(), "", "no way to a provider is in its environment");
    let shown = stage.place.run(&["show", "last", "--json"]).expect_code(0).json();
    assert_eq!(shown["cost"]["unknownRuns"], 1, "it has asked nothing through the meter: {shown}");

    for name in ["told", "hold"] {
        named_pipe(stage.place.path().join(name));
    }
    let mut tree = stage.command(&["run", "--budget-usd", "1", "hand out"]).spawn().expect("built");
    let told = fs::read_to_string(stage.place.path().join("told")).expect("the plugin tells");
    let (address, ticket) = told.trim().split_once(' ').expect("two words");
    let address = address.strip_prefix("http://").expect("an address of this machine");
    let address = address.strip_suffix("/v1").expect("the version of OpenAI's");
    let answer = ask_as_a_stranger(address, ticket);
    let why = "the process that sent it does not belong to the agent of its ticket";
    assert!(answer.contains("unknown_caller") && answer.contains(why), "{answer}");
    fs::write(stage.place.path().join("hold"), "").expect("the plugin waits for its end");
    assert!(tree.wait().expect("it ends").success());
    assert_eq!(stage.api.conversations().len(), 0);
}

/// An attempt that a kill cuts off stays charged, and the attempt that follows it has the rest.
#[test]
fn a_plugin_whose_supervisor_is_killed_is_charged_for_both_attempts() {
    let stage = Stage::new();
    named_pipe(stage.place.path().join("hold"));
    stage.place.file("in", "piece\n");
    let words = ["map", "--split", "lines:1", "--task", "ask and wait", "--budget-usd", "1", "in"];
    let mut killed = stage.command(&words).spawn().expect("built");
    followed_until(&stage.place, "  request_settled  ");
    killed.kill().expect("it was not waited for");
    killed.wait().expect("it was ours");
    let words = ["--config", "c.toml", "-q", "resume", "last"];
    let mut resumed = stage.given(stage.place.command(&words)).spawn().expect("built");
    // Then nothing of the first attempt is left that could read the pipe.
    followed_until(&stage.place, "  resumed  ");
    fs::write(stage.place.path().join("hold"), "").expect("the plugin waits for its end");
    assert!(resumed.wait().expect("it ends").success());
    let all = events(&stage.place);
    assert_eq!(of_kind(&all, "request_settled").len(), 2, "one of each attempt");
    assert_eq!(stage.api.conversations().len(), 2);
    let stats = stage.place.run(&["stats", "--json"]).expect_code(0).json();
    let spent = &stats["agents"]["main"];
    // Two answers of 10 tokens to read and 5 to write.
    assert_eq!(
        (&spent["usage"]["input"], &spent["cost"]["meteredUsd"]),
        (&20.into(), &0.00021.into())
    );
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// Without a budget of its own a tree of a metered plugin has the built-in one, as one of any paid runtime.
#[test]
fn a_tree_of_a_metered_plugin_has_a_budget_where_none_is_given() {
    let stage = Stage::new();
    let outcome = stage.run(&["run", "greet"]).expect_code(0);
    assert_eq!(outcome.stdout(), "hello hello \n");
    let shown = stage.place.run(&["show", "last", "--json"]).expect_code(0).json();
    assert!(shown["grant"]["budget"]["usd"].is_number(), "{shown}");
    let planned = stage.run(&["run", "--dry-run", "greet"]).expect_code(0);
    let said = "requests of asks to models are reserved before they leave";
    assert!(planned.stdout().contains(said), "{}", planned.text());
    assert!(!planned.text().contains("what this costs is not known"), "{}", planned.text());
}

/// A run whose request was refused may have asked elsewhere then: that it cost nothing is not known.
#[test]
fn a_run_of_which_nothing_has_left_has_an_unknown_cost() {
    let stage = Stage::new();
    let asks = ASKS.replace("\"priced-1\"", "\"unpriced\"").replace("code, said = 1,", "said =");
    stage.place.file("plugins/asks/asks.py", asks);
    stage.run(&["run", "--budget-usd", "1", "greet"]).expect_code(0);
    let all = events(&stage.place);
    assert_eq!(of_kind(&all, "request_refused").len(), 1);
    let shown = stage.place.run(&["show", "last", "--json"]).expect_code(0).json();
    assert_eq!(shown["cost"]["unknownRuns"], 1, "{shown}");
}

#[test]
fn a_plugin_that_is_not_metered_keeps_its_environment() {
    let stage = Stage::new();
    stage.place.file("c.toml", prices());
    stage.place.file(
        "plugins/asks/asks.py",
        ASKS.replace("launch[\"meter\"], 0", "launch.get(\"meter\", \"none\"), 0"),
    );
    let told = stage.run(&["run", "tell"]).expect_code(0);
    assert!(told.stdout().contains("OPENAI_API_KEY"), "{}", told.text());
}

#[test]
fn a_metered_plugin_without_a_provider_says_what_to_export() {
    let stage = Stage::new();
    let mut command = stage.command(&["run", "greet"]);
    command.env_remove("OPENAI_API_KEY");
    let outcome = stage.place.outcome(command, &[]);
    assert_eq!(outcome.code, 5, "{}", outcome.text());
    let said = "runtimes.asks.meter is on, and no variable holds the key of a provider";
    assert!(outcome.text().contains(said), "{}", outcome.text());
    assert!(outcome.text().contains("export ANTHROPIC_API_KEY"), "{}", outcome.text());
}
