//! Models behind a chat endpoint, before a service that answers by rules.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script, ToolCall, Usage};
use offshoot_test_support::named_pipe;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::command::{Outcome, Place};

const RUN: &[&str] = &["-q", "run", "--config", "c.toml", "--runtime", "openai"];

/// A place whose configuration names the service.
pub(crate) fn stage(rules: impl IntoIterator<Item = Rule>, more: &str) -> (Place, FakeModelApi) {
    let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
    let place = Place::new();
    let options =
        format!("[runtimes.openai.options]\nbaseUrl = \"{}/v1\"\nmodel = \"small\"\n", api.url());
    place.file("c.toml", format!("{options}{more}"));
    (place, api)
}

/// Runs an agent behind the endpoint.
pub(crate) fn run(place: &Place, arguments: &[&str]) -> Outcome {
    place.run(&[RUN, arguments].concat())
}

/// A rule for the n-th step of a model with this task.
fn at(task: &str, step: usize, reply: Reply) -> Rule {
    Rule::when(Condition::Prompt(task.into()), reply).and(Condition::Step(step))
}

fn spawns(tasks: &[&str]) -> Reply {
    let call = |task: &&str| ToolCall {
        name: "sessions_spawn".to_owned(),
        input: json!({"task": task, "wait": true}),
    };
    Reply::Calls(tasks.iter().map(call).collect())
}

/// A tree tells that the service of its runs refuses them while their runtimes still ask again.
#[test]
fn each_answer_contains_the_answers_below_it() {
    let told = |name: &str| Reply::text(format!("{name}({{{{result:/outcome/data}}}})"));
    let rules = [
        at("top", 1, spawns(&["middle"])),
        at("top", 2, told("top")),
        at("middle", 1, spawns(&["leaf"])),
        at("middle", 2, told("middle")),
        at("leaf", 1, Reply::text("fruit")),
    ];
    let (place, _api) = stage(rules, "");
    // One slot for three levels: a run that waits lends its own.
    let arguments = ["--allow-recursive-spawn", "--max-concurrent", "1", "top"];
    assert_eq!(run(&place, &arguments).expect_code(0).stdout(), "top(middle(fruit))\n");
    let tree = place.run(&["tree", "--json"]).json();
    let leaf = &tree[0]["children"][0]["children"][0];
    assert_eq!((&leaf["depth"], &leaf["status"]), (&2.into(), &"completed".into()), "{tree}");
    assert_eq!(tree[0]["subtreeUsage"]["input"], 50, "five calls of ten tokens: {tree}");
}

#[test]
fn a_child_that_is_not_awaited_brings_a_further_turn() {
    let rules = [
        at("go", 1, Reply::call("sessions_spawn", json!({"task": "child"}))),
        at("go", 2, Reply::text("it will come")),
        at("child", 1, Reply::text("fruit")).and(Condition::Turn(1)),
        Rule::when(Condition::Turn(2), Reply::text("{{prompt}}")),
    ];
    let (place, _api) = stage(rules, "");
    let outcome = run(&place, &["go"]).expect_code(0);
    assert!(outcome.stdout().contains("fruit"), "{}", outcome.stdout());
}

#[test]
fn a_budget_holds_over_the_tree() {
    let rules = [
        at("top", 1, spawns(&["child"])).usage(Usage { input: 300, output: 0, ..Usage::default() }),
        Rule::always(Reply::text("x")).usage(Usage { input: 300, output: 0, ..Usage::default() }),
    ];
    let (place, _api) = stage(rules, "");
    let outcome = run(&place, &["--json", "--budget-tokens", "500", "top"]);
    let report = outcome.json();
    assert_eq!(report["error"]["code"], "budget", "{report}");
}

#[test]
fn an_answer_with_the_last_token_of_a_budget_is_complete() {
    let used = Usage { input: 300, output: 0, ..Usage::default() };
    let (place, _api) = stage([Rule::always(Reply::text("fruit")).usage(used)], "");
    for _ in 0..5 {
        let outcome = run(&place, &["--budget-tokens", "300", "top"]).expect_code(0);
        assert_eq!(outcome.stdout(), "fruit\n");
    }
}

