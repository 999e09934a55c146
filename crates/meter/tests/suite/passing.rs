//! Requests that pass: what leaves, what comes back, what they are charged.

use offshoot_fake_model_api::{Reply, Rule, Usage};
use offshoot_meter::{Ending, Refusal, Verdict};
use serde_json::json;

use crate::house::{House, KEY, MESSAGE};

/// Prices of the house: a token read costs 3, and one written 15 millionths. The service reports 10 and 5.
const CHARGE: &str = "0.000105";

#[tokio::test]
async fn each_protocol_is_reserved_sent_and_charged() {
    let chat = r#"{"model":"priced","stream":true,"messages":[{"role":"user","content":"greet"}]}"#;
    let responses = r#"{"model":"priced","input":"greet"}"#;
    let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"greet"}]}]}"#;
    for (path, body, limit) in [
        ("/v1/messages", MESSAGE, None),
        ("/v1/chat/completions", chat, Some("max_tokens")),
        ("/v1/responses", responses, Some("max_output_tokens")),
        ("/v1beta/models/priced:generateContent", gemini, Some("maxOutputTokens")),
        ("/v1beta/models/priced:streamGenerateContent?alt=sse", gemini, Some("maxOutputTokens")),
    ] {
        let (mut house, api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
        let answer = house.send("POST", path, body);
        let reserve = house.grant().await;
        assert_eq!((reserve.run, reserve.model.as_str()), (house.run, "priced"), "{path}");
        let settle = house.settle().await;
        assert_eq!(settle.ending, Ending::Answered, "{path}");
        assert_eq!(settle.charge.dollars, Some(CHARGE.parse().expect("dollars")), "{path}");
        assert!(reserve.bound.dollars() >= settle.charge.dollars, "{path}");
        let answer = answer.await.expect("no panic");
        assert_eq!((answer.status, answer.broken), (200, false), "{path}: {answer:?}");
        assert!(answer.body.contains("hello"), "{path}: {answer:?}");
        // The program had not asked for its use, so the piece that tells it was put in for the meter and is not passed on.
        assert!(
            !answer.body.contains("prompt_tokens") || path != "/v1/chat/completions",
            "{answer:?}"
        );
        let sent = &api.requests()[0].body;
        if let Some(limit) = limit {
            assert!(sent.to_string().contains(limit), "a limit of the answer was written: {sent}");
        } else {
            let asked: serde_json::Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(*sent, asked, "what has a limit leaves as it came");
        }
    }
}

