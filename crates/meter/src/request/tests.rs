use hyper::body::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(protocol: Protocol, body: &str) -> Request {
    let model = (protocol == Protocol::Gemini).then_some("g-1");
    Request::read(protocol, model, false, body.as_bytes())
        .unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn edited(protocol: Protocol, body: &str, limit: Option<u64>, key: &str) -> String {
    let request = read(protocol, body);
    let body = Bytes::from(body.to_owned());
    let edits = request.edits(limit, key);
    String::from_utf8(pieces(&body, &edits).concat()).expect("text")
}

#[test]
fn what_a_request_asks_for() {
    let request = read(
        Protocol::Messages,
        r#"{"model":"m","max_tokens":100,"stream":true,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],
            "messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"tools":[{"name":"f"}],"speed":"fast",
            "inference_geo":"us","service_tier":"auto"}"#,
    );
    assert_eq!((request.model.as_str(), request.limit, request.streams), ("m", Some(100), true));
    assert_eq!((request.cache, request.fast), (CacheWrite::Hour, true));
    assert_eq!((request.region.as_deref(), request.tier.as_deref()), (Some("us"), Some("auto")));
    // One of the system, two messages, one tool, and seven other keys with their values.
    assert_eq!(request.parts.len(), 1 + 2 + 1 + 6);
    let chat = read(
        Protocol::Chat,
        r#"{"model":"m","messages":[],"n":3,"max_tokens":5,"max_completion_tokens":7,"prediction":{"content":"x"}}"#,
    );
    assert_eq!((chat.limit, chat.candidates, chat.more_output), (Some(7), 3, 15));
    let gemini = read(
        Protocol::Gemini,
        r#"{"contents":[],"generation_config":{"max_output_tokens":"9","candidateCount":2}}"#,
    );
    assert_eq!((gemini.model.as_str(), gemini.limit, gemini.candidates), ("g-1", Some(9), 2));
    let responses =
        read(Protocol::Responses, r#"{"model":"m","input":"hi","max_output_tokens":12}"#);
    assert_eq!((responses.limit, responses.cache), (Some(12), CacheWrite::Unasked));
}

#[test]
fn only_what_is_missing_is_written() {
    let check = |protocol, body: &str, key: &str, expected: &str| {
        assert_eq!(edited(protocol, body, Some(9), key), expected, "{body}");
    };
    use Protocol::{Chat, Gemini, Messages, Responses};
    let same = |protocol, body: &str| check(protocol, body, "max_tokens", body);
    same(Messages, r#"{"model":"m","max_tokens":1, "messages" : []}"#);
    same(Chat, r#"{"model":"m","max_tokens":1}"#);
    same(Chat, r#"{"model":"m","max_completion_tokens":1}"#);
    same(
        Chat,
        r#"{"model":"m","max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    same(Gemini, r#"{"generationConfig":{"maxOutputTokens":1}}"#);
    same(Responses, r#"{"model":"m","max_output_tokens":1,"stream":true}"#);
    check(Responses, r#"{ "model":"m"}"#, "", r#"{"max_output_tokens":9, "model":"m"}"#);
    check(
        Responses,
        r#"{"model":"m","max_output_tokens":null}"#,
        "",
        r#"{"model":"m","max_output_tokens":9}"#,
    );
    check(Chat, r#"{"model":"m"}"#, "max_tokens", r#"{"max_tokens":9,"model":"m"}"#);
    check(
        Chat,
        r#"{"model":"m","max_completion_tokens":null}"#,
        "max_completion_tokens",
        r#"{"model":"m","max_completion_tokens":9}"#,
    );
    check(
        Chat,
        r#"{"model":"m","stream":true}"#,
        "max_tokens",
        r#"{"max_tokens":9,"stream_options":{"include_usage":true},"model":"m","stream":true}"#,
    );
    check(
        Chat,
        r#"{"model":"m","max_tokens":1,"stream":true,"stream_options":{}}"#,
        "",
        r#"{"model":"m","max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    check(
        Chat,
        r#"{"model":"m","max_tokens":1,"stream":true,"stream_options":{"include_usage":false,"x":1}}"#,
        "",
        r#"{"model":"m","max_tokens":1,"stream":true,"stream_options":{"include_usage":true,"x":1}}"#,
    );
    check(
        Chat,
        r#"{"model":"m","max_tokens":1,"stream":true,"stream_options":null}"#,
        "",
        r#"{"model":"m","max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    check(Gemini, "{}", "", r#"{"generationConfig":{"maxOutputTokens":9}}"#);
    check(
        Gemini,
        r#"{"contents":[]}"#,
        "",
        r#"{"generationConfig":{"maxOutputTokens":9},"contents":[]}"#,
    );
    check(
        Gemini,
        r#"{"generation_config":{"temperature":0}}"#,
        "",
        r#"{"generation_config":{"maxOutputTokens":9,"temperature":0}}"#,
    );
    check(
        Gemini,
        r#"{"generationConfig":null}"#,
        "",
        r#"{"generationConfig":{"maxOutputTokens":9}}"#,
    );
    check(
        Gemini,
        r#"{"generationConfig":{}}"#,
        "",
        r#"{"generationConfig":{"maxOutputTokens":9}}"#,
    );
    // No limit is to be written.
    let body = r#"{"model":"m"}"#;
    assert_eq!(edited(Responses, body, None, ""), body);
}

#[test]
fn what_servers_read_in_two_ways_is_refused() {
    let check = |protocol, body: &str, expected: &str| {
        let error = Request::read(protocol, None, false, body.as_bytes()).expect_err(body);
        assert!(error.to_string().starts_with(expected), "{body}: {error}");
    };
    use Protocol::{Chat, Gemini, Messages};
    check(
        Messages,
        r#"{"model":"m","max_tokens":1,"max\u005ftokens":2}"#,
        "the key `max_tokens` is set twice",
    );
    check(Chat, r#"{"model":"m","Model":"n"}"#, "the key `Model` is set twice");
    let case = "the key `Max_Tokens` is not written in small letters";
    check(Chat, r#"{"model":"m","Max_Tokens":9}"#, case);
    check(Chat, "{\"model\":\"m\",\"max_to\u{212a}ens\":9}", "the key `max_to\u{212a}ens` is not");
    check(
        Chat,
        "{\"model\":\"m\",\"me\u{17f}\u{17f}ages\":[]}",
        "the key `me\u{17f}\u{17f}ages` is not",
    );
    check(Chat, r#"{"messages":[]}"#, "the request names no model");
    check(Chat, r#"{"model":7}"#, "`model` is not a text");
    check(Chat, r#"{"model":"m","stream":"yes"}"#, "`stream` is not true or false");
    check(Chat, r#"{"model":"m","n":-1}"#, "`n` is not a whole number");
    check(Messages, r#"{"model":"m","max_tokens":1.5}"#, "`max_tokens` is not a whole number");
    check(Messages, "[]", "the body is not a JSON object");
    check(Messages, "", "the body is not a JSON object");
    check(Messages, "{\"model\":\"m\"} x", "the body is not a JSON object");
    let twice = r#"{"generationConfig":{},"generation_config":{}}"#;
    let error = Request::read(Gemini, Some("g"), false, twice.as_bytes()).expect_err("twice");
    assert_eq!(error, Malformed::Twice("generationConfig".into()));
    let twice = r#"{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":2}}"#;
    assert!(Request::read(Gemini, Some("g"), false, twice.as_bytes()).is_err());
    assert!(Request::read(Chat, None, false, b"{\"model\":\"\xff\"}").is_err());
}

#[test]
fn what_the_provider_holds_fills_the_window() {
    let more = |protocol, body: &str| {
        let request = read(protocol, body);
        let fills = request.parts.iter().filter(|part| part.more == More::Window);
        fills.map(|part| part.changes).collect::<Vec<_>>()
    };
    use Protocol::{Gemini, Messages, Responses};
    assert_eq!(more(Responses, r#"{"model":"m","previous_response_id":"r"}"#), [false]);
    assert_eq!(more(Responses, r#"{"model":"m","previous_response_id":null}"#), [] as [bool; 0]);
    assert_eq!(more(Responses, r#"{"model":"m","conversation":"c"}"#), [true]);
    assert_eq!(more(Gemini, r#"{"cached_content":"c"}"#), [false]);
    let document = r#"{"type":"document","source":{"type":"url","url":"http://x"}}"#;
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{document}]}}]}}"#);
    assert_eq!(more(Messages, &body), [true]);
}

#[test]
fn what_the_provider_leaves_out_is_not_learned() {
    use Protocol::{Messages, Responses};
    for (protocol, more, expected) in [
        (Messages, "", false),
        (Messages, r#","context_management":{}"#, false),
        (
            Messages,
            r#","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}"#,
            true,
        ),
        (
            Messages,
            r#","context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}"#,
            false,
        ),
        (Messages, r#","context_management":{"edits":[{"type":"clear_thinking_20251015"}]}"#, true),
        (Responses, r#","truncation":"disabled""#, false),
        (Responses, r#","truncation":"auto""#, true),
    ] {
        assert_eq!(
            read(protocol, &format!(r#"{{"model":"m"{more}}}"#)).is_trimmed,
            expected,
            "{more}"
        );
    }
}

#[test]
fn tools_of_the_provider_are_found() {
    let kinds = |protocol, body: &str| {
        let tools = read(protocol, body).server_tools;
        tools.into_iter().map(|tool| (tool.kind, tool.uses)).collect::<Vec<_>>()
    };
    use Protocol::{Chat, Gemini, Messages, Responses};
    let tool = |kind: &str, uses| vec![(kind.to_owned(), uses)];
    assert_eq!(kinds(Messages, r#"{"model":"m","tools":null,"mcp_servers":[]}"#), []);
    assert_eq!(kinds(Messages, r#"{"model":"m","mcp_servers":[{}]}"#), tool("mcp_servers", None));
    assert_eq!(
        kinds(
            Messages,
            r#"{"model":"m","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}"#
        ),
        []
    );
    assert_eq!(
        kinds(
            Messages,
            r#"{"model":"m","context_management":{"edits":[{"type":"compact_20260112"}]}}"#
        ),
        tool("context_management", None)
    );
    assert_eq!(
        kinds(Responses, r#"{"model":"m","tools":[{"type":"web_search"}],"max_tool_calls":3}"#),
        tool("web_search", Some(3))
    );
    assert_eq!(kinds(Chat, r#"{"model":"m","web_search_options":{}}"#), tool("web_search", None));
    for key in ["models", "fallbacks", "context_window_fallbacks", "plugins", "search_parameters"] {
        for protocol in [Chat, Responses] {
            assert_eq!(
                kinds(protocol, &format!(r#"{{"model":"m","{key}":["x"]}}"#)),
                tool(key, None)
            );
            assert_eq!(kinds(protocol, &format!(r#"{{"model":"m","{key}":[]}}"#)), []);
        }
    }
    assert_eq!(kinds(Gemini, r#"{"tools":[{"google_search":{}}]}"#), tool("google_search", None));
}

#[test]
fn a_question_for_tokens_shares_the_body() {
    let text = r#"{"stream":true,"messages":[{"role":"user"}],"max_tokens":1,"model":"m"}"#;
    let body = Bytes::from_static(text.as_bytes());
    let question = read(Protocol::Messages, text).count_question(&body).expect("a question");
    assert_eq!(question.path, "/v1/messages/count_tokens");
    assert_eq!(question.body.concat(), br#"{"model":"m","messages":[{"role":"user"}]}"#);
    let text = r#" {"contents":[]}"#;
    let body = Bytes::from_static(text.as_bytes());
    let question = read(Protocol::Gemini, text).count_question(&body).expect("a question");
    assert_eq!(question.path, "/v1beta/models/g-1:countTokens");
    let whole: Value = serde_json::from_slice(&question.body.concat()).expect("JSON");
    assert_eq!(whole, json!({"generateContentRequest": {"model": "models/g-1", "contents": []}}));
    let text = r#"{"model":"m"}"#;
    assert_eq!(
        read(Protocol::Chat, text).count_question(&Bytes::from_static(text.as_bytes())),
        None
    );
    assert_eq!(counted_tokens(Protocol::Messages, br#"{"input_tokens":7}"#), Some(7));
    assert_eq!(counted_tokens(Protocol::Gemini, br#"{"totalTokens":7}"#), Some(7));
    assert_eq!(counted_tokens(Protocol::Gemini, b"x"), None);
}

proptest! {
    #[test]
    fn an_edited_body_differs_in_what_was_written_alone(
        more in prop::collection::btree_map("[a-z]{1,5}", "[ -~é😀]{0,9}", 0..5),
        stream: bool, limit in prop::option::of(1u64..99),
    ) {
        let mut body: Value = json!({"model": "m", "stream": stream});
        for (key, value) in more {
            if !["model", "stream", "n", "tools", "speed"].contains(&key.as_str()) {
                body[key] = value.into();
            }
        }
        if let Some(limit) = limit {
            body["max_tokens"] = limit.into();
        }
        let text = body.to_string();
        let after: Value = serde_json::from_str(&edited(Protocol::Chat, &text, Some(50), "max_tokens")).expect("JSON");
        let mut expected = body;
        expected["max_tokens"] = limit.unwrap_or(50).into();
        if stream {
            expected["stream_options"] = json!({"include_usage": true});
        }
        prop_assert_eq!(after, expected);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[{}\\[\\]\":,a-z0-9\\\\ ]{0,60}") {
        for protocol in [Protocol::Messages, Protocol::Responses, Protocol::Chat, Protocol::Gemini] {
            let _ = Request::read(protocol, Some("m"), false, &bytes);
            let _ = Request::read(protocol, None, false, text.as_bytes());
            let _ = Request::read(protocol, None, false, format!("{{\"model\":\"m\",{text}}}").as_bytes());
        }
    }
}