/// A service that reports no tokens does not give them away: each call is charged what it can have used.
#[test]
fn an_answer_without_its_tokens_is_charged_at_its_bound() {
    let used = Usage { input: 60, output: 0, ..Usage::default() };
    let agent = "askUsage = false\n[[agents.list]]\nid = \"reader\"\nruntime = \"openai\"\n\
                 [agents.defaults.subagents]\nallowAgents = [\"*\"]\n";
    let (place, api) = stage([Rule::always(Reply::text("fruit")).usage(used)], agent);
    let script = "for i in 1 2 3 4 5 6 7 8; do \
                  \"$OFFSHOOT\" spawn --wait --agent reader --budget-tokens 5 \"hello $i\"; done; true";
    let run = ["run", "--config", "c.toml", "--allow-recursive-spawn", "--budget-tokens", "200"];
    place.run(&[&run[..], &["x", "--", "sh", "-c", script]].concat());
    assert_eq!(api.requests().len(), 1, "the first call may have used all there is");
    let tree = place.run(&["tree", "--json"]).json();
    let usage = &tree[0]["children"][0]["tokenUsage"];
    let sent = api.requests()[0].body.to_string().len();
    assert_eq!(usage["input"], sent, "{tree}");
    assert_eq!(usage["estimated"][0], "input", "{tree}");
    place.run(&["audit", "last"]).expect_code(0);
}

/// Each call is charged before the next one leaves, so that no two of them go over a budget.
#[test]
fn no_call_leaves_once_the_budget_is_used_up() {
    let call = Reply::call("context_read", json!({"name": "nothing"}));
    let (place, api) = stage([Rule::always(call)], "cost = \"none\"\n");
    for times in 1..=10 {
        run(&place, &["--budget-tokens", "1", "--context", "c=c.toml", "go"]).expect_code(4);
        assert_eq!(api.requests().len(), times, "one call, and no more");
    }
    let refused = place.run(&["resume", "last", "--budget-tokens", "500"]);
    assert!(refused.stderr.contains("--budget-tokens 500 "), "{}", refused.stderr);
}

/// Runs a command, and kills its supervisor while its first call to the service is under way.
fn kill_in_call(place: &Place, service: &TcpListener, words: &[&str]) {
    let mut command = place.command(words);
    let mut supervisor = command.stderr(Stdio::null()).spawn().expect("it is a program");
    let _call = service.accept().expect("a call comes");
    let locks = place.locks_of(supervisor.id());
    supervisor.kill().expect("it is a child that was not waited for");
    supervisor.wait().expect("the child cannot be waited for");
    locks.wait();
}

/// A chat does not go on where it was cut off, so a dry run does not promise that, and a resume ends it.
#[test]
fn a_dry_run_says_of_a_root_that_cannot_go_on_that_it_would_end() {
    let service = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = service.local_addr().expect("it is bound");
    let place = Place::new();
    let options = "[runtimes.openai.options]\nmodel = \"small\"\n";
    place.file(
        "c.toml",
        format!("[runtimes.openai]\ncost = \"none\"\n{options}baseUrl = \"http://{address}/v1\"\n"),
    );
    let run = ["run", "--config", "c.toml", "--runtime", "openai", "name a fruit"];
    kill_in_call(&place, &service, &run);
    let ahead = place.run(&["resume", "last", "--dry-run"]).expect_code(0);
    assert!(ahead.stdout().starts_with("would end: tree "), "{}", ahead.text());
    assert_eq!(place.run(&["resume", "last", "--dry-run", "--json"]).json()["goesOn"], false);
    let ended = place.run(&["resume", "last"]).expect_code(1);
    assert!(ended.stderr.contains("interrupted"), "{}", ended.text());
}