#[tokio::test]
async fn the_operators_key_is_put_in_on_the_way_out() {
    let (mut house, api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
    let message = house.message();
    house.grant().await;
    message.await.expect("no panic");
    let request = &api.requests()[0];
    assert_eq!((request.api_key.as_deref(), request.authorization.as_deref()), (Some(KEY), None));
}

#[tokio::test]
async fn no_request_leaves_without_its_reservation() {
    let (mut house, api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
    let refusal = |code: &str| Refusal { code: code.into(), message: "no".into(), hint: None };
    for verdict in [
        Verdict::Refused(refusal("budget_exhausted")),
        // What the provider has counted is too much as well.
        Verdict::TooMuch(refusal("budget_exhausted")),
    ] {
        let is_too_much = matches!(verdict, Verdict::TooMuch(_));
        let message = house.message();
        let reserve = house.reserve().await;
        let bound = reserve.bound.tokens();
        reserve.answer.send(verdict.clone()).expect("the program waits");
        if is_too_much {
            // Asked once more, with what the provider has counted.
            let last = house.reserve().await;
            assert!(last.bound.tokens() < bound, "{} of {bound}", last.bound.tokens());
            last.answer.send(verdict).expect("the program waits");
        }
        let answer = message.await.expect("no panic");
        assert_eq!(answer.status, 402, "{answer:?}");
        assert!(
            answer.body.contains("offshoot refused this request (budget_exhausted): no"),
            "{answer:?}"
        );
    }
    // Held for too long, and with an owner that is gone.
    let held = house.message();
    let reserve = house.reserve().await;
    let answer = held.await.expect("no panic");
    assert!(answer.body.contains("held_too_long"), "{answer:?}");
    drop(reserve);
    assert_eq!(
        house.settle().await.ending,
        Ending::NotSent,
        "what may be held for it is free again"
    );
    let left = house.message();
    drop(house.reserve().await);
    let answer = left.await.expect("no panic");
    assert!(answer.body.contains("tree_ended"), "{answer:?}");
    assert!(api.conversations().is_empty(), "none of them left");
}

/// A request of which more is known than a count with its margin tells is refused with the amount that it would reserve.
#[tokio::test]
async fn a_refusal_names_the_amount_that_would_be_reserved() {
    let (mut house, _api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
    let message = house.message();
    house.grant().await;
    message.await.expect("no panic");
    house.settle().await;
    let message = house.message();
    let refusal = Refusal { code: "budget_exhausted".into(), message: "no".into(), hint: None };
    let reserve = house.reserve().await;
    assert!(!reserve.is_last);
    reserve.answer.send(Verdict::TooMuch(refusal.clone())).expect("the program waits");
    // The second question is the last, and has no larger bound.
    let last = house.reserve().await;
    assert!(last.is_last);
    assert_eq!(last.bound.tokens(), reserve.bound.tokens());
    last.answer.send(Verdict::TooMuch(refusal)).expect("the program waits");
    let answer = message.await.expect("no panic");
    assert!(answer.body.contains("(budget_exhausted): no"), "{answer:?}");
    assert!(house.is_silent());
}

/// A request that names no limit of its answer is asked for with half of the limit, as long as it is too much: an agent that has little left goes on.
#[tokio::test]
async fn a_limit_that_the_meter_writes_is_halved_until_it_fits() {
    let chat = r#"{"model":"priced","messages":[{"role":"user","content":"greet"}]}"#;
    let named = chat.replace("\"model\"", "\"max_tokens\":4000,\"model\"");
    let too_much = || {
        let (code, message) = ("budget_exhausted".into(), "no".into());
        Verdict::TooMuch(Refusal { code, message, hint: None })
    };
    for (body, refused, expected) in [
        (chat, 2, &[32_000, 16_000, 8_000][..]),
        (chat, 6, &[32_000, 16_000, 8_000, 4_000, 2_000, 1_024]),
        // A limit of the program stays.
        (&named, 1, &[4_000]),
    ] {
        let (mut house, api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
        let answer = house.send("POST", "/v1/chat/completions", body);
        let mut limits = Vec::new();
        for _ in 0..refused {
            let reserve = house.reserve().await;
            assert_eq!(
                reserve.is_last,
                limits.len() + 1 == expected.len().max(refused),
                "{limits:?}"
            );
            assert_eq!(reserve.is_shortened, !limits.is_empty(), "{limits:?}");
            limits.push(reserve.bound.output);
            reserve.answer.send(too_much()).expect("the program waits");
        }
        if limits.len() < expected.len() {
            limits.push(house.grant().await.bound.output);
            answer.await.expect("no panic");
            assert_eq!(api.requests()[0].body["max_tokens"], *expected.last().expect("one"));
            assert!(!house.settle().await.is_cut, "five tokens are fewer");
        } else {
            assert_eq!(answer.await.expect("no panic").status, 402);
            assert!(api.requests().is_empty());
        }
        assert_eq!(limits, expected);
    }
}

/// An answer that reaches a shortened limit was cut by it; one that reaches the limit of its program was not.
#[tokio::test]
async fn an_answer_that_reaches_its_shortened_limit_is_cut() {
    let chat = r#"{"model":"priced","messages":[{"role":"user","content":"greet"}]}"#;
    for (is_too_much, limit) in [(true, 16_000), (false, 32_000)] {
        let used = Usage { input: 10, output: limit, ..Usage::default() };
        let rule = Rule::always(Reply::text("hello")).usage(used);
        let (mut house, _api) = House::with_rules([rule]).await;
        let answer = house.send("POST", "/v1/chat/completions", chat);
        if is_too_much {
            let (code, message) = ("budget_exhausted".into(), "no".into());
            let refusal = Verdict::TooMuch(Refusal { code, message, hint: None });
            house.reserve().await.answer.send(refusal).expect("the program waits");
        }
        house.grant().await;
        assert_eq!(house.settle().await.is_cut, is_too_much);
        answer.await.expect("no panic");
    }
}

#[tokio::test]
async fn what_has_no_cost_that_could_be_bounded_does_not_pass() {
    let (mut house, api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
    let unpriced = json!({"model": "other", "max_tokens": 5, "messages": []}).to_string();
    let tools = json!({
        "model": "priced", "max_tokens": 5, "messages": [],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
    });
    for (method, path, body, code) in [
        ("POST", "/v1/messages/batches", MESSAGE, "unmetered_request"),
        ("POST", "/v1/images/generations", "{}", "unmetered_request"),
        ("POST", "/v1/embeddings", "{}", "unmetered_request"),
        ("POST", "/v1/messages", "no JSON", "malformed_request"),
        ("POST", "/v1/messages", &unpriced, "cost_unbounded"),
        ("POST", "/v1/messages", &tools.to_string(), "server_tool"),
        ("POST", "/v1/messages", &format!("\"{}\"", "x".repeat(2 << 20)), "request_too_large"),
    ] {
        let answer = house.send(method, path, body).await.expect("no panic");
        assert!(answer.body.contains(code), "{method} {path}: {answer:?}");
    }
    assert!(house.is_silent() && api.requests().is_empty());
}

#[tokio::test]
async fn what_costs_nothing_passes_without_a_question() {
    let (mut house, api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
    let hello = house.send_as("", "HEAD", "/api/hello", "").await.expect("no panic");
    assert_eq!(hello.status, 200, "answered here, and without a ticket");
    let upgrade = format!(
        "GET /v1/responses HTTP/1.1\r\nhost: meter\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         authorization: Bearer {}\r\n\r\n",
        house.ticket.expose()
    );
    let upgrade = crate::house::exchange(house.address, upgrade.as_bytes());
    let upgrade = tokio::time::timeout(std::time::Duration::from_secs(5), upgrade);
    if let Ok(upgrade) = upgrade.await {
        assert_eq!(upgrade.status, 426, "it goes on by plain HTTP: {upgrade:?}");
    }
    house.send("GET", "/v1/models", "").await.expect("no panic");
    assert_eq!(api.requests().len(), 1, "a list of models is the provider's");
    assert!(house.is_silent());
}
