//! Answers, tools and turns, against a scripted endpoint.

use std::sync::Arc;

use crate::common::{Listener, Place, admitting, launch, parent, progress, run_id, text};
use offshoot_fake_model_api::{Condition, Reply, Rule, ToolCall, Usage as Numbers};
use offshoot_model::{
    AgentId, Cost, MicroUsd, Reason, Refusal, RefusalCode, SpawnRequest, TokenCount,
};
use offshoot_runtime::{ContextFile, Launch, LetterBox, Output, OutputFormat, Pass, RunEvent};
use offshoot_runtime_openai::{AgentOptions, CostOption, Price};
use serde_json::{Value, json};

fn prompt(text: &str) -> Condition {
    Condition::Prompt(text.into())
}

fn result(text: &str) -> Condition {
    Condition::Result(text.into())
}

#[tokio::test]
async fn an_answer_in_pieces_is_whole() {
    let usage = Numbers { input: 20, output: 7, cache_read: 3, cache_write: 0 };
    let said = "Grüße — 👋 an\nalle 日本語\nZeilen";
    let place = Place::new([Rule::always(Reply::text(said)).usage(usage)]);
    let (finished, events) = place.run("greet").await;
    assert_eq!(finished.reason, Reason::Completed { exit_code: None });
    assert_eq!(text(&finished), said);
    assert_eq!(finished.usage.expect("no usage was reported").total().known(), Some(30));
    assert_eq!(
        (
            finished.usage.expect("no usage was reported").input.known(),
            finished.usage.expect("no usage was reported").cache_read.known()
        ),
        (Some(20), Some(3))
    );
    assert_eq!(finished.cost, Some(Cost::unknown()), "the endpoint did not say what it costs");
    assert_eq!(events[0], RunEvent::Started(None));
    assert_eq!(progress(&events), ["Grüße — 👋 an", "alle 日本語"]);
    let (usage, cost) =
        finished.usage.zip(finished.cost).expect("no usage or no cost was reported");
    let used = RunEvent::Used { usage, cost };
    assert_eq!(events.last(), Some(&used));

    let request = &place.api.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.authorization.as_deref(), Some("Bearer sk-secret"));
    let body = &request.body;
    assert_eq!((&body["model"], &body["stream"]), (&json!("small"), &json!(true)));
    assert_eq!(body["messages"][1], json!({"role": "user", "content": "greet"}));
    assert!(body["messages"][0]["content"].as_str().is_some_and(|text| text.contains("sub-agent")));
    assert_eq!(body.get("tools"), None, "there is no room for children");
}

#[tokio::test]
async fn the_launch_decides_on_model_and_thinking() {
    let place = Place::with([Rule::always(Reply::text("x"))], |options| {
        options.request.insert("temperature".into(), json!(0));
        options.request.insert("model".into(), json!("no"));
    });
    let chosen =
        Launch { model: Some("large".into()), thinking: Some("high".into()), ..launch("t") };
    place.run_with(chosen, Listener::default()).await;
    let plain = Launch { thinking: Some("off".into()), ..launch("t") };
    place.run_with(plain, Listener::default()).await;
    let bodies: Vec<_> = place.api.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(
        (&bodies[0]["model"], &bodies[0]["reasoning_effort"]),
        (&json!("large"), &json!("high"))
    );
    assert_eq!((&bodies[1]["model"], bodies[1].get("reasoning_effort")), (&json!("small"), None));
    assert_eq!(bodies[1]["temperature"], 0);
}

#[tokio::test]
async fn json_where_json_was_asked_for() {
    for (said, expected) in
        [(r#" {"a": 1}"#, true), ("[1, 2]", true), ("{not json", false), ("7", false)]
    {
        let place = Place::new([Rule::always(Reply::text(said))]);
        let json = Launch { output: OutputFormat::Json, ..launch("t") };
        let (finished, _) = place.run_with(json, Listener::default()).await;
        assert_eq!(matches!(finished.output, Output::Json(_)), expected, "{said}");
    }
}

#[tokio::test]
async fn the_service_is_asked_for_the_form_of_the_answer() {
    let schema = || offshoot_model::JsonText::parse(r#"{"type":"object"}"#.to_owned()).ok();
    let rules = || [Rule::always(Reply::text("{}"))];
    let place = Place::new(rules());
    let with_schema = Launch { schema: schema(), ..launch("t") };
    place.run_with(with_schema, Listener::default()).await;
    place.run("t").await;
    let bodies: Vec<_> = place.api.requests().into_iter().map(|request| request.body).collect();
    let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}});
    assert_eq!(bodies[0]["response_format"], format);
    assert_eq!(bodies[1].get("response_format"), None);
    // One that the service cannot do is switched off with another one.
    let other = Place::with(rules(), |options| {
        options.request.insert("response_format".into(), json!({"type": "text"}));
    });
    let with_schema = Launch { schema: schema(), ..launch("t") };
    other.run_with(with_schema, Listener::default()).await;
    assert_eq!(other.api.requests()[0].body["response_format"], json!({"type": "text"}));
}