/// The call that was under way may have been answered. What its attempt had drawn is spent, so kills make no calls free.
#[test]
fn an_attempt_that_was_killed_in_its_call_is_charged_what_it_had_drawn() {
    // Without a price it costs no dollars, and its tokens count.
    let price = "[prices.small]\ninputPerMillion = 1\noutputPerMillion = 1\n";
    for (budget, more, charged) in [
        (["--budget-tokens", "100"], "[runtimes.openai]\ncost = \"none\"\n", 100.0),
        // At this price each attempt draws a tenth of a dollar.
        (["--budget-usd", "0.2"], price, 0.2),
    ] {
        let service = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = service.local_addr().expect("it is bound");
        let place = Place::new();
        let options = "[runtimes.openai.options]\nmodel = \"small\"\n";
        place.file("c.toml", format!("{more}{options}baseUrl = \"http://{address}/v1\"\n"));
        place.file("in", "piece\n");
        let map = ["map", "--config", "c.toml", "--runtime", "openai", "--split", "lines:1"];
        let map = [&map[..], &budget, &["--task", "name a fruit", "in"]].concat();
        for words in [&map[..], &["resume", "last"]] {
            kill_in_call(&place, &service, words);
        }
        let ended = place.run(&["resume", "last"]).expect_code(4);
        assert!(ended.stderr.contains("budget"), "{}", ended.stderr);
        let tree = place.run(&["tree", "--json"]).json();
        let piece = &tree[0]["children"][0];
        let found = match budget[0] {
            "--budget-usd" => &piece["cost"]["estimatedUsd"],
            _ => {
                assert_eq!(piece["tokenUsage"]["estimated"][0], "input", "{tree}");
                &piece["tokenUsage"]["input"]
            }
        };
        assert_eq!(found.as_f64(), Some(charged), "{tree}");
        place.run(&["audit", "last"]).expect_code(0);
        service.set_nonblocking(true).expect("a socket");
        assert!(service.accept().is_err(), "no call was made beyond the budget");
    }
}

/// A budget of a run's own is charged at least a quarter for each call whose attempt was killed: the third of them uses it up.
#[test]
fn a_budget_of_its_own_ends_with_the_third_attempt_that_was_killed_in_its_call() {
    let service = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = service.local_addr().expect("it is bound");
    let place = Place::new();
    let rules = "[agents.defaults.subagents]\nonInterrupt = \"rerun\"\n";
    let options = "[runtimes.openai.options]\nmodel = \"small\"\n";
    place.file("c.toml", format!("{rules}{options}baseUrl = \"http://{address}/v1\"\n"));
    let run = ["run", "--config", "c.toml", "--runtime", "openai", "--budget-tokens", "10000"];
    let run = [&run[..], &["name a fruit"]].concat();
    for words in [&run[..], &["resume", "last"], &["resume", "last"]] {
        kill_in_call(&place, &service, words);
    }
    let ended = place.run(&["resume", "last"]).expect_code(4);
    assert!(ended.stderr.contains("budget"), "{}", ended.stderr);
    let tree = place.run(&["tree", "--json"]).json();
    assert_eq!(tree[0]["tokenUsage"]["input"], 10_000, "{tree}");
    place.run(&["audit", "last"]).expect_code(0);
    service.set_nonblocking(true).expect("a socket");
    assert!(service.accept().is_err(), "no call was made beyond the budget");
}

/// The last token of the budget is used, and pieces are left: the budget stopped the map, whether a token was over or not.
#[test]
fn a_map_that_uses_its_budget_to_the_last_token_was_stopped_by_it() {
    let used = Usage { input: 60, output: 0, ..Usage::default() };
    let (place, _api) = stage([Rule::always(Reply::text("fruit")).usage(used)], "");
    place.file("in", "1\n2\n3\n4\n");
    for budget in ["120", "130"] {
        let map = ["-q", "map", "--config", "c.toml", "--runtime", "openai", "--split", "lines:1"];
        let words = ["--task", "name a fruit", "--budget-tokens", budget, "in"];
        place.run(&[&map[..], &words].concat()).expect_code(4);
        if budget == "120" {
            place.run(&["-q", "resume", "last", "--budget-tokens", "180"]).expect_code(4);
        }
        place.run(&["-q", "resume", "last", "--budget-tokens", "1000"]).expect_code(0);
        place.run(&["audit", "last"]).expect_code(0);
    }
}

