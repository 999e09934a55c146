//! Conversations that grow beyond what is good for them.

use crate::common::{Place, admitting, parent, progress, text};
use offshoot_fake_model_api::{ApiError, Condition, Reply, Rule, Usage};
use offshoot_model::Reason;
use offshoot_runtime_openai::{AgentOptions, Compaction, OpenAiOptions, Pruning, SoftTrim};
use serde_json::{Value, json};

/// The text that makes the model ask for a summary.
const ASKS: &str = "too long to go on with";

fn at(tokens: u64) -> impl FnOnce(&mut OpenAiOptions) {
    move |options| {
        options.compaction = Compaction { at_tokens: Some(tokens), ..Compaction::default() }
    }
}

fn big(rule: Rule) -> Rule {
    rule.usage(Usage { input: 900, output: 200, ..Usage::default() })
}

fn roles(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().into_iter().flatten();
    messages.filter_map(|message| message["role"].as_str()).collect()
}

#[tokio::test]
async fn past_its_limit_it_is_summed_up() {
    let place = Place::with(
        [
            Rule::when(Condition::Prompt(ASKS.into()), Reply::text("NOTES: asked a child")),
            Rule::when(Condition::Prompt("NOTES".into()), Reply::text("finished from notes")),
            big(Rule::always(Reply::call("sessions_spawn", json!({"task": "x"})))),
        ],
        at(1000),
    );
    let listener = admitting(1);
    let (finished, events) = place.run_with(parent("the task"), listener).await;
    assert_eq!(text(&finished), "finished from notes");
    assert!(progress(&events)[0].starts_with("sums up a conversation of about 11"), "{events:?}");
    let bodies: Vec<_> = place.api.requests().into_iter().map(|request| request.body).collect();
    let [first, summary, last] = &bodies[..] else { panic!("{} requests", bodies.len()) };
    assert_eq!(roles(first), ["system", "user"]);
    assert_eq!(roles(summary), ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(summary.get("tools"), None);
    assert_eq!(roles(last), ["system", "user"]);
    assert_eq!(
        last["messages"][1]["content"],
        "the task\n\nWhat you have done about this so far, summed up by you:\nNOTES: asked a child"
    );
    assert_eq!(last["messages"][0], first["messages"][0], "instructions stay word for word");
    assert_eq!(
        finished.usage.expect("no usage was reported").total().known(),
        Some(1100 + 15 + 15),
        "the summary is charged too"
    );
}

#[tokio::test]
async fn one_that_the_service_refuses_is_summed_up_too() {
    let too_long = ApiError::new(400, "context_length_exceeded", "too many tokens");
    let place = Place::new([
        Rule::when(Condition::Prompt(ASKS.into()), Reply::text("NOTES")),
        Rule::when(Condition::Prompt("NOTES".into()), Reply::text("done")),
        Rule::when(Condition::Step(2), Reply::Error(too_long.clone())),
        Rule::always(Reply::call("sessions_spawn", json!({"task": "x"}))),
    ]);
    let listener = admitting(1);
    let (finished, _) = place.run_with(parent("go"), listener).await;
    assert_eq!(text(&finished), "done");
    // A first prompt that is too long has nothing that could be summed up.
    let place = Place::new([Rule::always(Reply::Error(too_long))]);
    let (finished, _) = place.run("go").await;
    let expected = "the service answered 400: too many tokens".to_owned();
    assert_eq!(finished.reason, Reason::RuntimeError { message: expected, retryable: false });
    assert_eq!(place.api.requests().len(), 1);
}

#[tokio::test]
async fn an_agent_may_have_its_own_settings() {
    let off = AgentOptions {
        compaction: Some(Compaction { mode: Some("off".into()), ..Compaction::default() }),
        ..AgentOptions::default()
    };
    let place = Place::with(
        [
            Rule::when(Condition::Prompt(ASKS.into()), Reply::text("NOTES")),
            Rule::when(Condition::Step(2), Reply::text("whole")),
            big(Rule::always(Reply::call("sessions_spawn", json!({"task": "x"})))),
        ],
        |options| {
            at(1000)(options);
            options.agents.insert("main".into(), off);
        },
    );
    let listener = admitting(1);
    let (finished, _) = place.run_with(parent("go"), listener).await;
    assert_eq!(text(&finished), "whole");
    assert_eq!(place.api.requests().len(), 2);
}

#[tokio::test]
async fn a_summary_without_words_leaves_the_conversation() {
    let place = Place::with(
        [
            Rule::when(Condition::Prompt(ASKS.into()), Reply::text("  ")),
            Rule::when(Condition::Step(3), Reply::text("whole")),
            big(Rule::always(Reply::call("sessions_spawn", json!({"task": "x"})))),
        ],
        at(1000),
    );
    let listener = admitting(1);
    let (finished, _) = place.run_with(parent("go"), listener).await;
    assert_eq!(text(&finished), "whole");
    let asked = place.api.conversations().into_iter().filter(|seen| seen.prompt.contains(ASKS));
    assert_eq!(asked.count(), 1, "it is not asked again and again");
}

#[tokio::test]
async fn old_results_are_cut_before_they_are_sent_again() {
    let pruning = Pruning {
        mode: Some("on".into()),
        keep_last_assistants: 1,
        soft_trim: SoftTrim { max_chars: 40, head_chars: 10, tail_chars: 10 },
    };
    let place = Place::with(
        [
            Rule::when(Condition::Step(3), Reply::text("done")),
            Rule::always(Reply::call("sessions_spawn", json!({"task": "x", "wait": true}))),
        ],
        |options| options.context_pruning = pruning,
    );
    let listener = admitting(1);
    place.run_with(parent("go"), listener).await;
    let last = &place.api.requests()[2].body["messages"];
    let result = |at: usize| last[at]["content"].as_str().expect("text").to_owned();
    assert!(result(3).contains("characters of this old result are left out"), "{}", result(3));
    assert!(result(5).contains("\"data\":\"X\""), "the last one is whole: {}", result(5));
}