#[tokio::test]
async fn what_it_used_and_what_it_cost() {
    let million = |text: &str| text.parse::<MicroUsd>().expect("dollars");
    let price = Price {
        input_per_million: million("1"),
        output_per_million: million("2"),
        cache_read_per_million: None,
        cache_write_per_million: None,
    };
    let rules = || [Rule::always(Reply::text("x"))];
    let priced = Place::with(rules(), |options| {
        options.prices.insert("small".into(), price);
    });
    let (finished, _) = priced.run("t").await;
    assert_eq!(
        finished.cost.expect("no cost was reported").estimated_usd,
        MicroUsd::from_micros(10 + 2 * 5)
    );
    let free = Place::with(rules(), |options| options.cost = CostOption::None);
    assert_eq!(free.run("t").await.0.cost, Some(Cost::NONE));
    let silent = Place::with(rules(), |options| options.ask_usage = false);
    let (finished, _) = silent.run("t").await;
    let request = &silent.api.requests()[0].body;
    assert_eq!(request.get("stream_options"), None);
    // No token is shorter than a byte.
    let bound = TokenCount::Estimated(request.to_string().len() as u64 + 1);
    let usage = finished.usage.expect("no usage was reported");
    assert_eq!(usage.total(), bound, "what is not reported is not zero");
}

#[tokio::test]
async fn children_by_tools() {
    let spawn = |task: &str| ToolCall {
        name: "sessions_spawn".into(),
        input: json!({"task": task, "agentId": "scout", "label": "by sk-secret, ticket-of-the-run"}),
    };
    let place = Place::new([
        Rule::when(Condition::Step(1), Reply::Calls(vec![spawn("left"), spawn("right")])),
        Rule::when(Condition::Step(2), Reply::call("sessions_wait", json!({}))),
        Rule::always(Reply::text("{{result}}")),
    ]);
    let pass = Pass { socket: Arc::new("/socket".into()), ticket: "ticket-of-the-run".into() };
    let launch = Launch { pass: Some(pass), ..parent("split") };
    let listener = admitting(2);
    let (finished, events) = place.run_with(launch, listener.clone()).await;
    let spawned = listener.asked();
    let tasks: Vec<_> = spawned.iter().map(|request| &*request.task).collect();
    assert_eq!(tasks, ["left", "right"]);
    assert_eq!(spawned[0].agent, AgentId::parse("scout").ok());
    let answer: Value = serde_json::from_str(text(&finished)).expect("JSON");
    assert_eq!(answer["status"], "ended");
    let data: Vec<_> = answer["ended"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|envelope| &envelope["data"])
        .collect();
    assert_eq!(data, ["LEFT", "RIGHT"]);
    let used = events.iter().filter_map(|event| match event {
        RunEvent::ToolUsed(used) => Some(used.to_string()),
        _ => None,
    });
    let expected = [
        r#"sessions_spawn {"agentId":"scout","label":"by [redacted], [redacted]","task":"left"}"#,
        r#"sessions_spawn {"agentId":"scout","label":"by [redacted], [redacted]","task":"right"}"#,
        "sessions_wait {}",
    ];
    assert_eq!(used.collect::<Vec<_>>(), expected);
    let accepted = &place.api.conversations()[1].tool_results[1];
    let accepted: Value = serde_json::from_str(accepted).expect("JSON");
    assert_eq!(accepted, json!({"status": "accepted", "runId": run_id(2).to_string()}));
    assert_eq!(place.api.conversations()[0].tools, ["sessions_spawn", "sessions_wait"]);
    assert_eq!(
        finished.usage.expect("no usage was reported").total().known(),
        Some(45),
        "of three calls"
    );
}

/// Each of them waits until all three live: one after the other they would wait for ever.
#[tokio::test]
async fn children_that_are_waited_for_run_side_by_side() {
    let spawn = |task: &str| ToolCall {
        name: "sessions_spawn".into(),
        input: json!({"task": task, "wait": true}),
    };
    let place = Place::new([
        Rule::when(Condition::Step(1), Reply::Calls(vec![spawn("a"), spawn("b"), spawn("c")])),
        Rule::always(Reply::text("{{result}}")),
    ]);
    let listener = admitting(3);
    let (finished, _) = place.run_with(parent("split"), listener).await;
    let lines =
        text(&finished).lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let data: Vec<_> = lines.map(|answer| answer["outcome"]["data"].clone()).collect();
    assert_eq!(data, ["A", "B", "C"], "in the order of the calls");
}