/// The supervisor was stopped for longer than its agents may take, and their answers came meanwhile: an answer, and an end.
#[test]
fn what_ended_while_the_supervisor_was_stopped_is_heard_before_its_time_is_over() {
    let service = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = service.local_addr().expect("it is bound");
    let place = Place::new();
    let options = "[runtimes.openai.options]\nmodel = \"small\"\n";
    place.file("c.toml", format!("{options}baseUrl = \"http://{address}/v1\"\n"));
    let model = ["run", "--config", "c.toml", "--timeout", "1", "--runtime", "openai", "task"];
    let fifo = place.path().join("fifo");
    named_pipe(&fifo);
    let script = "echo up > fifo; cat go; echo fruit";
    let program = ["run", "--timeout", "1", "task", "--", "sh", "-c", script];
    let mut calls = Vec::new();
    for (words, is_model) in [(&model[..], true), (&program, false)] {
        let mut command = place.command(words);
        let supervisor = command.spawn().expect("it is a program");
        let pid = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw).expect("a pid");
        if is_model {
            let (mut call, _) = service.accept().expect("a call comes");
            let mut head = [0; 4096];
            assert!(call.read(&mut head).expect("a request") > 0);
            kill_process(pid, Signal::STOP).expect("it is a child");
            let answer = r#"{"choices":[{"message":{"content":"fruit"},"finish_reason":"stop"}]}"#;
            let length = answer.len();
            write!(
                call,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n{answer}"
            )
            .expect("it is still connected");
            calls.push(call);
        } else {
            named_pipe(place.path().join("go"));
            let said = std::fs::read_to_string(&fifo).expect("the agent writes a line");
            assert_eq!(said, "up\n");
            kill_process(pid, Signal::STOP).expect("it is a child");
            std::fs::write(place.path().join("go"), "").expect("the agent reads");
        }
        #[expect(clippy::disallowed_methods, reason = "the time that an agent may take passes")]
        std::thread::sleep(Duration::from_secs(3));
        kill_process(pid, Signal::CONT).expect("it is a child");
        let outcome = place.finish(supervisor, &command, &[]).expect_code(0);
        assert_eq!(outcome.stdout(), "fruit\n");
    }
}

#[test]
fn pieces_share_a_budget_until_it_is_used_up() {
    // 40 pieces at 0.27 dollars under 2 dollars.
    let used = Usage { input: 270, output: 0, ..Usage::default() };
    let price = "[prices.small]\ninputPerMillion = 1000\noutputPerMillion = 1000\n";
    let (place, _api) = stage([Rule::always(Reply::text("fruit")).usage(used)], price);
    place.file("in", (1..=40).map(|line| format!("{line}\n")).collect::<String>());
    let map = ["--config", "c.toml", "map", "--runtime", "openai", "--budget-usd", "2"];
    let words = ["--split", "lines:1", "--on-failure", "skip", "--task", "name a fruit", "in"];
    let planned = place.run(&[&map[..], &["--dry-run"], &words].concat()).expect_code(0);
    for expected in [
        // A short task costs more with this price, and no first part is more than half.
        "budget: one pool of $2.00 for all; the first agent takes $1.00 as it starts, and works alone until it has ended, then at most twice as many work as have ended: later ones",
        "cost: not known before; at most $2.00",
    ] {
        assert!(planned.stdout().contains(expected), "{}", planned.stdout());
    }
    let is_share = |line: &&str| line.trim_start().starts_with("budget.share ");
    let share = planned.stdout().lines().find(is_share).expect("it is listed").to_owned();
    assert!(share.contains("\"pool\"") && share.contains("built-in"), "{share}");
    let settings = std::fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    let share = "[agents.defaults.subagents]\nbudget.share = 0.5\n";
    place.file("parts.toml", format!("{settings}{share}"));
    let parts = ["--config", "parts.toml", "map", "--runtime", "openai", "--budget-usd", "2"];
    let planned = place.run(&[&parts[..], &["--dry-run"], &words].concat()).expect_code(0);
    let expected = "budget: $2.00, of which each gets $0.04\n";
    assert!(planned.stdout().contains(expected), "{}", planned.stdout());
    let outcome = place.run(&[&map[..], &words].concat()).expect_code(0);
    assert_eq!(outcome.stdout().matches("fruit").count(), 7);
    let text = &outcome.stderr;
    assert!(text.contains("7 of 40 pieces completed"), "{text}");
    let why = "33 runs  not started: $1.89 of $2.00 are used, and $0.27 were to be reserved";
    assert!(text.contains(why), "{text}");
    assert!(text.contains(" --budget-usd 11.00` goes on with the rest"), "{text}");
    assert!(text.lines().filter(|line| line.contains("not started")).count() < 3, "{text}");
    place.run(&["audit", "last"]).expect_code(0);
    let piece = place.run(&["list", "--tree", "last", "--status", "completed", "--json"]).json();
    let id = piece[0]["runId"].as_str().expect("the run has no id").to_owned();
    let events = place.run(&["events", &id]).expect_code(0);
    assert!(events.stdout().contains("out of the pool"), "{}", events.stdout());
    let holds = place.run(&["budget", "last"]).expect_code(0);
    let said = "$1.89 of $2.00 are used, $0.00 are reserved for what is not over, $0.11 are left\n";
    assert_eq!(holds.stdout(), said);
    assert_eq!(place.run(&["budget", "last", "--json"]).json()[0]["granted"], 2_000_000);
    let resume = ["resume", "last", "--cancelled", "--budget-usd", "5", "--dry-run"];
    let ahead = place.run(&resume).expect_code(0);
    let left =
        "budget: $1.89 of $5.00 are used, $0.00 are reserved for what is not over, $3.11 are left";
    assert!(ahead.stdout().contains(left), "{}", ahead.stdout());
    // What is left pays for no other piece, so none is begun.
    let listed = || place.run(&["list", "--tree", "last", "--all", "--json"]).expect_code(0).json();
    let before = listed();
    for more in [&[][..], &["--budget-usd", "2.1"]] {
        let resume = [&["resume", "last", "--cancelled"][..], more].concat();
        let refused = place.run(&resume).expect_code(2);
        let granted = if more.is_empty() { "2.00" } else { "2.10" };
        let left = if more.is_empty() { "0.11" } else { "0.21" };
        let why = format!(
            "the budget of the tree is too small: {granted} usd granted, 1.89 used, {left} left, \
             and its last pieces used 0.27 each"
        );
        assert!(refused.stderr.contains(&why), "{}", refused.stderr);
        assert!(refused.stderr.contains(" --budget-usd 11.00`"), "{}", refused.stderr);
    }
    assert_eq!(listed(), before);
    // More money: eleven in all, and what was paid for is kept.
    let resumed = place.run(&["resume", "last", "--budget-usd", "3"]).expect_code(0);
    assert!(resumed.stderr.contains("11 of 40 pieces completed"), "{}", resumed.stderr);
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn agents_of_two_runtimes_in_one_tree() {
    let rules = [
        at(
            "count",
            1,
            Reply::call("sessions_spawn", json!({"task": "x", "agentId": "counter", "wait": true})),
        ),
        at("count", 2, Reply::text("counted {{result:/outcome/data}}")),
    ];
    let agents = "[[agents.list]]\nid = \"counter\"\nruntime = \"exec\"\ncommand = [\"echo\", \"42\"]\n\
                  [agents.defaults.subagents]\nallowAgents = [\"counter\"]\n";
    let (place, _api) = stage(rules, agents);
    let outcome = run(&place, &["count"]).expect_code(0);
    assert!(outcome.stdout().starts_with("counted 42"), "{}", outcome.stdout());
}

#[test]
fn settings_of_agents_reach_it() {
    let big = Usage { input: 900, output: 200, ..Usage::default() };
    let rules = [
        Rule::when(Condition::Prompt("too long to go on with".into()), Reply::text("NOTES")),
        Rule::when(Condition::Prompt("NOTES".into()), Reply::text("finished from notes")),
        at("go", 1, spawns(&["child"])).usage(big),
        Rule::always(Reply::text("x")),
    ];
    let (place, _api) = stage(rules, "[agents.defaults.compaction]\natTokens = 1000\n");
    assert_eq!(run(&place, &["go"]).expect_code(0).stdout(), "finished from notes\n");
}

#[test]
fn the_turns_of_an_agent_have_an_end_of_their_own() {
    let rules = [Rule::always(Reply::call("sessions_status", json!({})))];
    let own = "[[agents.list]]\nid = \"main\"\nmaxTurns = 2\n";
    let (place, api) = stage(rules, own);
    let ended = run(&place, &["--json", "go"]).expect_code(1);
    assert_eq!(ended.json()["error"]["code"], "turn_limit");
    assert_eq!(api.requests().len(), 3);
}

#[test]
fn what_it_costs_is_said_or_not_known() {
    let check = |more: &str, noted: &str, estimated: f64| {
        let (place, _api) = stage([Rule::always(Reply::text("x"))], more);
        let outcome =
            place.run(&["run", "--json", "--config", "c.toml", "--runtime", "openai", "t"]);
        let outcome = outcome.expect_code(0);
        assert!(outcome.stderr.contains(noted), "{more}: {}", outcome.stderr);
        assert_eq!(outcome.json()["cost"]["estimatedUsd"], json!(estimated), "{more}");
    };
    check("", "what this costs is not known", 0.0);
    let prices = "[prices.small]\ninputPerMillion = 100\noutputPerMillion = 200\n";
    check(prices, "this may cost up to $5.00", 0.002);
}

#[test]
fn settings_that_cannot_work_start_nothing() {
    let check = |more: &str, expected: &str| {
        let (place, api) = stage([], more);
        let outcome = run(&place, &["t"]);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert!(api.requests().is_empty());
        outcome
    };
    let key = check(
        "keyVariable = \"NOT_SET\"\n",
        "the variable NOT_SET, which holds the key, is not set",
    );
    key.expect_code(5);
    check("baseURL = \"x\"\n", "unknown field `baseURL`").expect_code(2);
}

#[test]
fn a_model_hands_tasks_on_and_looks_after_its_children() {
    let call = |name: &str, arguments| Reply::call(name, arguments);
    let by_child = "{{result:/runId}}";
    let rules = [
        at("lead it", 1, call("sessions_delegate", json!({"task": "translate the page"}))),
        at("lead it", 2, call("sessions_delegate", json!({"task": "format the commit"}))),
        at("lead it", 3, call("sessions_history", json!({"run": by_child}))),
        at("lead it", 4, call("sessions_report", json!({"text": "half of it is done"}))),
        at("lead it", 5, call("sessions_list", json!({"limit": 5}))),
        at("lead it", 6, call("sessions_status", json!({}))),
        // Its child is not waited for: what it brings comes before this or after it.
        at("lead it", 7, Reply::text("the lead is done")),
        Rule::when(Condition::Turn(2), Reply::text("the lead is done")),
        Rule::when(Condition::Prompt("format the commit".into()), Reply::text("formatted")),
    ];
    let team = "[[agents.list]]\nid = \"lead\"\nruntime = \"openai\"\n\
        preferredSubagents = [{ scribe = \"For commit formatting\" }]\n\
        [[agents.list]]\nid = \"scribe\"\nruntime = \"openai\"\ncanDelegate = false\n";
    let (place, api) = stage(rules, team);
    let outcome = place.run(&["-q", "run", "--config", "c.toml", "--agent", "lead", "lead it"]);
    let outcome = outcome.expect_code(0);
    assert_eq!(outcome.stdout(), "the lead is done\n");
    let requests = api.requests();
    let said = requests.iter().map(|request| request.body.to_string()).collect::<Vec<_>>();
    let last =
        said.iter().find(|body| body.contains("rootUserRequest")).expect("it was asked again");
    for expected in ["execute_directly", "accepted", "scribe", "sessionKey", "lead it"] {
        assert!(last.contains(expected), "{expected}: {last}");
    }
    // The scribe may have no children: it gets no tools for them.
    let is_scribe = |prompt: &str| prompt.starts_with("format the commit");
    let of_scribe = requests.iter().find(|request| is_scribe(&request.conversation.prompt));
    let of_scribe = of_scribe.expect("the scribe was asked").body.to_string();
    assert!(of_scribe.contains("sessions_report"), "{of_scribe}");
    assert!(!of_scribe.contains("sessions_list"), "{of_scribe}");
    let tree = place.run(&["tree", "--json"]).json();
    assert_eq!(tree[0]["reported"], "half of it is done", "{tree}");
    assert_eq!(tree[0]["children"][0]["agent"], "scribe", "{tree}");
}

#[test]
fn a_model_cancels_a_child() {
    let rules = [
        at("start", 1, Reply::call("sessions_spawn", json!({"task": "hang"}))),
        at("start", 2, Reply::call("sessions_cancel", json!({"run": "{{result:/runId}}"}))),
        at("start", 3, Reply::text("cancelled")),
        Rule::when(Condition::Prompt("hang".into()), Reply::Hang),
        Rule::when(Condition::Turn(2), Reply::text("done")),
    ];
    let (place, _api) = stage(rules, "");
    run(&place, &["start"]).expect_code(0);
    let tree = place.run(&["tree", "--json"]).json();
    let child = &tree[0]["children"][0];
    assert_eq!(
        (&child["status"], &tree[0]["status"]),
        (&"cancelled".into(), &"completed".into()),
        "{tree}"
    );
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_model_that_repeats_itself_is_named_and_stopped_where_it_is_to_be() {
    let rules = || {
        [
            at("look", 12, Reply::text("seen")),
            Rule::always(Reply::call("sessions_status", json!({}))),
        ]
    };
    let repeats = |place: &Place| -> Vec<String> {
        let events = place.run(&["events", "last", "--json"]).expect_code(0);
        let events = events.stdout().lines().map(str::to_owned);
        events.filter(|event| event.contains(r#""repeats""#)).collect()
    };
    let (place, _api) = stage(rules(), "");
    run(&place, &["look"]).expect_code(0);
    assert_eq!(repeats(&place).len(), 1);
    run(&place, &["look"]).expect_code(0);
    assert_eq!(repeats(&place).len(), 1, "of the second tree");

    let (place, api) = stage(rules(), "[agents.defaults.subagents]\nonRepeat = \"stop\"\n");
    let stopped = run(&place, &["--json", "look"]).expect_code(1).json();
    assert_eq!(stopped["error"]["code"], "repeated", "{stopped}");
    let message = "used sessions_status with the same input 10 times in a row";
    assert_eq!(stopped["error"]["message"], message);
    let asked = api.requests().len();
    assert!((10..=11).contains(&asked), "{asked}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn an_agent_without_a_model_is_refused_before_anything_starts() {
    let (place, api) = stage([Rule::always(Reply::text("fruit"))], "");
    let config = std::fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    place.file("c.toml", config.replace("model = \"small\"\n", ""));
    let outcome = run(&place, &["go"]).expect_code(5);
    assert!(
        outcome.text().contains("no model is chosen for the agent `main`"),
        "{}",
        outcome.text()
    );
    let own = "[[agents.list]]\nid = \"main\"\nmodel = \"small\"\n";
    place.file("c.toml", format!("{}{own}", config.replace("model = \"small\"\n", "")));
    run(&place, &["go"]).expect_code(0);
    assert_eq!(api.requests().len(), 1);
}