#[tokio::test]
async fn a_refusal_is_the_answer_of_the_tool() {
    let place = Place::new([
        Rule::when(Condition::Step(1), Reply::call("sessions_spawn", json!({"task": "x"}))),
        Rule::when(result("depth_limit"), Reply::text("then I do it myself")),
    ]);
    // Whether the tool was on offer or not: admission has the last word.
    for launch in [parent("go"), launch("go")] {
        let refusal = |_: &SpawnRequest, _| {
            let refusal = Refusal::new(RefusalCode::DepthLimit, "Cannot spawn deeper.");
            Err(refusal.with_hint("Do it yourself."))
        };
        let (finished, _) = place.run_with(launch, Listener::default().spawning(refusal)).await;
        assert_eq!(text(&finished), "then I do it myself");
    }
    let offered: Vec<_> = place.api.conversations().iter().map(|seen| seen.tools.len()).collect();
    assert_eq!(offered, [2, 2, 0, 0]);
    let refusal = &place.api.conversations()[1].tool_results[0];
    assert!(refusal.contains(r#""hint":"Do it yourself.""#), "{refusal}");
}

#[tokio::test]
async fn a_call_that_is_wrong_in_itself_is_answered_too() {
    let place = Place::new([
        Rule::when(Condition::Step(1), Reply::call("rm", json!({"path": "/"}))),
        Rule::when(Condition::Step(2), Reply::call("sessions_spawn", json!({"job": 1}))),
        Rule::always(Reply::text("{{result}}")),
    ]);
    let (finished, _) = place.run_with(parent("go"), Listener::default()).await;
    assert!(text(&finished).contains("unknown key `job`"), "{}", text(&finished));
    let first = &place.api.conversations()[1].tool_results[0];
    assert!(first.contains("there is no tool `rm`"), "{first}");
}

#[tokio::test]
async fn rounds_of_tools_have_an_end() {
    let place = Place::with([Rule::always(Reply::call("sessions_wait", json!({})))], |options| {
        options.max_rounds = 3
    });
    let listener = admitting(0);
    let (finished, _) = place.run_with(parent("go"), listener).await;
    assert_eq!(finished.reason, Reason::TurnLimit);
    assert_eq!(place.api.requests().len(), 4);
    let place = Place::with([Rule::always(Reply::call("sessions_wait", json!({})))], |options| {
        let own = AgentOptions { max_rounds: Some(1), ..AgentOptions::default() };
        options.agents.insert("main".to_owned(), own);
    });
    let listener = admitting(0);
    let (finished, _) = place.run_with(parent("go"), listener).await;
    assert_eq!(finished.reason, Reason::TurnLimit);
    assert_eq!(place.api.requests().len(), 2, "an agent has a number of its own");
}

#[tokio::test]
async fn a_long_value_is_read_by_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    std::fs::write(&path, "0123456789".repeat(10)).expect("a file");
    let value = offshoot_model::VariableRef {
        hash: offshoot_model::ContentHash::of(b"x"),
        size: 100,
        kind: offshoot_model::ValueKind::Text,
    };
    let context = vec![ContextFile { name: "log".into(), path, value }];
    let read = json!({"name": "log", "offset": 97});
    let place = Place::with(
        [
            Rule::when(Condition::Offers("context_read".into()), Reply::call("context_read", read))
                .and(Condition::Step(1)),
            Rule::always(Reply::text("{{result:/text}}")),
        ],
        |options| options.inline_bytes = 50,
    );
    let (finished, _) =
        place.run_with(Launch { context, ..launch("count") }, Listener::default()).await;
    assert_eq!(text(&finished), "789");
    assert!(place.api.conversations()[0].prompt.contains("\"log\" (100 bytes, type: text)"));
}

#[tokio::test]
async fn a_further_turn_goes_on_with_the_conversation() {
    let place = Place::new([
        Rule::when(prompt("results"), Reply::text("with results")),
        Rule::always(Reply::text("started them")),
    ]);
    let listener = Listener::default();
    listener.goes_on("here are the results");
    let (finished, _) = place.run_with(launch("go"), listener.clone()).await;
    assert_eq!(text(&finished), "with results", "the last answer counts");
    let answers = listener.answers();
    let answers: Vec<_> = answers.iter().map(|(answer, _)| answer.as_deref()).collect();
    assert_eq!(answers, [Some("started them"), Some("with results")]);
    let second = &place.api.requests()[1].body["messages"];
    let roles: Vec<_> =
        second.as_array().into_iter().flatten().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

#[tokio::test]
async fn letters_reach_a_turn_that_is_under_way() {
    let place = Place::new([
        Rule::when(prompt("hurry"), Reply::text("done in a hurry")),
        Rule::always(Reply::call("sessions_wait", json!({}))),
    ]);
    let letters = LetterBox::default();
    letters.put("hurry up".into());
    let (finished, _) = place.run_with_letters(parent("go"), admitting(0), letters).await;
    assert_eq!(text(&finished), "done in a hurry");
}
